"""Loads declarations from a folder of `.sql` files, one stream table or view in each.

A file is a header of comment lines, and one SELECT:

    -- schedule: 5m
    -- owners: team:finance
    -- tags: tier=gold, pii
    -- description: Orders that were paid,
    --   one row each.
    SELECT id, amount FROM sales.orders WHERE paid

The table is named after the file, and after its subfolder as the schema: ``sales/paid.sql`` is
``sales.paid``. With ``-- kind: view`` the file is a view, which other files may name.

Other comment lines are ignored, but those directly below a description continue it. Errors show the
line of the setting.
"""

from __future__ import annotations

import difflib
import enum
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dagster_streamtables.compiler import View, views_of
from dagster_streamtables.errors import (
    InvalidDefinition,
    QueryPosition,
    StreamTablesError,
    underline,
)
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.setting import Setting, read_text, settings_of


@dataclass(frozen=True)
class BrokenTable:
    """An invalid declaration, kept so that the others can be used.

    It becomes an asset that shows the error, and fails with it when materialized.
    """

    name: str
    error: StreamTablesError
    query: str = ""
    file: str | None = None
    line: int = 1


Declared = StreamTable | BrokenTable


def load_tables(folder: str | Path, *, views: Iterable[View] = ()) -> list[StreamTable]:
    """Read every `.sql` file below a folder, in the order of their paths.

    Args:
        folder: The folder of stream tables, and of views that they name.
        views: Further views that they may name.

    Raises:
        InvalidDefinition: The folder does not exist, or a declaration is invalid.
    """
    tables = read_folder(folder, views=views)
    for table in tables:
        if isinstance(table, BrokenTable):
            raise table.error
    return [table for table in tables if isinstance(table, StreamTable)]


def read_folder(folder: str | Path, *, views: Iterable[View] = ()) -> list[Declared]:
    """Read every `.sql` file below a folder; invalid declarations become `BrokenTable`.

    Raises:
        InvalidDefinition: The folder does not exist.
    """
    tables, found = read_files(folder)
    return with_views(tables, [*found, *views])


def read_files(folder: str | Path) -> tuple[list[Declared], list[View]]:
    """The stream tables and the views of a folder, not connected yet: see `with_views`. Raises
    `InvalidDefinition` if the folder does not exist."""
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
    return [*clear, *(_name_conflict(known[name], by) for name, by in taken.items())]


def _with_views(table: Declared, known: Mapping[str, View]) -> Declared:
    if not isinstance(table, StreamTable):
        return table
    everything = {**known, **{view.name: view for view in table.views}}
    try:
        views = views_of(table.query, table.dialect, everything)
    except StreamTablesError:  # reported when the table is analyzed
        views = tuple(everything.values())
    return replace(table, views=views)


def _name_conflict(view: View, by: str) -> BrokenTable:
    error = InvalidDefinition(
        f"{by} has the name of a view",
        where=view.file or "a view in Python",
        why="a name in a query must have one meaning",
        fix="give one of them another name",
    )
    return BrokenTable(view.name, error.about(view.name), view.query, view.file)


def declare(name: str, query: str, **settings: object) -> Declared:
    """A `StreamTable`, or a `BrokenTable` if the constructor raises.

    For declarations in Python: one invalid declaration must not break its whole module.
    """
    try:
        return StreamTable(name, query, **settings)  # type: ignore[arg-type]
    except StreamTablesError as error:
        file, line = settings.get("file"), settings.get("line", 1)
        line = line if isinstance(line, int) else 1
        file = str(file) if file else None
        if file and not error.where:
            error = error.with_parts(where=QueryPosition(line, 1, file=file))
        return BrokenTable(name, error.about(name), query, file, line)


def _read_file(path: Path, root: Path) -> Declared | View:
    name = ".".join(path.relative_to(root).with_suffix("").parts)
    try:
        return _read_declaration(path.read_text(encoding="utf-8"), name, str(path))
    except UnicodeDecodeError:
        error = InvalidDefinition(f"{path.name} is not UTF-8 text", fix="save it as UTF-8")
        return BrokenTable(name, error.about(name), file=str(path))


def read_declaration(text: str, name: str, file: str | None = None) -> Declared:
    """The stream table that the text of a file declares; `name` is used if its header gives
    none."""
    found = _read_declaration(text, name, file)
    if isinstance(found, View):
        error = InvalidDefinition("it is a view", fix="name a stream table")
        return BrokenTable(name, error.about(name), found.query, file)
    return found


def _read_declaration(text: str, name: str, file: str | None) -> Declared | View:
    try:
        header = read_header(text)
        settings = dict(header.settings)
        name = str(settings.pop("name", name))
        if settings.pop("kind", FileKind.TABLE) is FileKind.VIEW:
            _refuse_others(settings, VIEW_SETTINGS, "a view")
            of_view: dict[str, Any] = settings
            return View(name, header.query, **of_view, file=file, line=header.line)
        _refuse_others(settings, TABLE_SETTINGS, "a stream table")
    except StreamTablesError as error:
        return BrokenTable(name, error.within(file).about(name), file=file)
    return declare(name, header.query, **settings, file=file, line=header.line)


def _refuse_others(settings: Iterable[str], known: Iterable[str], kind: str) -> None:
    for key in settings:
        if key not in known:
            raise InvalidDefinition(f'{kind} has no setting "{key}"', fix="leave it out")


class FileKind(enum.StrEnum):
    """What a file declares."""

    TABLE = "table"
    """A stream table."""
    VIEW = "view"
    """A query under a name that other queries may use; nothing is stored."""


@dataclass(frozen=True)
class _File:
    """What a header says of the file itself."""

    kind: FileKind = FileKind.TABLE
    """What the file declares."""


def _keys(declared: type) -> dict[str, Setting]:
    """The settings of a class that a header may have: all but the query, which is below it."""
    return {each.name: each for each in settings_of(declared) if each.name != "query"}


TABLE_SETTINGS, VIEW_SETTINGS = _keys(StreamTable), _keys(View)
SETTINGS: Mapping[str, Setting] = {
    **TABLE_SETTINGS,
    **_keys(_File),
    **VIEW_SETTINGS,
    **TABLE_SETTINGS,
}
"""Those of both have the description of the table's."""
SETTING = re.compile(r"--\s*([A-Za-z_]+)\s*:(?:\s+(.*))?$")


@dataclass(frozen=True)
class Header:
    """A file, split into settings and query."""

    settings: Mapping[str, object] = field(default_factory=dict[str, object])
    """Values with the types that `StreamTable` expects; empty ones are left out."""
    query: str = ""
    line: int = 1
    """The line of the file on which the query begins."""


@dataclass(frozen=True)
class _Line:
    """A setting as written in the file."""

    key: str
    value: str
    text: str
    number: int

    def where(self, words: str, *, in_value: bool = False) -> QueryPosition:
        """The line with the words underlined."""
        after = self.text.index(":") if in_value else 0
        start = max(0, self.text.lower().find(words.lower(), after))
        return replace(underline(self.text, start, start + len(words) - 1), line=self.number)


def read_header(text: str) -> Header:
    """Split a file into the settings of its header and its query. Raises `InvalidDefinition` if a
    setting is unknown, duplicated, or has an invalid value."""
    lines = text.lstrip("\ufeff").splitlines(keepends=True)
    found: dict[str, _Line] = {}
    continued: list[str] = []
    number = 0
    for number, (key, setting) in enumerate(header_lines(lines), 1):
        line = lines[number - 1]
        if setting:
            value = (setting[2] or "").strip()
            found |= {key: _check_line(_Line(key, value, line.rstrip(), number), found)}
        elif key:
            continued.append(line.strip().lstrip("- "))
    query = "".join(lines[number:])
    return Header(_typed(found, continued), query, number + 1 if query else 1)


def header_lines(lines: Iterable[str]) -> Iterator[tuple[str, re.Match[str] | None]]:
    """For each line of the header: the key of the setting that it gives or continues, empty for
    other comments; and the setting, if the line gives one."""
    key = ""
    for line in lines:
        stripped = line.strip()
        if stripped and not stripped.startswith("--"):
            return
        setting = SETTING.match(stripped)
        if setting:
            key = setting[1].lower()
        elif key != "description" or not stripped.strip("- "):
            key = ""
        yield key, setting


def _check_line(line: _Line, found: Mapping[str, _Line]) -> _Line:
    if line.key in found:
        raise InvalidDefinition(
            f'the setting "{line.key}" is duplicated', where=line.where(line.key), fix="keep one"
        )
    if line.key not in SETTINGS:
        near = difflib.get_close_matches(line.key, SETTINGS, n=1)
        raise InvalidDefinition(
            f'there is no setting "{line.key}"',
            where=line.where(line.key),
            fix=f'write "{near[0]}"' if near else "",
            why=f"the settings are {', '.join(SETTINGS)}",
        )
    return line


def _typed(found: Mapping[str, _Line], description: list[str]) -> dict[str, object]:
    typed: dict[str, object] = {}
    for key, line in found.items():
        value = " ".join([line.value, *description]).strip() if key == "description" else line.value
        if value:
            typed[key] = _value(line, value)
    return typed


def _value(line: _Line, text: str) -> object:
    try:
        return read_text(line.key, SETTINGS[line.key].hint, text)
    except InvalidDefinition as error:
        named = re.search(r'"(.+?)"', error.what)
        words = named[1] if named and named[1] in text else text
        raise error.with_parts(where=line.where(words, in_value=True)) from None
