"""`StreamTablesIOManager`: other assets load stream tables through dagster-deltalake.

The IO managers of dagster-deltalake also load the hidden columns, in which a stream table stores
its state. And they find a table by the last two parts of its asset key, not by the table's name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import dagster as dg
from dagster_deltalake import (
    DeltalakeBaseArrowTypeHandler,
    DeltaLakeIOManager,
    DeltaLakePyArrowTypeHandler,
)
from dagster_deltalake.io_manager import DeltaLakeDbClient, TableConnection

from dagster_streamtables.dagster_private import DbIOManager, DbTypeHandler, TableSlice
from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.runtime.delta.arrow import is_dataset, with_columns
from dagster_streamtables.runtime.delta.logs import Logs
from dagster_streamtables.runtime.delta.table_locations import TableNames
from dagster_streamtables.runtime.model.definition import visible_types


class VisibleColumns(DeltalakeBaseArrowTypeHandler[Any]):
    """Leaves out the hidden columns of a stream table; other tables are loaded unchanged.

    Put it before a type handler, for example the one of dagster-deltalake-pandas:

    ```python
    class Frames(VisibleColumns, DeltaLakePandasTypeHandler):
        pass
    ```
    """

    def load_input(
        self, context: dg.InputContext, table_slice: TableSlice, connection: TableConnection
    ) -> Any:
        log = Logs(connection.storage_options).newest(connection.table_uri)
        seen = list(visible_types(log.columns)) if log is not None else []
        hides = log is not None and len(seen) < len(log.columns)
        if not hides or table_slice.columns is not None:
            return super().load_input(context, table_slice, connection)
        if is_dataset(context.dagster_type.typing_type):
            return with_columns(super().load_input(context, table_slice, connection), seen)
        return super().load_input(context, table_slice._replace(columns=seen), connection)


class ArrowHandler(VisibleColumns, DeltaLakePyArrowTypeHandler):
    """Tables, record batch readers and datasets of pyarrow."""


class StreamTablesIOManager(DeltaLakeIOManager):
    """`DeltaLakePyarrowIOManager` that loads stream tables by name, without hidden columns.

    It loads and stores everything else like its base class. Override `type_handlers` for types
    other than pyarrow's; see `VisibleColumns`.

    Examples:
        ```python
        @dg.asset(ins={"revenue": dg.AssetIn(["mart", "revenue"])}, key_prefix="report")
        def best(revenue: pa.Table) -> pa.Table:
            return revenue.sort_by([("total", "descending")]).slice(0, 10)

        io_manager = StreamTablesIOManager(root_uri="lake", storage_options=LocalConfig())
        ```
    """

    @staticmethod
    def type_handlers() -> Sequence[DbTypeHandler[Any]]:
        """Handlers of the types that assets may load: here, the types of pyarrow."""
        return [ArrowHandler()]

    def create_io_manager(self, context: Any) -> DbIOManager:
        return DbIOManager(
            db_client=_Client(),
            database="deltalake",
            schema=self.schema_,
            type_handlers=self.type_handlers(),
            default_load_type=self.default_load_type(),
            io_manager_name=type(self).__name__,
        )


class _Client(DeltaLakeDbClient):
    @staticmethod
    @contextmanager
    def connect(context: Any, table_slice: TableSlice) -> Iterator[TableConnection]:
        with DeltaLakeDbClient.connect(context, table_slice) as found:
            name = _stream_table(context)
            place = TableNames(context.resource_config["root_uri"]).location(name) if name else ""
            yield replace(found, table_uri=place) if name else found


def _stream_table(context: Any) -> str | None:
    """The name of the stream table to load; None for other tables, and for output.

    Its asset key does not tell: a translator may choose any.
    """
    if not isinstance(context, dg.InputContext) or context.upstream_output is None:
        return None
    metadata = context.upstream_output.definition_metadata or {}
    return metadata.get(keys.TABLE_NAME) if keys.DEFINITION in metadata else None
