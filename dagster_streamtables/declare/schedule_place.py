"""Where the file of a stream table sets its schedule, for errors that are found later.

A declaration keeps the line of its query only. The setting is on the nearest line that names its
key and has its value: in the header of a `.sql` file above the query, in YAML on either side.
"""

from __future__ import annotations

import re
from pathlib import Path

from dagster_streamtables.errors import Place, StreamTablesError, underline
from dagster_streamtables.runtime.model.stream_table import StreamTable


def with_place(error: StreamTablesError, table: StreamTable) -> StreamTablesError:
    """The error of a schedule or a time zone, with its line in the file of the table.

    Args:
        error: As `parse_schedule` raises it.
        table: Its declaration.
    """
    _, _, carets = error.where.partition("\n")
    key, value = ("schedule", table.schedule) if carets else ("timezone", table.timezone)
    found = _line(table, key, (value or "").strip()) if table.file else None
    if found is None:
        return error
    number, text, start = found
    first = start + len(carets) - len(carets.lstrip())
    shown = underline(text, first, first + (carets.count("^") or len(value or "")) - 1)
    return error.changed(where=Place(number, shown.column, shown.shown, table.file))


def _line(table: StreamTable, key: str, value: str) -> tuple[int, str, int] | None:
    """The number of the line, its text, and where the value begins in it."""
    try:
        lines = Path(table.file or "").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):  # it was deleted or changed after it was read
        return None
    setting = re.compile(rf"\b{key}\b\W*?(?P<value>{re.escape(value)})", re.IGNORECASE)
    found = [(n, line, at) for n, line in enumerate(lines, 1) if (at := setting.search(line))]
    if not found:
        return None
    number, line, at = min(found, key=lambda each: abs(each[0] - table.line))
    return number, line, at.start("value")
