"""MAP and VARIANT columns of real Delta tables.

Rows that differ in the order of a map's entries stay what they are; a VARIANT is what plain Spark
says.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest
from pyspark.sql import DataFrame, SparkSession
from sqlglot import exp

from changes.reading import ready
from dagster_streamtables import Action, Lake, StreamTable, subscribe
from dagster_streamtables.compiler import comparable_columns
from dagster_streamtables.compiler.operators.comparable import variant_form
from dagster_streamtables.runtime.spark.settings import settings_for_now
from runtime.delta import create, on_spark
from runtime.refreshes import each_refreshed, maintained, refreshed


@contextmanager
def _following(lake: Lake, relations: list[str]) -> Iterator[Callable[[], dict[str, Counter[str]]]]:
    """Subscriptions, and the rows that each has been told of up to now."""
    with ExitStack() as held:
        followers = {each: held.enter_context(subscribe(lake, each)) for each in relations}
        told: dict[str, Counter[str]] = {each: Counter() for each in relations}

        def now() -> dict[str, Counter[str]]:
            for relation, follower in followers.items():
                for _, diff, *row in ready(follower):
                    told[relation][repr(row)] += diff
            return {relation: +rows for relation, rows in told.items()}

        yield now


APART = [
    "CAST(NULL AS VARIANT)",
    *(f"parse_json('{text}')" for text in ("null", "1", "1.0", "1e0", "1.5", "15e-1", '"1"')),
    *(f"parse_json('{text}')" for text in ("{}", "[]", "[null]", "[[]]", "[{}]", '{"a":null}')),
    *(f"parse_json('{text}')" for text in ("true", '"true"', '"null"', '[1,"x"]', '[1,"x",{}]')),
    *(f"parse_json('{text}')" for text in ("[1,1.0]", "[1.0,1]", "[1,1]", "[1.0,1.0]", "[1e0,1]")),
    *(f"parse_json('[{{\"a\":{text}}}]')" for text in ("[1,1.0]", "[1.0,1]", "[[1,1.0]]")),
    "parse_json('{\"a\":[1,1.0],\"b\":[1]}')",
    "parse_json('{\"a\":[1,1],\"b\":[1.0]}')",
    "parse_json('{\"a b\":1}')",
    "parse_json('{\"a\":{\"b\":1}}')",
    "CAST(CAST('-0.0' AS DOUBLE) AS VARIANT)",
    "CAST(CAST('NaN' AS DOUBLE) AS VARIANT)",
    "CAST(CAST('NaN' AS FLOAT) AS VARIANT)",
    "CAST('NaN' AS VARIANT)",
    "CAST(CAST(1.5 AS FLOAT) AS VARIANT)",
    "CAST(X'0102' AS VARIANT)",
    "CAST('AQI=' AS VARIANT)",
    "CAST(DATE '2024-10-27' AS VARIANT)",
    "CAST('2024-10-27' AS VARIANT)",
    "CAST(TIMESTAMP '2024-10-27 00:30:00 UTC' AS VARIANT)",
    "CAST(TIMESTAMP '2024-10-27 01:30:00 UTC' AS VARIANT)",
    "CAST(TIMESTAMP_NTZ '2024-10-27 00:30:00' AS VARIANT)",
    "CAST('2024-10-27 00:30:00' AS VARIANT)",
    "CAST('2024-10-27 00:30:00+00:00' AS VARIANT)",
    *(f"CAST(array({', '.join(two)}) AS VARIANT)" for two in (
        ("CAST(DATE '2024-10-27' AS VARIANT)", "CAST('2024-10-27' AS VARIANT)"),
        ("CAST('2024-10-27' AS VARIANT)", "CAST(DATE '2024-10-27' AS VARIANT)"),
        ("CAST(1.5F AS VARIANT)", "CAST(1.5D AS VARIANT)"),
        ("CAST(1.5D AS VARIANT)", "CAST(1.5F AS VARIANT)"),
        ("CAST(1.5F AS VARIANT)", "CAST(1.5F AS VARIANT)"),
    )),
    "parse_json(concat(repeat('[', 300), '1,1.0', repeat(']', 300)))",
    "parse_json(concat(repeat('[', 300), '1.0,1', repeat(']', 300)))",
    "CAST(repeat('x', 100000) AS VARIANT)",
    "CAST(repeat('x', 100001) AS VARIANT)",
]  # fmt: skip
"""No two of these are one value to every function of Spark."""
ALIKE = [
    ('parse_json(\'{"a":1,"b":2}\')', 'parse_json(\'{"b":2, "a":1}\')'),
    ("parse_json('{\"a\":1}')", "to_variant_object(map('a', 1))"),
    ("parse_json('{\"a\":1}')", 'parse_json(\'{"x":[{"a":1}],"y":2}\'):x[0]'),
    ("parse_json('1.0')", "parse_json('1.00')"),
    ("CAST(1.5BD AS VARIANT)", "CAST(CAST(1.5 AS DECIMAL(20,9)) AS VARIANT)"),
    ("CAST(1Y AS VARIANT)", "CAST(1L AS VARIANT)"),
    ("parse_json('[1, 1.0]')", "parse_json('[1,1.00]')"),
]
"""Other bytes, and the same to every function."""


@pytest.mark.parametrize("zone", [pytest.param("UTC", marks=pytest.mark.long), "Europe/Berlin"])
def test_a_form_tells_apart_what_spark_does(spark: SparkSession, zone: str) -> None:
    form = variant_form(exp.column("v")).sql("spark")
    made = " UNION ALL ".join(
        f"SELECT {number} AS n, {value} AS v" for number, value in enumerate(APART)
    )
    pairs = " UNION ALL ".join(f"SELECT {one} AS v, {other} AS w" for one, other in ALIKE)
    with settings_for_now(spark, {"spark.sql.session.timeZone": zone}):
        rows = spark.sql(f"SELECT n, {form} AS f FROM ({made})").collect()
        other = variant_form(exp.column("w")).sql("spark")
        same = spark.sql(f"SELECT {form} AS f, {other} AS g FROM ({pairs})").collect()
    numbers: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        numbers.setdefault(tuple(row["f"]), []).append(APART[row["n"]])
    assert [each for each in numbers.values() if len(each) > 1] == []
    assert [row for row in same if row["f"] != row["g"]] == []
    assert [row["f"][0] for row in rows if "01:30:00 UTC" in APART[row["n"]]] == [
        '"2024-10-27 01:30:00+00:00"'
    ]


COLUMNS = "k INT, n INT, v VARIANT, s STRUCT<x: INT, l: ARRAY<VARIANT>>, m MAP<STRING, VARIANT>"
VALUES = [
    "NULL", "parse_json('null')", "parse_json('1')", "parse_json('1.0')", "parse_json('1e0')",
    "parse_json('\"1\"')", "parse_json('[1,1.0]')", "parse_json('[1.0,1]')",
    "parse_json('{\"a\":1,\"b\":[]}')", "parse_json('{\"b\":[],\"a\":1}')", "CAST(-0D AS VARIANT)",
    "CAST(0D AS VARIANT)", "CAST(DATE '2024-10-27' AS VARIANT)", "CAST('2024-10-27' AS VARIANT)",
]  # fmt: skip
TABLES = {
    "whole": "SELECT * FROM t",
    "above": "SELECT k, v, v:a::INT AS a, s, m FROM whole WHERE n < 4",
    "nested": "SELECT k, array(v, v) AS l, map('x', v) AS m, named_struct('v', v) AS s FROM t",
    "chosen": "SELECT k, max_by(v, n) AS v, COUNT(v) AS c, first(v) AS f FROM t GROUP BY k",
    "joined": "SELECT t.k, t.v, u.v AS w FROM t LEFT JOIN t AS u ON t.k = u.n",
    "several": "SELECT n, v FROM t WHERE k > 1 UNION ALL SELECT k, v FROM t",
    "ranked": "SELECT k, v FROM (SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY n, v IS "
    "NULL) AS r FROM t) WHERE r = 1",
    "few": "SELECT k, v FROM t LIMIT 3",
    "entries": "SELECT t.k, e.pos, e.value FROM t, LATERAL variant_explode(t.v) AS e",
    "windowed": "SELECT k, v, lag(v) OVER (ORDER BY k) AS x FROM t",
}
OPEN = {"chosen", "few", "ranked", "windowed"}
"""They have several answers, of which plain Spark may give another."""
FOLLOWED = [
    "t",
    "whole",
    "SELECT k, v, s, m FROM t",
    "SELECT k, max_by(v, n) AS v FROM t GROUP BY k",
]


def _row(chance: random.Random) -> str:
    v, w = chance.choice(VALUES), chance.choice(VALUES)
    struct = chance.choice(["NULL", f"named_struct('x', 1, 'l', array({v}, {w}))"])
    pairs = chance.choice(["NULL", "map()", f"map('a', {v}, 'b', {w})"])
    return f"({chance.randrange(4)}, {chance.randrange(6)}, {v}, {struct}, {pairs})"


def _step(chance: random.Random) -> str:
    rows = ", ".join(_row(chance) for _ in range(chance.randrange(1, 5)))
    k, n = chance.randrange(4), chance.randrange(6)
    return chance.choice(
        [
            f"INSERT INTO {{t}} VALUES {rows}",
            f"DELETE FROM {{t}} WHERE k = {k} AND n >= {n}",
            f"UPDATE {{t}} SET v = {chance.choice(VALUES)} WHERE k = {k} OR n = {n}",
            "UPDATE {t} SET v = parse_json('1.0') WHERE to_json(v) = '1'",
            f"UPDATE {{t}} SET n = {n} WHERE k = {k}",
        ]
    )


@pytest.mark.long
@pytest.mark.parametrize(("vectors", "seed"), [("true", 2), ("false", 3)], ids=["vectors", "files"])
def test_variants_are_stored_and_compared(lake: Lake, vectors: str, seed: int) -> None:
    chance = random.Random(seed)
    create(lake, "t", COLUMNS, enableDeletionVectors=vectors)
    on_spark(lake, f"INSERT INTO {{t}} VALUES {', '.join(_row(chance) for _ in range(12))}")
    tables = [maintained(*each) for each in TABLES.items()]
    each_refreshed(lake, *tables)
    for _ in range(3):
        step = _step(chance)
        on_spark(lake, step)
        for table in tables:
            done = refreshed(lake, table)
            assert done.action in (Action.DIFFERENTIAL, Action.NO_DATA), (step, done)
            if table.name not in OPEN:
                _is_its_query(lake, table, step)


def _is_its_query(lake: Lake, table: StreamTable, step: str) -> None:
    """Plain Spark runs the text itself; both sides become text, to the last element."""
    text = re.sub(r"FROM (whole|t)\b", r"FROM {\1} AS \1", table.query)
    text = text.replace("JOIN t AS", "JOIN {t} AS")
    expected, actual = _texts(on_spark(lake, text)), _texts(lake.read(table.name))
    assert actual == expected, (table.name, step)


def _texts(rows: DataFrame) -> Counter[str]:
    from pyspark.sql import functions as F

    types = {field.name: field.dataType.simpleString() for field in rows.schema.fields}
    forms = comparable_columns(types)
    shown = [F.expr(forms.get(name, f"`{name}`")).alias(name) for name in types]
    return Counter(repr(row) for row in rows.select(*shown).collect())


@pytest.mark.long
def test_followers_are_given_json(lake: Lake) -> None:
    chance = random.Random(4)
    create(lake, "t", COLUMNS, enableDeletionVectors=False)
    on_spark(lake, f"INSERT INTO {{t}} VALUES {', '.join(_row(chance) for _ in range(8))}")
    whole = StreamTable("whole", TABLES["whole"])
    refreshed(lake, whole)
    with _following(lake, FOLLOWED) as told:
        for _ in range(2):
            for name, rows in told().items():
                assert rows == _json(lake, name), name
            on_spark(lake, _step(chance))
            refreshed(lake, whole)


def _json(lake: Lake, name: str) -> Counter[str]:
    columns = {
        "v": "to_json(v)",
        "s": "CASE WHEN s IS NOT NULL THEN named_struct('x', s.x, 'l', transform(s.l, e -> "
        "to_json(e))) END",
        "m": "map_from_entries(transform(map_entries(m), e -> struct(e.key, to_json(e.value))))",
    }
    shown = (
        "k, v" if "max_by" in name else "k, v, s, m" if name.startswith("S") else "k, n, v, s, m"
    )
    names = sorted(shown.split(", "))
    listed = ", ".join(f"{columns.get(each, each)} AS {each}" for each in names)
    source = f"({name.replace('FROM t', 'FROM {t}')})" if name.startswith("S") else "{t}"
    rows = on_spark(lake, f"SELECT {listed} FROM {source}").toArrow().to_pylist()
    return Counter(repr([row[each] for each in names]) for row in rows)


@pytest.mark.long
def test_a_table_gets_variants_where_it_had_none(lake: Lake) -> None:
    """Delta allows a table only the types of its features, unless it is a new one."""
    create(lake, "t", COLUMNS, enableDeletionVectors=False)
    on_spark(lake, "INSERT INTO {t} VALUES (1, 1, parse_json('[1]'), NULL, NULL)")
    refreshed(lake, StreamTable("x", "SELECT k FROM t"))
    table = StreamTable("x", "SELECT k, v FROM t")
    assert refreshed(lake, table).action is Action.REINITIALIZE
    assert refreshed(lake, table, full=True).action is Action.FULL
    assert (lake.columns("x") or {})["v"] == "variant"
    on_spark(lake, "UPDATE {t} SET v = parse_json('[1.0]')")
    assert refreshed(lake, table).action is Action.DIFFERENTIAL


@pytest.mark.long
def test_a_difference_in_a_type_alone_is_found(lake: Lake) -> None:
    create(lake, "t", COLUMNS, enableDeletionVectors=False)
    on_spark(lake, "INSERT INTO {t} VALUES (1, 1, parse_json('[1,1.0]'), NULL, NULL)")
    table = StreamTable("x", "SELECT k, v FROM t")
    refreshed(lake, table)
    on_spark(lake, "UPDATE {x} SET v = parse_json('[1.0,1]')")
    found = lake.check(table)
    assert (found.equal, found.missing, found.unexpected) == (False, 1, 1)
    refreshed(lake, table)


MAPS = "k INT, m MAP<STRING, INT>, s STRUCT<x: INT, m: MAP<STRING, MAP<INT, STRING>>>"
FIRST = """
    (1, map('a', 1, 'b', 2), named_struct('x', 1, 'm', map('q', map(1, 'x')))),
    (1, map('b', 2, 'a', 1), named_struct('x', 1, 'm', map('q', map(1, 'x')))),
    (1, map('b', 2, 'a', 1), named_struct('x', 1, 'm', map('q', map(1, 'x')))),
    (2, map(), NULL), (3, NULL, named_struct('x', 2, 'm', NULL))
"""
STEPS = [
    "INSERT INTO {t} VALUES (1, map('a', 1, 'b', 2), NULL), (4, map('c', NULL), NULL)",
    "DELETE FROM {t} WHERE k = 1 AND map_keys(m)[0] = 'b'",
    "UPDATE {t} SET m = map('b', 2, 'a', 1), s = named_struct('x', 1, 'm', map('q', map(2, NULL))) "
    "WHERE k = 1 AND s IS NOT NULL",
    "UPDATE {t} SET m = map_from_entries(reverse(map_entries(m))) WHERE k = 1",
    "DELETE FROM {t} WHERE k IN (2, 3)",
]
OVER_MAPS = {
    "whole": "SELECT * FROM t",
    "above": "SELECT k, to_json(m) AS j, CAST(s AS STRING) AS s FROM whole",
    "groups": "SELECT x, COUNT(*) AS n FROM "
    "(SELECT transform_values(m, (k, v) -> CAST(v AS STRING)) "
    "AS x FROM t) GROUP BY x",
    "nested": "SELECT s, MAX(k) AS k FROM t GROUP BY s",
    "lists": "SELECT k, collect_list(m) AS l, first(m) AS f FROM t GROUP BY k",
}


@pytest.mark.long
@pytest.mark.parametrize("vectors", ["true", "false"], ids=["vectors", "files"])
def test_maps_are_stored_grouped_and_followed(lake: Lake, vectors: str) -> None:
    create(lake, "t", MAPS, enableDeletionVectors=vectors)
    on_spark(lake, f"INSERT INTO {{t}} VALUES {FIRST}")
    tables = [maintained(*each) for each in OVER_MAPS.items()]
    each_refreshed(lake, *tables)

    with _following(lake, ["t", "whole", "SELECT k, m, s FROM t"]) as told:
        for step in ["", *STEPS]:
            if step:
                on_spark(lake, step)
                for done in each_refreshed(lake, *tables):
                    assert done.action in (Action.DIFFERENTIAL, Action.NO_DATA), (step, done)
            held = on_spark(lake, "SELECT k, m, s FROM {t}").toArrow().to_pylist()
            rows = Counter(repr([row["k"], row["m"], row["s"]]) for row in held)
            assert [*told().values()] == [rows] * 3, step
