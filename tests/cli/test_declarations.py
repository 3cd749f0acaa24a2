"""Where the command line finds declarations, and what it does with them; without Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.conftest import Shop
from own_process import python

LOCATION = """
import dagster as dg
from dagster_streamtables import StreamTable, StreamTablesResource, build_definitions
HERE = {here!r}
def made():
    return build_definitions(
        folder=HERE + "/tables",
        tables=[StreamTable("mart.python", "SELECT id FROM sales.orders", schedule="10s")],
        resource=StreamTablesResource(root=dg.EnvVar("SHOP_ROOT")),
        min_schedule_seconds=1,
    )
"""


@pytest.fixture
def location(bare: Shop, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SHOP_ROOT", bare.root)
    file = bare.folder / "location.py"
    file.write_text(LOCATION.format(here=str(bare.folder)) + "defs = made()\n")
    return file


def alone(shop: Shop, words: str, *arguments: str) -> tuple[int, str]:
    done = shop.run(words, *arguments, told=False)
    return done.exit_code, done.stdout if "--json" in arguments else done.output


def test_a_table_that_was_never_refreshed_is_new(bare: Shop) -> None:
    found = bare.by_table("status")
    assert {each["status"] for each in found.values()} == {"NEW"}
    assert found["mart.revenue"]["rows"] is None
    bare.declare("best", "-- schedule: 5x\nSELECT 1 AS n")
    broken = bare.json("status mart.best --strict", code=3)[0]
    assert (broken["status"], "is not a schedule" in broken["why"]) == ("ERROR", True)
    assert [each["kind"] for each in bare.json("events")] == ["broken"]


def test_a_code_location_is_found_by_file_and_by_module(
    bare: Shop, location: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, text = alone(bare, "status -f", str(location), "--json")
    assert code == 0, text
    found = {each["table"]: each for each in json.loads(text)}
    assert {*found} == {"mart.best", "mart.busy", "mart.python", "mart.revenue"}
    assert found["mart.python"]["resolved_schedule"] == "10s"
    lazy = "@dg.definitions\ndef defs():\n    return made()"
    text = location.read_text().replace("defs = made()", lazy)
    location.with_name("lazy_location.py").write_text(text)
    monkeypatch.chdir(bare.folder)
    code, text = alone(bare, "status -m lazy_location --json")
    assert [each["table"] for each in json.loads(text)] == list(found)


def test_all_that_is_broken_is_told_at_once(bare: Shop, location: Path) -> None:
    code, text = alone(bare, "validate -f", str(location))
    assert (code, text.splitlines()[-1]) == (0, "0 of 4 stream tables are broken.")
    broken = {"best": "SELECT FROM", "busy": "SELECT id,\n  1 + FROM sales.orders"}
    for name, query in broken.items():
        bare.declare(name, query)
    code, text = alone(bare, "validate -f", str(location), "--json")
    assert code == 3, text
    found = {each["table"]: each for each in json.loads(text)}
    assert found.keys() == {"mart.best", "mart.busy"}
    assert all(each["broken"] and each["what"] for each in found.values())
    assert "mart/busy.sql:2:7" in found["mart.busy"]["where"]
    code, text = alone(bare, "validate -f", str(location))
    assert (code, text.splitlines()[-1]) == (3, "2 of 4 stream tables are broken.")


def test_what_is_no_code_location_is_said_in_words(bare: Shop, location: Path) -> None:
    for content, complaint in (
        ("import nowhere_to_be_found", "ModuleNotFoundError"),
        ("x = 1", "has no dagster.Definitions"),
        ("import dagster as dg\ndefs = dg.Definitions()", "no asset in the definitions"),
    ):
        location.write_text(content)
        code, text = alone(bare, "status -f", str(location))
        assert (code, complaint in text, "Traceback" in text) == (1, True, False), text
    assert "cannot be imported" in alone(bare, "status -m nowhere.at.all")[1]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["status"], "the root of the tables is not given"),
        (["refresh", "--root", "/"], "no declaration of a stream table is given"),
        (["status", "--tables", "a", "-m", "b", "--root", "c"], "declarations are given twice"),
        (["status", "--tables", "/nowhere/at/all", "--root", "c"], "there is no folder"),
    ],
)
def test_what_is_missing_is_asked_for(bare: Shop, arguments: list[str], complaint: str) -> None:
    code, text = alone(bare, *arguments)
    assert (code, complaint in text) == (1, True), text


def test_a_wrong_command_line_is_another_code(bare: Shop) -> None:
    assert bare.run("status --nonsense").exit_code == 2
    assert bare.run("refresh --max-concurrent 0").exit_code == 2
    assert bare.run("history mart.best --tables", str(bare.tables), told=False).exit_code == 2


def test_explain_shows_laws_before_any_table_is_there(bare: Shop) -> None:
    found = bare.json("explain mart.best")
    assert (found["maintained"], found["sources"]) == (True, ["mart.revenue"])
    assert found["refusal"] is None
    busy = bare.json("explain mart.busy")
    [between] = busy["intermediate_tables"]
    assert [each["name"] for each in busy["queries"]] == [between, ""]
    laws = {line["law"] for query in busy["queries"] for line in query["operators"]}
    assert {"keyed", "linear"} <= laws
    assert "SELECT" in busy["change_sql"]
    text = bare.said("explain mart.revenue --sql")
    assert "fold" in text
    assert "Change, in SQL" in text

    query = "SELECT id,\n  rand() AS r\nFROM sales.orders\n"
    bare.declare("random", query)
    refused = bare.json("explain mart.random", code=3)
    assert refused["maintained"] is False
    assert (refused["refusal"]["line"], refused["refusal"]["column"]) == (2, 3)
    assert "rand" in bare.said("explain mart.random", code=3)
    assert "did you mean mart.best" in bare.refused("explain mart.bist")


def test_explain_invents_no_types_before_the_tables_are_there(bare: Shop) -> None:
    total = "aggregate(array(amount), 0D, (x, y) -> x + y) AS total"
    part = "from_json('{}', 'a INT') AS part"
    bare.declare("parts", f"SELECT id, {total}, {part} FROM sales.orders")
    bare.declare("read", "SELECT id, total, part.a AS a, total / 2 AS half FROM mart.parts")
    text = bare.said("explain mart.parts mart.read")
    assert "Project CAST(`id` AS BIGINT) AS id, total, part\n" in text
    assert "Project CAST(`id` AS BIGINT) AS id, total, a, half\n" in text
    assert "STRING" not in text


def test_settings_are_altered_in_the_file(bare: Shop) -> None:
    file = bare.tables / "mart/best.sql"
    before = file.read_text()
    assert "schedule is 10m" in bare.said("alter mart.best --schedule 10m")
    assert file.read_text() == before.replace("5m", "10m")
    bare.said("alter mart.best --mode full --set max_consecutive_errors=0")
    assert bare.json("status mart.best")[0]["mode"] == "FULL"
    bare.said("alter mart.best --unset mode --unset max_consecutive_errors")
    assert file.read_text() == before.replace("5m", "10m")
    for wrong in (["--schedule", "5x"], ["--set", "mode"], [], ["--schedule", "5s"]):
        assert bare.run("alter mart.best", *wrong).exit_code == 1
    assert file.read_text() == before.replace("5m", "10m")
    bare.said("alter mart.best --schedule 5s --min-schedule-seconds 1")


def test_a_table_of_python_is_altered_there(bare: Shop, location: Path) -> None:
    code, text = alone(bare, "alter mart.python -f", str(location), "--schedule", "1h")
    assert (code, "is declared in Python" in text) == (1, True)
    code, text = alone(bare, "alter mart.best -f", str(location), "--schedule", "1h")
    assert code == 0, text
    assert "-- schedule: 1h\n" in (bare.tables / "mart/best.sql").read_text()


@pytest.mark.process
def test_only_a_code_location_needs_dagster(bare: Shop) -> None:
    commands = [["status"], ["events"], ["explain", "mart.best"], ["refresh", "none"], ["metrics"]]
    place = ["--root", bare.root, "--tables", str(bare.tables)]
    program = (
        "import sys\nfrom dagster_streamtables.cli import app\n"
        f"for command in {commands}:\n"
        f"    try: app([*command, *{place}])\n"
        "    except SystemExit as end: print(end.code, 'dagster' in sys.modules, file=sys.stderr)"
    )
    done = python("-c", program)
    told = [line for line in done.stderr.splitlines() if line.endswith(("True", "False"))]
    assert told == ["0 False", "0 False", "0 False", "1 False", "0 False"], done.stderr
