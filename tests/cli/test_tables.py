"""Every table of the command line, in terminals of several widths and in a pipe."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator

import pytest
from rich.cells import cell_len
from rich.text import Text

from cli.conftest import Shop
from dagster_streamtables import cli
from dagster_streamtables.cli import console
from dagster_streamtables.cli.grid import TableColumn, TableLayout, pairs
from dagster_streamtables.cli.watch import _widths

WIDTHS = (40, 80, 120, 200)
TIME = "2026-11-22 16:55:57"
NUMBER = "1,234,567,890,123"
TIMES = ("time", "since", "data as of", "refreshed", "released at")
CAUSES = [f"cause_{number}" for number in range(30)]
ERROR = " ".join(["[DIVIDE_BY_ZERO]", *CAUSES, '"spark.sql.ansi.enabled".', "SQLSTATE: 22012"])


def long_name(number: int) -> str:
    return f"mart.t{number}_{'revenue_of_' * 5}"[:58] + "_z"


def layouts() -> Iterator[tuple[str, TableLayout]]:
    for module in pkgutil.iter_modules(cli.__path__):
        if module.name != "__main__":
            found = importlib.import_module(f"{cli.__name__}.{module.name}")
            for name, value in vars(found).items():
                if isinstance(value, TableLayout):
                    yield f"{module.name}.{name}", value


LAYOUTS = dict(layouts())
every = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)


def value(column: TableColumn, number: int) -> str:
    if column.text:
        return ERROR
    if column.name in TIMES:
        return TIME
    return NUMBER if column.number else long_name(number)


def rows(layout: TableLayout) -> list[list[str]]:
    numbers = range(10, 30, 10)
    return [[value(column, at + n) for n, column in enumerate(layout.columns)] for at in numbers]


Show = Callable[[object, int], list[str]]
"""The lines of something that is printed with a width."""


@pytest.fixture
def pipe(capsys: pytest.CaptureFixture[str]) -> Show:
    def show(printed: object, width: int) -> list[str]:
        console.out.width = width
        console.out.print(printed)
        return capsys.readouterr().out.splitlines()

    return show


@pytest.fixture
def terminal(pipe: Show, monkeypatch: pytest.MonkeyPatch) -> Show:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    return pipe


def test_there_are_tables() -> None:
    assert {"status.STATUS", "refresh.REFRESHES", "slots.POSITIONS"} <= {*LAYOUTS}


@every
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
def test_a_terminal_shows_each_value_as_a_whole(
    layout: TableLayout, wide: bool, width: int, terminal: Show
) -> None:
    given = rows(layout)
    lines = terminal(layout.grid(given, wide=wide), width)

    said = "\n".join(lines)
    for row in given:
        for column, each in zip(layout.columns, row, strict=True):
            if column.wide and not wide:
                assert column.text or column.number or each not in said
            elif not column.text:
                assert each in said, column
    texts = [column for column in layout.columns if column.text and (wide or not column.wide)]
    for word in ERROR.split():
        assert said.split().count(word) == len(given) * len(texts), word
    for line in lines:
        # A word that no line can hold is whole, for the terminal to wrap.
        assert cell_len(line) <= width or len(line.split()) == 1, line


@every
@pytest.mark.parametrize("wide", [False, True])
def test_a_pipe_gets_fields_without_padding(layout: TableLayout, wide: bool, pipe: Show) -> None:
    given = [
        [f"{each}\n\n  why:\t{each}" if each == ERROR else each for each in row]
        for row in rows(layout)
    ]
    header, *lines = pipe(layout.grid(given, wide=wide), 40)

    columns = [column for column in layout.columns if wide or not column.wide]
    assert header.split("\t") == [column.name for column in columns]
    for row, line in zip(given, lines, strict=True):
        fields = line.split("\t")
        assert len(fields) == len(columns)
        assert not re.search(r"  | \t|\t |\x1b", line)
        values = [re.sub(r"\s*\n\s*|\t", " ", each) for each in row]
        assert fields == [
            each for each, column in zip(values, layout.columns, strict=True) if column in columns
        ]


@every
def test_what_matters_fits_a_terminal(layout: TableLayout, terminal: Show) -> None:
    """Tables of common names and numbers are aligned at 120 columns, without ``--wide``."""
    usual = {"number": "20,050", "time": TIME, "text": ERROR, "name": "mart.revenue"}
    row = [
        usual[
            "text" if column.text else
            "number" if column.number else
            "time" if column.name in TIMES else "name"
        ]
        for column in layout.columns
    ]  # fmt: skip
    header, rule, *_ = terminal(layout.grid([row], wide=False), 120)
    assert header.split() == " ".join(c.name for c in layout.columns if not c.wide).split()
    assert set(rule) == {"─"}


def test_a_table_that_does_not_fit_is_a_block_for_each_row(terminal: Show) -> None:
    layout = TableLayout(
        TableColumn("table"), TableColumn("rows", number=True), TableColumn("error", text=True)
    )
    given = [["mart.a", "12", "it fails\nwith the name of a column that does not exist"],
             ["mart.long_name", "1,234", ""]]  # fmt: skip
    assert terminal(layout.grid(given), 30) == [
        "mart.a",
        "  rows: 12",
        "  error:",
        "    it fails",
        "    with the name of a column",
        "    that does not exist",
        "",
        "mart.long_name",
        "  rows: 1,234",
    ]


@pytest.mark.parametrize("width", [24, *WIDTHS])
def test_pairs_are_whole(width: int, terminal: Show) -> None:
    given = ("errors in a row", NUMBER), ("table", long_name(1)), ("data as of", TIME), ("no", "")
    lines = terminal(pairs(*given), width)
    said = "\n".join(lines)
    assert all(each in said for each in (NUMBER, long_name(1), TIME))
    assert "no" not in said.split()
    assert all(cell_len(line) <= width or len(line.split()) == 1 for line in lines)


def test_pairs_are_fields_in_a_pipe(pipe: Show) -> None:
    text = Text("a\nb", style="red")
    assert pipe(pairs(("one", "1"), ("other", text)), 40) == ["one\t1", "other\ta b"]


@pytest.mark.parametrize("width", WIDTHS)
def test_a_live_table_leaves_out_what_it_would_cut(width: int) -> None:
    names = [Text(name) for name in ("id", "at", "name", "amount")]
    values = [Text(each) for each in ("1", TIME, "x" * 100, NUMBER)]
    found = _widths(names, [values], width)
    assert sum(found) + 2 * (len(found) - 1) <= width
    for each, room in zip(values, found, strict=False):
        assert room >= min(len(each), 8)
        assert "x" in each.plain or room >= len(each)
    assert len(found) == (3 if width == 40 else 4)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.usefixtures("terminal")
def test_the_status_of_a_long_name_is_whole(
    bare: Shop, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = long_name(1)
    text = "-- schedule: 5m\nSELECT customer FROM sales.orders\n"
    bare.declare(name.removeprefix("mart."), text)
    monkeypatch.setattr(console.out, "width", width)
    bare.said("suspend", name, "--why", ERROR)
    words = bare.said("status").split()
    assert name in words
    assert all(word in words for word in (*ERROR.split(), "SUSPENDED", "mart.best"))
    monkeypatch.setenv("TTY_COMPATIBLE", "0")
    assert f"{name}\tSUSPENDED\t\t{ERROR}" in bare.said("status").splitlines()
