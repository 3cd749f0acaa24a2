"""The command that serves metrics to Prometheus."""

from __future__ import annotations

from typing import Annotated

import typer

from dagster_streamtables.cli.app import File, Folder, MaybeRoot, Module, app
from dagster_streamtables.cli.output import err, errors_in_words
from dagster_streamtables.cli.project import open_project
from dagster_streamtables.replication.lifecycle.replications import Replications
from dagster_streamtables.runtime.observe.status import TableDeclaration


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
    from dagster_streamtables.metrics import StreamTablesCollector, exposition, serve

    with errors_in_words():
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
