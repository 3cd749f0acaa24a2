"""Random rows, and the windows of changes that come to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from compiler.database import Literals
from qa.fuzz.schema import SOURCES, VALUES

Bag = Counter[Literals]


@dataclass(frozen=True)
class Row:
    """One row that comes to a table (+1) or goes (-1)."""

    table: str
    values: Literals
    sign: int = 1


@dataclass(frozen=True)
class Window:
    """What one refresh consumes: rows that come and go in this order."""

    rows: tuple[Row, ...]
    gross: bool = False
    """The change mentions every row that came or went; netted it mentions what is left of it."""
    told: bool = True
    """The plan is told which sources stand still."""


@dataclass(frozen=True)
class Story:
    """The rows of the sources, and the windows that follow one another."""

    before: tuple[Row, ...]
    windows: tuple[Window, ...]

    def states(self, tables: tuple[str, ...]) -> list[dict[str, Bag]]:
        """The rows of each table before the first window and after each."""
        now: dict[str, Bag] = {table: Counter() for table in tables}
        _play(self.before, now)
        states = [{table: bag.copy() for table, bag in now.items()}]
        for window in self.windows:
            _play(window.rows, now)
            states.append({table: bag.copy() for table, bag in now.items()})
        return states

    def possible(self) -> bool:
        """Whether no row goes that is not there."""
        now: dict[str, Bag] = {table: Counter() for table in SOURCES}
        for row in (*self.before, *(row for window in self.windows for row in window.rows)):
            now[row.table][row.values] += row.sign
            if now[row.table][row.values] < 0:
                return False
        return True


def _play(rows: tuple[Row, ...], now: dict[str, Bag]) -> None:
    for row in rows:
        if row.table in now:
            now[row.table][row.values] += row.sign


def change_rows(window: Window, table: str) -> list[Literals]:
    """The change relation of a table: rows with their weights."""
    mine = [row for row in window.rows if row.table == table]
    came, went = (Counter(r.values for r in mine if r.sign == sign) for sign in (1, -1))
    if not window.gross:
        came, went = came - went, went - came
    signed = [(values, n) for values, n in came.items()]
    signed += [(values, -n) for values, n in went.items()]
    return [(*values, str(n)) for values, n in signed]


def random_story(random: Random, tables: tuple[str, ...]) -> Story:
    """Few rows of few values; inserts, deletes and updates; some tables that stand still.

    The windows are merged ones, of some statements each, or the same statements one at a time.
    """
    before = tuple(
        Row(table, random_row(random, table))
        for table in tables
        for _ in range(random.choice([0, 3, 5, 7]))
    )
    now: dict[str, Bag] = {table: Counter() for table in tables}
    _play(before, now)
    statements: list[tuple[tuple[Row, ...], ...]] = []
    for _ in range(random.randint(1, 3)):
        moving = [table for table in tables if random.random() < 0.65] or [random.choice(tables)]
        statements.append(
            tuple(
                _statement(random, table, now)
                for table in moving
                for _ in range(random.randint(1, 3))
            )
        )
    gross, told = random.random() < 0.4, random.random() < 0.7
    if random.random() < 0.25:
        single = [one for several in statements for one in several][:6]
        return Story(before, tuple(Window(one, gross, told) for one in single))
    merged = (tuple(row for one in several for row in one) for several in statements)
    return Story(before, tuple(Window(rows, gross, told) for rows in merged))


def _statement(random: Random, table: str, now: dict[str, Bag]) -> tuple[Row, ...]:
    """An insert, a delete, or an update, that is played at once."""
    there = list(now[table].elements())
    word = random.choice(["insert", "insert", "delete", "update", "update", "copy", "clear"])
    old = random.choice(there) if there else None
    if word == "clear" and random.random() < 0.3:
        rows = tuple(Row(table, values, -1) for values in there)
    elif old is None or word == "insert":
        rows = (Row(table, random_row(random, table)),)
    elif word == "copy":
        rows = (Row(table, old),)
    elif word == "update":
        rows = (Row(table, old, -1), Row(table, _touched(random, table, old)))
    else:
        rows = (Row(table, old, -1),)
    _play(rows, now)
    return rows


def random_row(random: Random, table: str) -> Literals:
    return tuple(_value(random, type_) for type_ in SOURCES[table].values())


def _touched(random: Random, table: str, row: Literals) -> Literals:
    """The row with one other value."""
    types = list(SOURCES[table].values())
    place = random.randrange(len(row))
    return (*row[:place], _value(random, types[place]), *row[place + 1 :])


def _value(random: Random, type_: str) -> str:
    values = VALUES[type_]
    return random.choice(values if random.random() < 0.6 else values[:2])


def script(rows: Mapping[str, Bag]) -> list[str]:
    """INSERT statements for the rows."""
    return [
        f"INSERT INTO {table} VALUES "
        + ", ".join(f"({', '.join(values)})" for values in bag.elements())
        + ";"
        for table, bag in rows.items()
        if bag.total()
    ]


def change_script(then: Mapping[str, Bag], now: Mapping[str, Bag]) -> list[str]:
    """DELETE and INSERT statements between two states.

    A row that loses some of its copies goes with all of them, and those that stay come again.
    """
    lines: list[str] = []
    for table in then:
        gone = [values for values in then[table] if now[table][values] < then[table][values]]
        names = list(SOURCES[table])
        lines += [f"DELETE FROM {table} WHERE {_match(names, values)};" for values in gone]
        again = Counter({values: now[table][values] for values in gone})
        lines += script({table: +again + (now[table] - then[table])})
    return lines


def _match(names: list[str], values: Literals) -> str:
    return " AND ".join(
        f"{_name(name)} IS NULL" if value == "NULL" else f"{_name(name)} = {value}"
        for name, value in zip(names, values, strict=True)
    )


def _name(name: str) -> str:
    plain = name.isidentifier() and name != "Order"
    return name if plain else f"`{name}`"
