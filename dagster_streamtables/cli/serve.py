"""Commands that serve over HTTP: changes for their readers, and metrics for Prometheus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dagster_streamtables.cli.console import (
    File,
    Folder,
    MaybeRoot,
    Module,
    Root,
    app,
    err,
)
from dagster_streamtables.cli.lake_project import open_lake, open_project
from dagster_streamtables.errors import EnvironmentProblem, RefusedOperation
from dagster_streamtables.replication.lifecycle.replication_manager import Replications
from dagster_streamtables.runtime.observe.table_status import TableDeclaration


@app.command()
def serve(
    root: Root,
    relation: Annotated[
        list[str] | None,
        typer.Option(
            help="A table, a view, or NAME=SELECT …; may be repeated. No others are read."
        ),
    ] = None,
    allow_queries: Annotated[
        bool, typer.Option(help="Let readers send a SELECT of their own, over any table.")
    ] = False,
    host: Annotated[
        str, typer.Option(help="Address to listen on. Beyond this machine, it needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8899,
    token_file: Annotated[
        Path | None,
        typer.Option(help="File with what readers must send. Or set STREAMTABLES_SERVE_TOKEN."),
    ] = None,
    max_connections: Annotated[int, typer.Option(min=1, help="Readers at the same time.")] = 100,
    max_rows_per_second: Annotated[
        int, typer.Option(min=0, help="Of each reader; 0 for no limit.")
    ] = 100_000,
    max_seconds_unread: Annotated[
        float, typer.Option(min=1, help="Disconnect a reader who takes nothing for so long.")
    ] = 60.0,
) -> None:
    """Serve the changes of relations over HTTP, with a page that shows them."""
    try:
        # The server is an extra.
        from dagster_streamtables.serve.access_policy import (
            Limits,
            ServerConfig,
            hosts_of,
            relations_of,
            require_token,
        )
        from dagster_streamtables.serve.http_server import run, token_of
    except ModuleNotFoundError as error:
        raise EnvironmentProblem(
            "the server is not installed",
            why=f"there is no module {error.name}",
            fix="pip install 'dagster-streamtables[serve]'",
        ) from error
    token = token_of(token_file)
    require_token(host, token)
    relations = relations_of(relation or [])
    if not relations and not allow_queries:
        raise RefusedOperation(
            "no relation to serve is given", fix="name a table, as in --relation mart.revenue"
        )
    limits = Limits(max_connections, max_rows_per_second or None, max_seconds_unread)
    offer = ServerConfig(
        open_lake(root, ask_spark=True), relations, allow_queries, token, hosts_of(host), limits
    )
    about = "" if token is None else "?token=…"
    address = f"[{host}]" if ":" in host else host
    err.print(f"Serving http://{address}:{port}/{about}")
    run(offer, host=host, port=port)


@app.command()
def metrics(
    root: MaybeRoot = "",
    folder: Folder = "",
    module: Module = "",
    file: File = "",
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Serve the metrics here, collected at each scrape."),
    ] = None,
    address: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
) -> None:
    """Print the metrics of the stream tables in Prometheus format, or serve them over HTTP."""
    from dagster_streamtables.metrics.collector import StreamTablesCollector, exposition, serve

    project = open_project(root=root, tables=folder, module=module, file=file)

    def load_expectations() -> list[TableDeclaration] | None:
        """Files are read again at each scrape; a code location is loaded only once."""
        if not folder:
            return project.expectations
        return open_project(root=root, tables=folder, module="", file="").expectations

    collector = StreamTablesCollector(
        project.logs.monitor, load_expectations, Replications(project.logs)
    )
    if port is None:
        typer.echo(exposition(collector), nl=False)
        return
    server, thread = serve(collector, port=port, address=address)
    err.print(f"Serving http://{address}:{server.server_port}/metrics")
    try:
        thread.join()
    except KeyboardInterrupt:
        server.shutdown()
