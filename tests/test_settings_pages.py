"""Every setting is described where it is declared, and the documentation has it from there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest

from dagster_streamtables.declare.sql_files import SETTINGS
from dagster_streamtables.runtime.spark.environment import Variables
from dagster_streamtables.setting import INTERNAL, Display, Range, missing_descriptions, settings_of
from pages import PROJECT
from settings_pages import DECLARED, PAGES, ROWS, listed, written


@pytest.mark.parametrize("owner", DECLARED, ids=lambda owner: owner.__name__)
def test_every_setting_is_described(owner: type) -> None:
    missing = missing_descriptions(owner)
    assert not missing, (
        f"{', '.join(missing)} has no description: write one as a text below the field (or, in a "
        "pydantic model, as `description`), then run python -m tests.settings_pages"
    )


def test_every_key_of_a_header_is_described() -> None:
    assert not [name for name, each in SETTINGS.items() if not each.description]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(PROJECT)))
def test_the_tables_of_a_page_are_those_of_the_declarations(path: Path) -> None:
    text = path.read_text()
    assert written(text) == text, f"{path} is out of date: run python -m tests.settings_pages"


def test_every_variable_of_the_environment_is_declared() -> None:
    sources = "".join(path.read_text() for path in (PROJECT / "dagster_streamtables").rglob("*.py"))
    of_commands = {
        f"STREAMTABLES_{name}" for name in ("ROOT", "TABLES", "TRACEBACK", "SERVE_TOKEN")
    }
    read = set(re.findall(r"STREAMTABLES_[A-Z_]*[A-Z]", sources)) - of_commands
    unknown = read - {each.name for each in settings_of(Variables)}
    assert not unknown, f"declare {', '.join(unknown)} in runtime/spark/environment.py"


def test_every_list_of_settings_is_in_the_documentation() -> None:
    missing = ROWS.keys() - listed(path.read_text() for path in PAGES)
    assert not missing, (
        f"no page lists {', '.join(missing)}: write `<!-- settings: NAME -->` and "
        "`<!-- end of settings -->` where it belongs, and run python -m tests.settings_pages"
    )


def test_a_setting_is_what_its_field_says() -> None:
    @dataclass
    class Some:
        told: Annotated[int, Range(1), Display((3,), default="many")] = 2
        """What it
        is."""
        silent: str = ""
        own: Annotated[str, INTERNAL] = ""

    told, silent = settings_of(Some)
    assert (told.name, told.default, told.description) == ("told", 2, "What it is.")
    assert told.display == Display((3,), "many")
    assert silent.name == "silent"
    assert missing_descriptions(Some) == ["Some.silent"]
