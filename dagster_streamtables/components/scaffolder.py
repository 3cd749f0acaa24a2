"""`dg scaffold defs dagster_streamtables.StreamTablesComponent my_tables`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import BaseModel, Field

from dagster_streamtables.errors import InvalidDefinition

_TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*){0,2}")


class ScaffoldParams(BaseModel):
    """The options on the command line."""

    root: str | None = Field(
        default=None,
        description="The folder or URI of the tables: sales.orders is its subfolder sales/orders. "
        "Default: the folder lake of the project.",
    )
    spark: str | None = Field(
        default=None,
        description="The address of a Spark Connect server. Default: a local one is started.",
    )
    folder: str = Field(default="tables", description="The folder for .sql files.")
    table: str = Field(default="first", description="The name of the first stream table.")
    source: str = Field(
        default="sales.orders", description="The Delta table that the first stream table counts."
    )
    schedule: str = Field(default="5m", description="The schedule of the first stream table.")


class StreamTablesScaffolder(dg.Scaffolder[ScaffoldParams]):
    """Creates a `defs.yaml`, and a first `.sql` file that works and explains itself."""

    @classmethod
    def get_scaffold_params(cls) -> type[ScaffoldParams]:
        return ScaffoldParams

    def scaffold(self, request: dg.ScaffoldRequest[ScaffoldParams]) -> None:
        """
        Raises:
            InvalidDefinition: A table name is invalid.
        """
        params = request.params
        for name in (params.table, params.source):
            if not _TABLE.fullmatch(name):
                raise InvalidDefinition(
                    f'"{name}" is not a valid table name',
                    fix="use letters, digits and underscores, for example sales.orders",
                )
        if request.scaffold_format == "python":
            (request.target_path / "component.py").write_text(_python(params), encoding="utf-8")
        else:
            dg.scaffold_component(request, _attributes(params))
        here = request.target_path.parent if request.append else request.target_path
        file = (here / params.folder).joinpath(*params.table.split(".")).with_suffix(".sql")
        _write_new(file, _first(params))


def _attributes(params: ScaffoldParams) -> dict[str, Any]:
    spark = {"spark": params.spark} if params.spark else {}
    root = params.root or "{{ context.project_root }}/lake"
    return {"resource": {"root": root, **spark}, "folder": params.folder}


def _python(params: ScaffoldParams) -> str:
    root = repr(params.root) if params.root else 'str(context.project_root / "lake")'
    spark = f", spark={params.spark!r}" if params.spark else ""
    return (
        "import dagster as dg\n\n"
        "from dagster_streamtables import StreamTablesComponent, StreamTablesResource\n\n\n"
        "@dg.component_instance\n"
        "def load(context: dg.ComponentLoadContext) -> StreamTablesComponent:\n"
        "    return StreamTablesComponent(\n"
        f"        resource=StreamTablesResource(root={root}{spark}),\n"
        f"        folder={params.folder!r},\n"
        "    )\n"
    )


def _write_new(file: Path, text: str) -> None:
    """Write the file unless it exists: then a person wrote it."""
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def _first(params: ScaffoldParams) -> str:
    path = params.source.replace(".", "/")
    return (
        f"-- The stream table {params.table}, named after this file: first its settings, then one\n"
        "-- SELECT. Refreshes keep the table equal to the result of the SELECT.\n"
        f"-- schedule: {params.schedule}\n"
        f"-- description: The number of rows of {params.source}.\n"
        "\n"
        f"-- {params.source} is the Delta table in the folder {path} below the root in defs.yaml,\n"
        f"-- and the asset {path}. Until it exists, the sensor waits for it.\n"
        f"SELECT COUNT(*) AS how_many\nFROM {params.source}\n"
    )
