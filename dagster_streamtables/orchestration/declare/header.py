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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from dagster_streamtables.errors import InvalidDefinition, Place, underline
from dagster_streamtables.runtime.model.labels import checked_group, checked_owners, checked_tags
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.setting import hints_of, read_text

SETTINGS = (
    "name",
    "schedule",
    "mode",
    "timezone",
    "description",
    "owners",
    "tags",
    "group",
    "differential_max_change_ratio",
    "max_consecutive_errors",
    "max_recursion_levels",
    "max_recursion_rows",
    "on_schema_change",
    "on_manual_write",
    "cdc_mode",
    "dialect",
    "session_timezone",
    "initialize",
    "kind",
    "columns",
)


class Kind(enum.StrEnum):
    """What a file declares."""

    TABLE = "table"
    VIEW = "view"


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

    def where(self, words: str, *, in_value: bool = False) -> Place:
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
            found |= {last: _checked(_Line(last, value, line.rstrip(), number), found)}
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
    if key in _READ:
        return _READ[key](value)
    return read_text(key, Kind if key == "kind" else hints_of(StreamTable)[key], value)


def _checked(line: _Line, found: Mapping[str, _Line]) -> _Line:
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
        named = _named(error.what)
        words = named if named and named in text else text
        raise error.changed(where=line.where(words, in_value=True)) from None


def _named(what: str) -> str:
    """The first quoted words in a message; empty if there are none."""
    quoted = re.search(r'"(.+?)"', what)
    return quoted[1] if quoted else ""


def _list(text: str) -> list[str]:
    return [part for part in (part.strip() for part in text.split(",")) if part]


def _tags(text: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in _list(text))
    return checked_tags({key.strip(): value.strip() for key, _, value in pairs})


_READ: Mapping[str, Callable[[str], object]] = {
    "columns": lambda text: tuple(name.strip().strip('`"') for name in text.split(",")),
    "owners": lambda text: checked_owners(_list(text)),
    "tags": _tags,
    "group": checked_group,
}
