"""Settings change in the header of a file, and nothing else does."""

from __future__ import annotations

from pathlib import Path

import pytest

from dagster_streamtables import StreamTable, load_tables
from dagster_streamtables.declare.alter import alter_table, with_settings
from dagster_streamtables.declare.sql_files import read_folder
from dagster_streamtables.errors import InvalidDefinition, RefusedOperation

BOM = "\ufeff"
QUERY = "SELECT id -- schedule: not mine\nFROM t  \n"


@pytest.mark.parametrize(
    ("before", "settings", "after"),
    [
        pytest.param(QUERY, {"schedule": "5m"}, "-- schedule: 5m\n" + QUERY, id="no header"),
        pytest.param("", {"mode": "FULL"}, "-- mode: FULL\n", id="no text"),
        pytest.param(
            "-- A comment.\n\n-- mode: AUTO\n" + QUERY,
            {"schedule": "1h"},
            "-- A comment.\n\n-- mode: AUTO\n-- schedule: 1h\n" + QUERY,
            id="after the other settings",
        ),
        pytest.param(
            "--schedule:   5m  \r\n-- note\r\nSELECT 1 AS n\r\n",
            {"schedule": "1h", "mode": "FULL"},
            "-- schedule: 1h\r\n-- mode: FULL\r\n-- note\r\nSELECT 1 AS n\r\n",
            id="line ends of Windows",
        ),
        pytest.param(
            BOM + "-- mode: AUTO\nSELECT 1 AS n",
            {"mode": None},
            BOM + "SELECT 1 AS n",
            id="a byte order mark",
        ),
        pytest.param(
            "-- description: one\n-- two\n-- three\n--\n-- no part of it\n" + QUERY,
            {"description": "new\nwords"},
            "-- description: new words\n--\n-- no part of it\n" + QUERY,
            id="a description of several lines",
        ),
        pytest.param(
            "-- schedule: 5m\n-- Ask Ann first.\n" + QUERY,
            {"description": "what was paid"},
            "-- schedule: 5m\n-- description: what was paid\n--\n-- Ask Ann first.\n" + QUERY,
            id="a description above a comment",
        ),
        pytest.param(
            "-- description: one\n-- two\n" + QUERY,
            {"mode": "FULL"},
            "-- description: one\n-- two\n-- mode: FULL\n" + QUERY,
            id="after a description of several lines",
        ),
        pytest.param(
            "-- description: one\n-- two\n-- mode: FULL\n" + QUERY,
            {"description": None},
            "-- mode: FULL\n" + QUERY,
            id="a description taken out",
        ),
        pytest.param("-- mode: FULL", {"mode": "AUTO"}, "-- mode: AUTO", id="no line end"),
        pytest.param(QUERY, {"mode": None}, QUERY, id="nothing to take out"),
    ],
)
def test_a_header_is_rewritten(before: str, settings: dict[str, object], after: str) -> None:
    assert with_settings(before, settings) == after


def table(folder: Path, text: str) -> StreamTable:
    (folder / "t.sql").write_bytes(text.encode())
    [found] = load_tables(folder)
    return found


def test_a_file_keeps_its_bytes_and_its_permissions(tmp_path: Path) -> None:
    declared = table(tmp_path, "-- schedule: 5m\r\n-- ünïcode\r\nSELECT 1 AS n\r\n")
    file = tmp_path / "t.sql"
    file.chmod(0o640)
    done = alter_table(declared, {"schedule": "@daily", "timezone": "Europe/Berlin"})
    assert (done.schedule, done.timezone, done.file) == ("@daily", "Europe/Berlin", str(file))
    assert file.read_bytes().decode() == (
        "-- schedule: @daily\r\n-- timezone: Europe/Berlin\r\n-- ünïcode\r\nSELECT 1 AS n\r\n"
    )
    assert file.stat().st_mode & 0o777 == 0o640
    assert load_tables(tmp_path) == [done]
    assert [path.name for path in tmp_path.iterdir()] == ["t.sql"]


@pytest.mark.parametrize(
    ("setting", "value", "complaint"),
    [
        ("schedule", "5s", "is too tight"),
        ("schedule", "5x", "is not a schedule"),
        ("mode", "SOMETIMES", 'there is no mode "SOMETIMES"'),
        ("session_timezone", "Mars/Olympus", 'there is no time zone "Mars/Olympus"'),
        ("differential_max_change_ratio", "2", 'differential_max_change_ratio is "2"'),
        ("colour", "red", '"colour" is not a setting'),
    ],
)
def test_what_cannot_be_is_refused_and_the_file_left(
    setting: str, value: str, complaint: str, tmp_path: Path
) -> None:
    declared = table(tmp_path, QUERY)
    with pytest.raises(InvalidDefinition) as raised:
        alter_table(declared, {setting: value})
    assert complaint in raised.value.what
    assert (tmp_path / "t.sql").read_text() == QUERY


def test_a_broken_file_can_be_mended(tmp_path: Path) -> None:
    (tmp_path / "t.sql").write_text("-- mode: SOMETIMES\nSELECT 1 AS n")
    [broken] = read_folder(tmp_path)
    assert alter_table(broken, {"mode": "FULL"}).mode == "FULL"


def test_a_name_and_a_declaration_in_python_are_not_altered(tmp_path: Path) -> None:
    with pytest.raises(RefusedOperation) as raised:
        alter_table(table(tmp_path, QUERY), {"name": "other"})
    assert "rename the file" in raised.value.fix
    with pytest.raises(RefusedOperation) as raised:
        alter_table(StreamTable("t", "SELECT 1 AS n"), {"schedule": "5m"})
    assert 'StreamTable("t", …)' in raised.value.fix
