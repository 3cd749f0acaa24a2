"""The cases of tests/compiler/cases/ as subscriptions: nothing is stored, and what changed is what
the case says.

By default one case of every twentieth file, and one whose change touches no group. `-m long` runs
all of them, as they are written and on random rows.
"""

from __future__ import annotations

import ast
import random
from collections import Counter
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from changes.reading import contents, ready
from changes.table import Table
from compiler.casefile import Case
from compiler.database import TABLES, Database
from dagster_streamtables import Lake, subscribe
from dagster_streamtables.compiler import compile_query
from dagster_streamtables.errors import RefusedOperation, RejectedQuery
from runtime.delta import _shown, outputs, run_on_delta, write, write_from
from runtime.test_cases_on_delta import (
    _numbers,
    by_file,
    cases,
    database,
    new,
    richest,
    write_random,
)

__all__ = ["database", "new"]
pytestmark = pytest.mark.spark

_IDLE = "a change that WHERE keeps out touches no group, not even the one of no keys"
FEW = [
    *(case for case in cases if case.name == _IDLE),
    *(pytest.param(richest(group), marks=pytest.mark.long) for group in by_file[20::40]),
]
SEED, WINDOWS = 7, 3


@pytest.mark.parametrize("case", FEW, ids=str)
def test_a_few_cases(case: Case, database: Database, new: Lake) -> None:
    test_every_case(case, database, new)


@pytest.mark.long
@pytest.mark.parametrize("case", cases, ids=str)
def test_every_case(case: Case, database: Database, new: Lake) -> None:
    plan = compile_query(case.query, TABLES)
    with database.fresh():
        database.write(case.before)
        write_from(database, new, plan.sources, feed=len(case.name) % 2 == 0)
    names = outputs(new, case.query)
    subscription = subscribe(new, case.query, clock="ms")
    before = ready(subscription, names)

    run_on_delta(new, case.change)
    changed = ready(subscription, names)

    rows = [(diff, *map(_shown, row)) for _, diff, *row in changed]
    summed: Counter[Any] = Counter()
    for diff, *row in rows:
        summed[tuple(row)] += diff
    signed = [(f"{diff:+d}", *row) for row, diff in summed.items() if diff]
    # Noon of the cases' own day is over.
    assert _numbers(signed) == _numbers(_expected(case)) or plan.is_time_dependent
    if not plan.is_time_dependent:
        _require_each_once(changed)
    with subscribe(new, case.query, clock="ms") as anew:
        now = ready(anew, names)
    assert _alike(before + changed) == _alike(now)


def _expected(case: Case) -> list[tuple[str, ...]]:
    """The change of a case; a reader is given the JSON text of a VARIANT, without its types."""
    if case.file != "variants":
        return case.expected_of_spark
    summed: Counter[tuple[str, ...]] = Counter()
    for weight, *row in case.expected_of_spark:
        summed[tuple(map(_without_types, row))] += int(weight)
    return [(f"{weight:+d}", *row) for row, weight in summed.items() if weight]


def _without_types(cell: str) -> str:
    if not cell.startswith(("[", "{")):
        return cell
    return _shown(_json_of(ast.literal_eval(cell)))


def _json_of(value: Any) -> Any:
    match value:
        case [str() | None as text, str() | None, str() | None]:
            return text
        case [{"key": _, "value": _}, *_]:
            return [(each["key"], _json_of(each["value"])) for each in value]
        case list():
            return [_json_of(each) for each in value]
        case dict():
            return {key: _json_of(each) for key, each in value.items()}
    return value


def _require_each_once(rows: list[tuple[Any, ...]]) -> None:
    keys = [(row[0], tuple(map(_shown, row[2:]))) for row in rows]
    assert len(keys) == len(set(keys)), rows
    assert all(row[1] for row in rows)


def _alike(rows: list[tuple[Any, ...]]) -> Counter[Any]:
    shown = [(row[0], row[1], *map(_shown, row[2:])) for row in rows]
    return contents(shown, max((row[0] for row in rows), default=0))


@pytest.mark.long
@pytest.mark.parametrize("group", by_file, ids=lambda group: group[0].file)
def test_random_rows(group: list[Case], database: Database, new: Lake) -> None:
    """All cases of a file over the same random rows, several windows in a row."""
    chance = random.Random(SEED)
    followed = [case for case in group if not compile_query(case.query, TABLES).is_time_dependent]
    with database.fresh():
        write_random(database, new, chance, "append")
        open_ = {case: subscribe(new, case.query, clock="ms") for case in followed}
        read = {case: ready(each) for case, each in open_.items()}
        for _ in range(WINDOWS):
            write_random(database, new, chance, "overwrite")
            for case, each in open_.items():
                changed = ready(each)
                _require_each_once(changed)
                read[case] += changed
                with subscribe(new, case.query, clock="ms") as anew:
                    now = ready(anew)
                assert _alike(read[case]) == _alike(now), str(case)


def test_days_are_those_of_the_zone_that_is_asked_for(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    schema = pa.schema([("k", pa.int64()), ("at", pa.timestamp("us", tz="UTC"))])
    table = Table.new(lake.location("t"), schema)
    table.insert((1, datetime(2026, 7, 1, 21, 59, tzinfo=UTC)))
    table.insert((2, datetime(2026, 7, 1, 22, 1, tzinfo=UTC)))
    query = "SELECT k, CAST(at AS DATE) AS day FROM t"
    first, second = date(2026, 7, 1), date(2026, 7, 2)

    for zone, days in (
        ("UTC", {(1, first), (2, first)}),
        ("Europe/Berlin", {(1, first), (2, second)}),
    ):
        with subscribe(lake, query, as_of=1, up_to=3, session_timezone=zone) as sub:
            rows = sub.fetch(None).to_pylist()
            token = sub.token
        assert {(row["k"], row["day"]) for row in rows} == days

    with pytest.raises(RefusedOperation, match="another subscription"):
        subscribe(lake, query, resume=token)


def test_a_query_that_spark_does_not_run_is_told(new: Lake) -> None:
    write(new, "orders", pa.table({"id": [1]}))
    query = "SELECT id FROM orders ORDER BY (ROW_NUMBER() OVER (ORDER BY id DESC)), id LIMIT 1"
    with pytest.raises(RejectedQuery, match="UNSUPPORTED_EXPR"):
        subscribe(new, query)
