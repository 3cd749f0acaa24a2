"""The header of a `.sql` file: settings in comment lines, before the query.

    -- schedule: 5m
    -- owners: team:finance
    -- tags: tier=gold, pii
    -- description: Orders that were paid,
    --   one row each.
    SELECT id, amount FROM sales.orders WHERE paid

Other comment lines are ignored, but those directly below a description continue it. Errors show the
line of the setting.
"""

from __future__ import annotations

import difflib
import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from dagster_streamtables.compiler import View
from dagster_streamtables.errors import InvalidDefinition, QueryPosition, underline
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.setting import Setting, read_text, settings_of


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
    """Split a file into the settings of its header and its query.

    Raises:
        InvalidDefinition: A setting is unknown, duplicated, or has an invalid value.
    """
    lines = text.lstrip("\ufeff").splitlines(keepends=True)
    found: dict[str, _Line] = {}
    continued: list[str] = []
    last = ""
    for number, line in enumerate(lines, 1):
        stripped = line.strip()
        if stripped and not stripped.startswith("--"):
            return Header(_typed(found, continued), "".join(lines[number - 1 :]), number)
        setting = SETTING.match(stripped)
        if setting:
            last = setting[1].lower()
            value = (setting[2] or "").strip()
            found |= {last: _check_line(_Line(last, value, line.rstrip(), number), found)}
        elif last == "description" and stripped.strip("- "):
            continued.append(stripped.lstrip("- "))
        else:
            last = ""
    return Header(_typed(found, continued))


def read_setting(key: str, value: object) -> object:
    """The value of a setting, with the type that `StreamTable` expects. Only texts are converted.

    Raises:
        InvalidDefinition: The text is not a valid value.
    """
    if not isinstance(value, str):
        return value
    return read_text(key, SETTINGS[key].hint, value)


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
        return read_setting(line.key, text)
    except InvalidDefinition as error:
        named = _first_quote(error.what)
        words = named if named and named in text else text
        raise error.with_parts(where=line.where(words, in_value=True)) from None


def _first_quote(what: str) -> str:
    """The first quoted words in a message; empty if there are none."""
    quoted = re.search(r'"(.+?)"', what)
    return quoted[1] if quoted else ""
