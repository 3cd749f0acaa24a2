"""The line of a bad schedule, in the file that sets it, and the form that was meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from dagster_streamtables import StreamTable, StreamTablesError
from dagster_streamtables.declare.analysis import find_problems
from dagster_streamtables.declare.schedule import parse_schedule
from dagster_streamtables.declare.sql_files import load_tables


def problem(folder: Path, text: str) -> StreamTablesError:
    (folder / "a.sql").write_text(text)
    [found] = find_problems(load_tables(folder))
    return found.error


@pytest.mark.parametrize(
    ("header", "line", "column", "words"),
    [
        ("-- mode: FULL\n-- schedule: 5 minutes", 2, 15, " "),
        ("--schedule:   61 * * * *", 1, 15, "61"),
        ("-- Schedule: @dayly\n-- mode: FULL", 1, 14, "@dayly"),
        ("-- schedule: 5m\n-- timezone: Europe/Nowhere", 2, 14, "Europe/Nowhere"),
        ("-- description: a schedule: 1s for all\n-- schedule: 1s", 2, 14, "1s"),
    ],
)
def test_a_header_is_underlined(
    header: str, line: int, column: int, words: str, tmp_path: Path
) -> None:
    error = problem(tmp_path, f"{header}\nSELECT id FROM t\n")
    head, text, carets = error.where.splitlines()
    assert head == f"{tmp_path}/a.sql:{line}:{column}"
    assert text == header.splitlines()[line - 1]
    assert carets == " " * (column - 1) + "^" * len(words)


def test_yaml_shows_the_line_of_the_table_that_has_the_schedule(tmp_path: Path) -> None:
    file = tmp_path / "defs.yaml"
    table = "  - name: {}\n    query: SELECT id FROM t\n    schedule: {}\n"
    file.write_text("tables:\n" + table.format("a", "5m") + table.format("b", '"5 parsecs"'))
    broken = StreamTable("b", "SELECT id FROM t", schedule="5 parsecs", file=str(file), line=6)
    [found] = find_problems([broken])
    assert found.error.where.splitlines()[:2] == [f"{file}:7", '    schedule: "5 parsecs"']


def test_a_declaration_in_python_shows_the_words() -> None:
    [found] = find_problems([StreamTable("b", "SELECT id FROM t", schedule="5 parsecs")])
    assert found.error.where == "5 parsecs\n ^"


@pytest.mark.parametrize(
    ("text", "meant"),
    [("5 minutes", "5m"), ("every 1 hour 30 min", "1h30m"), ("@dayly", "@daily"), ("soon", "")],
)
def test_the_form_that_was_meant_comes_first(text: str, meant: str) -> None:
    with pytest.raises(StreamTablesError) as raised:
        parse_schedule(text)
    assert raised.value.fix.startswith(f'write "{meant}"; or ' if meant else "write a duration")
