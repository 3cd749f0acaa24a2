"""Declarations from files: a folder of `.sql` files, one stream table in each.

A file is a header of comment lines and one SELECT:

    -- schedule: 5m
    -- description: Orders that were paid, one row each.
    SELECT id, amount FROM sales.orders WHERE paid

The table is named after the file, and after its subfolder as the schema: ``sales/paid.sql`` is
``sales.paid``. Comment lines that are no setting are comments, except directly below a description,
which they continue.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dagster_streamtables.errors import InvalidDefinition, StreamTablesError, underline
from dagster_streamtables.runtime.table import Mode, StreamTable

SETTINGS = (
    "name",
    "schedule",
    "mode",
    "timezone",
    "description",
    "differential_max_change_ratio",
)
_SETTING = re.compile(r"--\s*([A-Za-z_]+)\s*:(?:\s+(.*))?$")
_MODE = "mode"
_RATIO = "differential_max_change_ratio"


@dataclass(frozen=True)
class BrokenTable:
    """A declaration that says something that cannot be: kept, so that the others can be used.

    It becomes an asset that says what is wrong and fails when it is materialized.
    """

    name: str
    error: StreamTablesError
    query: str = ""
    file: str | None = None


Declared = StreamTable | BrokenTable


def load_tables(folder: str | Path) -> list[StreamTable]:
    """Read every `.sql` file below a folder, in the order of their paths.

    Raises:
        InvalidDefinition: The folder does not exist, or a file does not declare a stream table.
    """
    tables = read_folder(folder)
    for table in tables:
        if isinstance(table, BrokenTable):
            raise table.error
    return [table for table in tables if isinstance(table, StreamTable)]


def read_folder(folder: str | Path) -> list[Declared]:
    """Read every `.sql` file below a folder; files that declare no stream table become broken ones.

    Raises:
        InvalidDefinition: The folder does not exist.
    """
    root = Path(folder).absolute()
    if not root.is_dir():
        raise InvalidDefinition(
            f'there is no folder "{folder}" to read stream tables from',
            fix="give the path of a folder with .sql files",
        )
    return [_read_file(path, root) for path in sorted(root.rglob("*.sql"))]


def declare(name: str, query: str, **settings: object) -> Declared:
    """A `StreamTable`, or a broken one where the constructor would raise.

    For declarations in Python that must not take the others of their module down with them.
    """
    try:
        return StreamTable(name, query, **settings)  # type: ignore[arg-type]
    except StreamTablesError as error:
        file = settings.get("file")
        return BrokenTable(name, error.about(name), query, str(file) if file else None)


def _read_file(path: Path, root: Path) -> Declared:
    name = ".".join(path.relative_to(root).with_suffix("").parts)
    try:
        settings, query = read_header(path.read_text(encoding="utf-8"))
        name = str(settings.pop("name", name))
        settings = _typed(settings)
    except UnicodeDecodeError:
        error = InvalidDefinition(f"{path.name} is not a text in UTF-8", fix="save it as UTF-8")
        return BrokenTable(name, error.about(name), file=str(path))
    except StreamTablesError as error:
        return BrokenTable(name, error.about(name), file=str(path))
    return declare(name, query, **settings, file=str(path))


def read_header(text: str) -> tuple[dict[str, object], str]:
    """Split a file into the settings of its header and its query.

    Raises:
        InvalidDefinition: A setting that does not exist, or that comes twice.
    """
    found: dict[str, object] = {}
    lines = text.lstrip("\ufeff").splitlines(keepends=True)
    last = ""
    for number, line in enumerate(lines):
        stripped = line.strip()
        if stripped and not stripped.startswith("--"):
            return found, "".join(lines[number:])
        setting = _SETTING.match(stripped)
        if setting:
            last = _checked(setting[1].lower(), found, line.rstrip(), number)
            found[last] = (setting[2] or "").strip()
        elif last == "description" and stripped.strip("- "):
            found[last] = f"{found[last]} {stripped.lstrip('- ')}".strip()
        else:
            last = ""
    return found, ""


def _checked(key: str, found: Mapping[str, object], line: str, number: int) -> str:
    start = line.lower().index(key)
    where = underline(line, start, start + len(key) - 1).replace("line 1", f"line {number + 1}")
    if key in found:
        raise InvalidDefinition(f'the setting "{key}" comes twice', where=where, fix="keep one")
    if key not in SETTINGS:
        near = difflib.get_close_matches(key, SETTINGS, n=1)
        raise InvalidDefinition(
            f'there is no setting "{key}"',
            where=where,
            fix=f'write "{near[0]}"' if near else "",
            why=f"the settings are {', '.join(SETTINGS)}",
        )
    return key


def _typed(settings: Mapping[str, object]) -> dict[str, object]:
    """The settings with the types that `StreamTable` wants; empty ones are left out."""
    typed = {key: value for key, value in settings.items() if value != ""}
    if _MODE in typed:
        typed[_MODE] = _mode(str(typed[_MODE]))
    if _RATIO in typed:
        typed[_RATIO] = _ratio(str(typed[_RATIO]))
    return typed


def _mode(text: str) -> Mode:
    if text.upper() in list(Mode):
        return Mode(text.upper())
    near = difflib.get_close_matches(text.upper(), list(Mode), n=1)
    raise InvalidDefinition(
        f'there is no mode "{text}"',
        fix=f"write {near[0]}" if near else f"choose one of {', '.join(Mode)}",
        why=f"the modes are {', '.join(Mode)}" if near else "",
    )


def _ratio(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidDefinition(
            f'{_RATIO} is "{text}", which is no number',
            fix="give a number from 0 (never recompute) to 1 (always)",
        ) from None
