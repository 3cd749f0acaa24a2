"""`RowsOnDisk`: many rows in a file without a name, which are read as if they were in memory."""

from __future__ import annotations

import tempfile

from dagster_streamtables.runtime.delta.arrow import pa


class RowsOnDisk:
    """Write rows, then read them.

    The file is unnamed, in the folder of `tempfile` (`TMPDIR`), so nothing is left of it when the
    process ends, however it ends. What is read is mapped: the system takes its pages back when
    memory is short, and the file lives as long as the last table that maps it.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115
        # By Arrow alone: its threads may hold the file when the interpreter ends.
        self._place = f"/dev/fd/{self._file.fileno()}"
        self._sink = pa.OSFile(self._place, "wb")
        self._writer = pa.ipc.new_file(self._sink, schema)
        self.rows = 0

    def add(self, rows: pa.Table) -> None:
        self._writer.write_table(rows)
        self.rows += rows.num_rows

    def read(self) -> pa.Table:
        """All rows, in order. Nothing can be added afterwards."""
        self._writer.close()
        self._sink.close()
        with self._file:
            return pa.ipc.open_file(pa.memory_map(self._place)).read_all()


def on_disk(rows: pa.Table) -> pa.Table:
    """The same rows, out of memory."""
    file = RowsOnDisk(rows.schema)
    file.add(rows)
    return file.read()
