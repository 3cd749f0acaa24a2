"""Declarations from files: a folder of `.sql` files, one stream table or view in each.

A file is a header of comment lines and one SELECT:

    -- schedule: 5m
    -- description: Orders that were paid, one row each.
    SELECT id, amount FROM sales.orders WHERE paid

The table is named after the file, and after its subfolder as the schema: ``sales/paid.sql`` is
``sales.paid``. Comment lines that are no setting are comments, except directly below a description,
which they continue. With ``-- kind: view`` the file is a view, which other files may name.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dagster_streamtables.compiler.views import View, views_of
from dagster_streamtables.errors import InvalidDefinition, StreamTablesError, underline
from dagster_streamtables.runtime.table import Mode, StreamTable

SETTINGS = (
    "name",
    "schedule",
    "mode",
    "timezone",
    "description",
    "differential_max_change_ratio",
    "max_consecutive_errors",
    "on_schema_change",
    "cdc_mode",
    "dialect",
    "session_timezone",
    "kind",
    "columns",
)
VIEW_SETTINGS = ("name", "kind", "columns", "dialect", "description")
KINDS = ("table", "view")
SETTING = re.compile(r"--\s*([A-Za-z_]+)\s*:(?:\s+(.*))?$")
_MODE = "mode"
_RATIO = "differential_max_change_ratio"
_ERRORS = "max_consecutive_errors"


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


def load_tables(folder: str | Path, *, views: Iterable[View] = ()) -> list[StreamTable]:
    """Read every `.sql` file below a folder, in the order of their paths.

    Args:
        folder: Of stream tables, and of views that they name.
        views: More views that they may name.

    Raises:
        InvalidDefinition: The folder does not exist, or a file declares nothing that can be.
    """
    tables = read_folder(folder, views=views)
    for table in tables:
        if isinstance(table, BrokenTable):
            raise table.error
    return [table for table in tables if isinstance(table, StreamTable)]


def read_folder(folder: str | Path, *, views: Iterable[View] = ()) -> list[Declared]:
    """Read every `.sql` file below a folder; files that declare no stream table become broken ones.

    Raises:
        InvalidDefinition: The folder does not exist.
    """
    tables, found = read_files(folder)
    return with_views(tables, [*found, *views])


def read_files(folder: str | Path) -> tuple[list[Declared], list[View]]:
    """The stream tables and the views of a folder, which do not know of one another yet.

    Raises:
        InvalidDefinition: The folder does not exist.
    """
    root = Path(folder).absolute()
    if not root.is_dir():
        raise InvalidDefinition(
            f'there is no folder "{folder}" to read stream tables from',
            fix="give the path of a folder with .sql files",
        )
    found = [_read_file(path, root) for path in sorted(root.rglob("*.sql"))]
    views = [each for each in found if isinstance(each, View)]
    return [each for each in found if not isinstance(each, View)], views


def with_views(tables: Iterable[Declared], views: Iterable[View]) -> list[Declared]:
    """The declarations, each stream table with the views that its query reads."""
    known: dict[str, View] = {}
    taken: dict[str, str] = {}
    for view in views:
        if view.name in known and known[view.name] != view:
            taken[view.name] = "another view"
        known.setdefault(view.name, view)
    declared = [_with_views(table, known) if known else table for table in tables]
    taken |= {table.name: "a stream table" for table in declared if table.name in known}
    clear = [table for table in declared if table.name not in taken]
    return [*clear, *(_name_taken(known[name], by) for name, by in taken.items())]


def _with_views(table: Declared, known: Mapping[str, View]) -> Declared:
    if not isinstance(table, StreamTable):
        return table
    everything = {**known, **{view.name: view for view in table.views}}
    try:
        views = views_of(table.query, table.dialect, everything)
    except StreamTablesError:  # which is said when the table is examined
        views = tuple(everything.values())
    return replace(table, views=views)


def _name_taken(view: View, by: str) -> BrokenTable:
    error = InvalidDefinition(
        f"{by} has the name of a view",
        where=view.file or "a view in Python",
        why="a name in a query means one thing",
        fix="give one of them another name",
    )
    return BrokenTable(view.name, error.about(view.name), view.query, view.file)


def declare(name: str, query: str, **settings: object) -> Declared:
    """A `StreamTable`, or a broken one where the constructor would raise.

    For declarations in Python that must not take the others of their module down with them.
    """
    try:
        return StreamTable(name, query, **settings)  # type: ignore[arg-type]
    except StreamTablesError as error:
        file = settings.get("file")
        return BrokenTable(name, error.about(name), query, str(file) if file else None)


def _read_file(path: Path, root: Path) -> Declared | View:
    name = ".".join(path.relative_to(root).with_suffix("").parts)
    try:
        return _read_text(path.read_text(encoding="utf-8"), name, str(path))
    except UnicodeDecodeError:
        error = InvalidDefinition(f"{path.name} is not a text in UTF-8", fix="save it as UTF-8")
        return BrokenTable(name, error.about(name), file=str(path))


def read_text(text: str, name: str, file: str | None = None) -> Declared:
    """The stream table that the text of a file declares.

    Args:
        text: Header and query.
        name: Of the table, where the header gives none.
        file: Where the text is from.
    """
    found = _read_text(text, name, file)
    if isinstance(found, View):
        error = InvalidDefinition("it is a view", fix="name a stream table")
        return BrokenTable(name, error.about(name), found.query, file)
    return found


def _read_text(text: str, name: str, file: str | None) -> Declared | View:
    try:
        settings, query = read_header(text)
        name = str(settings.pop("name", name))
        settings = _typed(settings)
        if settings.pop("kind", "table") == "view":
            return View(name, query, **_of_view(settings), file=file)
        _refuse_settings(settings, ("columns",), "a stream table")
    except StreamTablesError as error:
        return BrokenTable(name, error.about(name), file=file)
    return declare(name, query, **settings, file=file)


def _of_view(settings: Mapping[str, object]) -> dict[str, Any]:
    _refuse_settings(settings, set(SETTINGS) - set(VIEW_SETTINGS), "a view")
    return dict(settings)


def _refuse_settings(settings: Mapping[str, object], others: Iterable[str], kind: str) -> None:
    for key in others:
        if key in settings:
            raise InvalidDefinition(f'{kind} has no setting "{key}"', fix="leave it out")


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
        setting = SETTING.match(stripped)
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
    if _ERRORS in typed:
        typed[_ERRORS] = _count(str(typed[_ERRORS]))
    for key in ("on_schema_change", "cdc_mode"):
        if key in typed:
            typed[key] = str(typed[key]).lower()
    if "kind" in typed:
        typed["kind"] = _kind(str(typed["kind"]))
    if "columns" in typed:
        names = (name.strip().strip('`"') for name in str(typed["columns"]).split(","))
        typed["columns"] = tuple(names)
    return typed


def _kind(text: str) -> str:
    if text.lower() in KINDS:
        return text.lower()
    raise InvalidDefinition(f'there is no kind "{text}"', fix="write table or view")


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


def _count(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidDefinition(
            f'{_ERRORS} is "{text}", which is no whole number',
            fix="give how many errors in a row stop the table, or 0 for never",
        ) from None
