"""The tables of settings in docs/*.md, written from the declarations of the settings by

    python -m tests.settings_pages

A table stands between two comments, of which the first names what it lists, as in
``<!-- settings: CheckSettings -->``. A test says if a page is not what this writes.
"""

from __future__ import annotations

import enum
import re
import sys
import typing
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))

from dagster_streamtables import (
    CheckSettings,
    SensorSettings,
    StreamTable,
    StreamTablesComponent,
    StreamTablesResource,
    View,
)
from dagster_streamtables.components.component import ScaffoldParams
from dagster_streamtables.components.component_settings import ChangeAssetSettings, OpSettings
from dagster_streamtables.components.replication_settings import ReplicationSettings
from dagster_streamtables.components.yaml_settings import duration_text
from dagster_streamtables.declare.sql_files import SETTINGS
from dagster_streamtables.runtime.spark.environment import Variables
from dagster_streamtables.setting import Predicate, Range, Setting, plain, settings_of
from pages import DOCS

# Headers have the settings of the first two.
DECLARED = (
    StreamTable,
    View,
    CheckSettings,
    SensorSettings,
    StreamTablesResource,
    OpSettings,
    ChangeAssetSettings,
    ReplicationSettings,
    Variables,
)
PAGES = sorted(DOCS.rglob("*.md"))
Row = tuple[str, ...]

_WORDS: dict[Any, tuple[str, ...]] = {
    tuple: ("a list",),
    dict: ("names and values",),
    Mapping: ("names and values",),
    timedelta: ("a duration",),
}
_BLOCK = re.compile(
    r"(?P<start><!-- settings: (?P<name>\w+) -->\n)(?P<table>.*?)(?P<end><!-- end of settings -->)",
    flags=re.S,
)


def written(page: str) -> str:
    """The page with its tables as the declarations have them."""
    return _BLOCK.sub(
        lambda block: f"{block['start']}\n{table(block['name'])}\n{block['end']}", page
    )


def listed(pages: Iterable[str]) -> set[str]:
    """What the tables of some pages list."""
    return {block["name"] for page in pages for block in _BLOCK.finditer(page)}


def table(name: str) -> str:
    """The rows of a list, without the columns in which it has nothing."""
    head = ("key", "values", "default", "means")
    rows = [head, ("---",) * len(head), *ROWS[name]()]
    kept = [place for place in range(len(head)) if any(row[place] for row in rows[2:])]
    lines = [[row[place] for place in kept] for row in rows]
    return "".join(f"| {' | '.join(map(_cell, line))} |\n" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", r"\|")


def _row(setting: Setting) -> Row:
    return f"`{setting.name}`", _values(setting.hint), _default(setting), setting.description


def _values(hint: Any) -> str:
    kind = plain(hint)
    if isinstance(kind, type) and issubclass(kind, enum.StrEnum):
        return ", ".join(f"`{each}`" for each in kind)
    if kind is bool:
        return "`true`, `false`"
    bounds = [str(mark) for mark in _marks(hint) if isinstance(mark, Range | Predicate)]
    if kind is timedelta:
        bounds = [re.sub(r"\d+", lambda found: f"{found[0]} s", each) for each in bounds]
        bounds = [each.replace("than 0 s", "than 0") for each in bounds]
    return ", ".join([*_WORDS.get(typing.get_origin(kind) or kind, ()), *bounds])


def _marks(hint: Any) -> tuple[Any, ...]:
    """What an annotation says beside the type, also of one that may be None."""
    if typing.get_origin(hint) is Annotated:
        return typing.get_args(hint)[1:]
    return tuple(mark for part in typing.get_args(hint) for mark in _marks(part))


def _default(setting: Setting) -> str:
    value = None if setting.is_mandatory else setting.default
    if setting.display.default or value in (None, "", (), {}):
        return setting.display.default
    if isinstance(value, timedelta):
        return f"`{duration_text(value)}`"
    return _shown(value)


def _shown(value: Any) -> str:
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _scaffold() -> list[Row]:
    """The options of `dg scaffold defs`."""
    fields = ScaffoldParams.model_fields.items()
    return [
        (f"`--{name}`", "", _shown(each.default) if each.default else "", each.description or "")
        for name, each in fields
    ]


def _component() -> list[Row]:
    """The keys of the component itself; those below them have tables of their own."""
    schema = StreamTablesComponent.get_model_cls().model_json_schema()  # type: ignore[union-attr]
    rows: list[Row] = []
    for name, about in schema["properties"].items():
        default = about.get("default")
        # What JSON cannot say is a word of Dagster's between underscores.
        is_shown = default is not None and not str(default).startswith("_")
        rows.append((f"`{name}`", "", _shown(default) if is_shown else "", about["description"]))
    return rows


ROWS: dict[str, Callable[[], list[Row]]] = {
    "header": lambda: [_row(each) for each in SETTINGS.values()],
    "component": _component,
    "ScaffoldParams": _scaffold,
    **{
        each.__name__: lambda each=each: [_row(setting) for setting in settings_of(each)]
        for each in DECLARED[2:]
    },
}


def main() -> None:
    for path in PAGES:
        text = path.read_text()
        if _BLOCK.search(text):
            path.write_text(written(text))


if __name__ == "__main__":
    main()
