"""What must be true of every stored row: it is, after every case; and what breaks it is found."""

from __future__ import annotations

import pytest

from compiler import casefile
from compiler.casefile import Case
from compiler.database import Database, Prepared, Stored, in_duckdb, plan_of
from compiler.test_cases import difference, play
from dagster_streamtables.compiler import Invariants, StrategyKind

TABLE = f"`{Stored.TABLE}`"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    casefile.parametrize_with_cases(
        metafunc, lambda case: plan_of(case.query).strategy_kind is not StrategyKind.BAG
    )


def broken(database: Database, stored: Stored) -> list[str]:
    """What the stored table breaks, in the words of the rules."""
    asked = Invariants(stored.plan, stored.types)

    def ask(sql: str) -> list[tuple[object, ...]]:
        return database.connection.execute(in_duckdb(sql)).fetchall()

    [(rows, *counts)] = ask(asked.counts_sql(TABLE))
    said = [rule.says for rule, count in zip(asked.rules, counts, strict=True) if count]
    if said:
        assert ask(asked.rows_sql(TABLE, limit=5))
    copies = asked.copies_sql(TABLE, limit=5)
    if copies and ask(copies):
        said.append("copies")
    most = asked.most_rows
    return [*said, "too many"] if most is not None and int(str(rows)) > most else said


@pytest.mark.thorough
def test_they_hold_before_and_after_a_refresh(case: Case, database: Database) -> None:
    prepared = Prepared(plan_of(case.query))
    sources = prepared.plan.sources
    with database.fresh():
        play(case, database, sources)
        for table in sources:
            database.keep(f"{table}@change", difference(table, net=True))
        stored = Stored(database, prepared)
        assert broken(database, stored) == []
        stored.refresh()
        assert broken(database, stored) == []


SUMS = """SELECT customer, SUM(amount) AS total, AVG(amount) AS mean, COUNT(amount) AS paid
FROM orders GROUP BY customer"""
DAMAGES = [
    ('UPDATE t SET "__st_n" = 0 WHERE customer = 1', "__st_n, the number of its rows"),
    ('UPDATE t SET "__st_n" = NULL WHERE customer = 1', "__st_n, the number of its rows"),
    ("UPDATE t SET paid = 3 WHERE customer = 1", "paid, a count"),
    ("UPDATE t SET paid = -1 WHERE customer = 1", "paid, a count"),
    ("UPDATE t SET total = NULL WHERE customer = 1", "total is NULL exactly if"),
    ("UPDATE t SET mean = mean + 1 WHERE customer = 1", "mean follows from the state"),
    ("UPDATE t SET mean = NULL WHERE customer = 1", "mean follows from the state"),
    ("INSERT INTO t FROM t WHERE customer IS NULL", "copies"),
]


@pytest.mark.parametrize(("damage", "said"), DAMAGES, ids=[d for d, _ in DAMAGES])
def test_a_damaged_row_is_found(damage: str, said: str, database: Database) -> None:
    with database.fresh():
        rows = [("1", "1", "5"), ("2", "1", "7"), ("3", "2", "1"), ("4", "NULL", "NULL")]
        database.hold("orders@before", rows)
        stored = Stored(database, Prepared(plan_of(SUMS)))
        assert broken(database, stored) == []
        database.run(damage.replace(" t ", f' "{Stored.TABLE}" '))
        found = broken(database, stored)
        assert found and found[0].startswith(said)


def test_one_row_is_all_that_a_query_without_groups_has(database: Database) -> None:
    with database.fresh():
        stored = Stored(database, Prepared(plan_of("SELECT COUNT(*) AS n FROM orders")))
        assert broken(database, stored) == []
        database.run(f'INSERT INTO "{stored.TABLE}" FROM "{stored.TABLE}"')
        assert broken(database, stored) == ["too many"]


@pytest.mark.parametrize(
    ("query", "most"),
    [
        ("SELECT id FROM orders", None),
        ("SELECT id FROM orders ORDER BY id LIMIT 3", 3),
        ("SELECT id AS n FROM orders ORDER BY amount, id LIMIT 3 OFFSET 2", 3),
        ("SELECT id FROM orders ORDER BY id", None),
    ],
)
def test_the_first_rows_of_an_order_are_so_many(query: str, most: int | None) -> None:
    assert Invariants(plan_of(query), {}).most_rows == most
