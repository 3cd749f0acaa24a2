"""Files: a header, a query, and a name; and what is said of a file that has none of these right."""

from __future__ import annotations

from pathlib import Path

import pytest

from dagster_streamtables.declare.sql_files import (
    BrokenTable,
    declare,
    load_tables,
    read_folder,
    read_header,
)
from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.runtime.model.stream_table import Mode, StreamTable


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sales").mkdir()
    (tmp_path / "sales" / "paid.sql").write_text(
        "-- Paid orders.\n"
        "-- schedule: 5m\n"
        "-- mode: full\n"
        "-- timezone: Europe/Berlin\n"
        "-- differential_max_change_ratio: 0.5\n"
        "-- owners: team:finance, ann@example.com\n"
        "-- tags: tier=gold, streams/pii\n"
        "-- group: money/in\n"
        "-- description: Orders that were paid,\n"
        "--   one row each.\n"
        "\n"
        "SELECT id -- the key: of it all\n"
        "FROM sales.orders\n"
    )
    (tmp_path / "totals.sql").write_text("SELECT count(*) AS n FROM sales.paid;\n")
    return tmp_path


def test_a_file_is_a_table_named_after_it_and_its_folder(folder: Path) -> None:
    paid, totals = load_tables(folder)
    assert paid == StreamTable(
        "sales.paid",
        "SELECT id -- the key: of it all\nFROM sales.orders\n",
        mode=Mode.FULL,
        schedule="5m",
        timezone="Europe/Berlin",
        description="Orders that were paid, one row each.",
        differential_max_change_ratio=0.5,
        file=str(folder / "sales" / "paid.sql"),
        owners=("team:finance", "ann@example.com"),
        tags={"tier": "gold", "streams/pii": ""},
        group="money/in",
        line=12,
    )
    assert (totals.name, totals.mode, totals.schedule) == ("totals", Mode.DIFFERENTIAL, None)


def test_a_name_in_the_header_wins(folder: Path) -> None:
    (folder / "totals.sql").write_text("-- name: gold.totals\nSELECT 1 AS one")
    assert [table.name for table in load_tables(folder)] == ["sales.paid", "gold.totals"]


@pytest.mark.parametrize(
    ("text", "what", "fix"),
    [
        ("-- shedule: 5m\nSELECT 1 AS a", 'there is no setting "shedule"', 'write "schedule"'),
        ("-- owner: me\nSELECT 1 AS a", 'there is no setting "owner"', ""),
        (
            "-- mode: FULL\n-- mode: AUTO\nSELECT 1 AS a",
            'the setting "mode" is duplicated',
            "keep one",
        ),
        ("-- mode: FUL\nSELECT 1 AS a", 'there is no mode "FUL"', "write FULL"),
        ("-- mode: quick\nSELECT 1 AS a", 'there is no mode "quick"', "choose one of"),
        ("-- differential_max_change_ratio: some\nSELECT 1 AS a", 'ratio is "some"', "from 0"),
        ("-- max_consecutive_errors: many\nSELECT 1 AS a", 'errors is "many"', "whole number"),
        ("-- max_consecutive_errors: -1\nSELECT 1 AS a", 'errors is "-1"', "0 or more"),
        ("-- differential_max_change_ratio: 2\nSELECT 1 AS a", 'ratio is "2"', "from 0"),
        ("-- schedule: 5m\n", "the query is empty", "one SELECT"),
        ("-- owners: team:a, ann\nSELECT 1 AS a", '"ann" is not a valid owner', "team:ann"),
        ("-- tags: tier=very gold\nSELECT 1 AS a", '"very gold" is not a valid value', "tier=gold"),
        ("-- tags: a b=c\nSELECT 1 AS a", '"a b" is not a valid tag key', "tier=gold"),
        (
            "-- group: our money\nSELECT 1 AS a",
            '"our money" is not a valid group name',
            "our_money",
        ),
        ("-- cdc_mode: none\nSELECT 1 AS a", 'there is no cdc_mode "none"', "snapshot"),
        ("-- name: my-table\nSELECT 1 AS a", '"my-table" is not a name', "letters"),
    ],
)
def test_a_broken_file_says_what_is_wrong_and_leaves_the_others_alone(
    folder: Path, text: str, what: str, fix: str
) -> None:
    (folder / "totals.sql").write_text(text)
    paid, broken = read_folder(folder)
    assert isinstance(paid, StreamTable)
    assert isinstance(broken, BrokenTable)
    assert what in broken.error.what
    assert fix in broken.error.fix
    with pytest.raises(InvalidDefinition) as raised:
        load_tables(folder)
    assert raised.value.what == broken.error.what


def test_the_known_settings_are_listed_and_the_line_is_named() -> None:
    with pytest.raises(InvalidDefinition) as raised:
        read_header("-- schedule: 5m\n-- owner: me\nSELECT 1 AS a")
    assert raised.value.where == "line 2, column 4\n-- owner: me\n   ^^^^^"
    assert "differential_max_change_ratio" in raised.value.why


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("-- owners: team:owners, ann", "ann"),
        ("-- tags: tier=gold, stage=two words", "two words"),
        ("-- group: no group", "no group"),
        ("  --  mode :  group", "group"),
        ("-- mode: mode", "mode"),
    ],
)
def test_a_value_that_cannot_be_is_underlined(line: str, words: str) -> None:
    with pytest.raises(InvalidDefinition) as raised:
        read_header(f"-- schedule: 5m\n\n{line}\nSELECT 1 AS a")
    place = line.rindex(words)
    carets = " " * place + "^" * len(words)
    assert raised.value.where == f"line 3, column {place + 1}\n{line}\n{carets}"


def test_a_file_that_is_no_text_is_broken(folder: Path) -> None:
    (folder / "totals.sql").write_bytes(b"\xff\xfe\x00")
    broken = read_folder(folder)[1]
    assert isinstance(broken, BrokenTable)
    assert "UTF-8" in broken.error.what


def test_a_folder_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidDefinition, match="no folder"):
        read_folder(tmp_path / "nowhere")


def test_a_declaration_in_python_can_be_kept_broken() -> None:
    assert declare("a", "SELECT 1 AS b", mode="AUTO") == StreamTable(
        "a", "SELECT 1 AS b", Mode.AUTO
    )
    broken = declare("a", "SELECT 1 AS b", mode="quick")
    assert isinstance(broken, BrokenTable)
    assert broken.error.what.startswith('stream table "a"')


def test_a_table_may_leave_its_first_refresh_to_a_person(tmp_path: Path) -> None:
    (tmp_path / "early.sql").write_text("-- initialize: FALSE\nSELECT id FROM orders")
    (tmp_path / "late.sql").write_text("-- initialize: true\nSELECT id FROM orders")
    early, late = load_tables(tmp_path)
    assert (early.initialize, late.initialize) == (False, True)
    (tmp_path / "late.sql").write_text("-- initialize: no\nSELECT id FROM orders")
    with pytest.raises(InvalidDefinition, match='initialize is "no"'):
        load_tables(tmp_path)
