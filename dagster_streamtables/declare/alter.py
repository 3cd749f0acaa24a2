"""Changes settings of a stream table where they are declared: in the header of its file.

The file is the single source of truth. Only the lines of the named settings change; all other bytes
stay. The new text is parsed and validated before it is written.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

from dagster_streamtables.declare.schedule import MIN_SCHEDULE_SECONDS, parse_schedule
from dagster_streamtables.declare.sql_files import (
    SETTINGS,
    TABLE_SETTINGS,
    BrokenTable,
    header_lines,
    read_declaration,
)
from dagster_streamtables.errors import InvalidDefinition, RefusedOperation, StreamTablesError
from dagster_streamtables.runtime.model.stream_table import StreamTable

ALTERABLE = tuple(name for name in TABLE_SETTINGS if name != "name")
_BOM = "\ufeff"
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r|$)")
_LINE_END = re.compile(r"\r\n?")


def alter_table(
    table: StreamTable | BrokenTable,
    settings: Mapping[str, object],
    *,
    min_schedule_seconds: float = MIN_SCHEDULE_SECONDS,
) -> StreamTable:
    """Change settings of a stream table in the file that declares it.

    Args:
        table: The current declaration, which may be broken.
        settings: Values by their names in a header; None removes a setting: its default applies.
        min_schedule_seconds: Refuse shorter schedules.

    Returns:
        The new declaration, without the views of other files.

    Raises:
        RefusedOperation: It is declared in Python, or a setting is not one of `ALTERABLE`.
        InvalidDefinition: A setting is invalid; the file stays unchanged.
    """
    path = _file_of(table)
    for name in settings:
        _require_alterable(name)
    before = path.read_bytes().decode("utf-8")
    after = with_settings(before, settings)
    declared = read_declaration(_LINE_END.sub("\n", after), table.name, str(path))
    try:
        if isinstance(declared, BrokenTable):
            raise declared.error
        zone = declared.timezone
        parse_schedule(declared.schedule, zone, min_schedule_seconds=min_schedule_seconds)
    except StreamTablesError as error:
        raise error.about(table.name) from None
    if after != before:
        _write(path, after.encode("utf-8"))
    return declared


def with_settings(text: str, settings: Mapping[str, object]) -> str:
    r"""The text of a file with changed settings in its header.

    >>> with_settings("-- schedule: 5m\nSELECT 1 AS n", {"schedule": "1h", "mode": "FULL"})
    '-- schedule: 1h\n-- mode: FULL\nSELECT 1 AS n'
    """
    bom = _BOM if text.startswith(_BOM) else ""
    lines = _LINE.findall(text[len(bom) :])
    for name, value in settings.items():
        said = None if value is None else f"-- {name}: {' '.join(str(value).split())}"
        lines = _with_setting(lines, name, said)
    return bom + "".join(lines)


def _with_setting(lines: list[str], name: str, said: str | None) -> list[str]:
    header = [*header_lines(lines)]
    places = [n for n, (key, setting) in enumerate(header) if setting and key == name]
    if not places:
        if said is None:
            return lines
        place = max((n for n, (key, _) in enumerate(header, 1) if key), default=0)
        ending = _ending(lines)
        # A comment below a description continues it, unless an empty one stands between.
        comment = name == "description" and lines[place : len(header)][:1]
        apart = ["--" + ending] if comment and comment[0].strip(" -\r\n\t") else []
        return [*lines[:place], said + ending, *apart, *lines[place:]]
    place = places[0]
    end = place + 1
    while end < len(header) and header[end] == (name, None):  # it is continued
        end += 1
    ending = lines[end - 1][len(lines[end - 1].rstrip("\r\n")) :]
    return [*lines[:place], *([said + ending] if said is not None else []), *lines[end:]]


def _ending(lines: list[str]) -> str:
    first = lines[0] if lines else ""
    return first[len(first.rstrip("\r\n")) :] or "\n"


def _file_of(table: StreamTable | BrokenTable) -> Path:
    if table.file is None:
        raise RefusedOperation(
            f'stream table "{table.name}" is declared in Python',
            why="its settings are arguments in that code",
            fix=f'change the arguments of StreamTable("{table.name}", …)',
        )
    return Path(table.file).resolve()


def _require_alterable(name: str) -> None:
    if name not in ALTERABLE:
        known = {field.name for field in fields(StreamTable)} | set(SETTINGS)
        raise (RefusedOperation if name in known else InvalidDefinition)(
            f'"{name}" is not a setting that can be altered',
            why=f"these can be: {', '.join(ALTERABLE)}",
            fix="rename the file to rename the table" if name == "name" else "",
        )


def _write(path: Path, content: bytes) -> None:
    """Replace the file atomically, so that readers see the old or the new text, and keep its
    permissions."""
    handle, new = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(new).chmod(path.stat().st_mode & 0o7777)
        Path(new).replace(path)
    except BaseException:
        Path(new).unlink(missing_ok=True)
        raise
