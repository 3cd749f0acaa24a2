"""Texts whose type says more than STRING.

A file may hold a CHAR(n) without its padding, and whoever reads it sees it padded. Of a column that
is declared with a collation the log says STRING, and the rest in metadata: Delta creates such a
table where its check of types is off, and reads it in any session.
"""

from __future__ import annotations

import pytest
from deltalake import DeltaTable

from dagster_streamtables import Action, Lake, Mode, StreamTable
from dagster_streamtables.errors import UnsupportedQuery
from runtime.delta import create, on_spark, stored
from runtime.refreshes import each_followed, maintained, refreshed

OF_CHAR = {
    "bag": "SELECT id, c, part, list FROM t WHERE c = 'ab' OR part.c <> 'ab'",
    "groups": "SELECT c, part.c AS p, COUNT(*) AS n, MAX(v) AS v FROM t GROUP BY c, part.c",
    "both": "SELECT c FROM t UNION ALL SELECT v FROM t UNION ALL SELECT name FROM names",
    "joined": "SELECT t.id, n.name FROM t JOIN names AS n ON t.c = n.code AND t.c IN ('ab', 'cd')",
    "having": "SELECT g.c, g.n FROM (SELECT c, COUNT(*) AS n FROM t GROUP BY c) AS g "
    "WHERE g.c = 'ab'",
}


@pytest.mark.long
@pytest.mark.parametrize("feed", [True, False], ids=["feed", "files"])
def test_what_came_is_seen_as_its_readers_see_it(feed: bool, lake: Lake) -> None:
    columns = "id INT, c CHAR(5), v VARCHAR(9), part STRUCT<c: CHAR(4)>, list ARRAY<CHAR(3)>"
    create(lake, "t", columns, enableChangeDataFeed=feed)
    create(lake, "names", "code CHAR(7), name STRING")
    on_spark(lake, "INSERT INTO {names} VALUES ('ab', 'a name of many letters'), ('cd', 'cd')")
    rows = "('ab', 'ab', STRUCT('ab'), ARRAY('a')), ('cd', 'x ', STRUCT('cd'), ARRAY())"

    def add(*ids: int) -> None:
        on_spark(lake, f"INSERT INTO {{t}} SELECT id, v.* FROM VALUES {rows} AS v "
                  f"CROSS JOIN (SELECT explode(ARRAY{ids}) AS id)")  # fmt: skip

    add(1, 2)
    tables = [maintained(n, OF_CHAR[n]) for n in OF_CHAR]
    for table in tables:
        refreshed(lake, table)
        assert "CHAR" not in DeltaTable(lake.location(table.name)).schema().to_json()
    add(3, 4)
    on_spark(lake, "DELETE FROM {t} WHERE id = 1")
    each_followed(lake, *tables)


USES = [
    "SELECT id, name FROM {t}",
    "SELECT name, COUNT(*) AS n FROM {t} GROUP BY name",
    "SELECT DISTINCT s.n AS n FROM {t}",
    "SELECT MAX(name) AS m FROM {t}",
    "SELECT id FROM {t} WHERE name = 'A'",
    "SELECT a.id FROM {t} AS a JOIN {t} AS b USING (name)",
    "SELECT id, tags FROM {t}",
]


@pytest.fixture
def collated(lake: Lake) -> str:
    """The name of a table with collations in a column, a list and a struct."""
    on_spark(
        lake,
        "CREATE TABLE {collated} (id INT, name STRING COLLATE UTF8_LCASE, plain STRING, "
        "tags ARRAY<STRING COLLATE UNICODE_CI>, s STRUCT<n: STRING COLLATE UTF8_LCASE>) "
        "USING delta",
        {"spark.databricks.delta.schema.typeCheck.enabled": "false"},
    )
    add(lake, 1, "A")
    return "collated"


def add(lake: Lake, number: int, name: str) -> None:
    row = f"({number}, '{name}', '{name}', array('{name}'), struct('{name}'))"
    on_spark(lake, f"INSERT INTO {{collated}} VALUES {row}")


@pytest.mark.parametrize("query", USES)
def test_a_query_that_uses_such_a_column_is_refused(query: str, collated: str, lake: Lake) -> None:
    with pytest.raises(UnsupportedQuery, match="collate U") as refusal:
        lake.refresh(StreamTable("uses", query.format(t=collated)))
    assert "has the type" in refusal.value.what
    assert "CAST" in refusal.value.fix or "cast" in refusal.value.fix


def test_a_query_over_its_other_columns_follows_it(collated: str, lake: Lake) -> None:
    table = maintained("others", "SELECT plain, COUNT(*) AS n FROM collated GROUP BY plain")
    refreshed(lake, table)
    add(lake, 2, "a")
    assert refreshed(lake, table).action is Action.DIFFERENTIAL
    assert set(stored(lake, "others", ["plain", "n"])) == {("A", "1"), ("a", "1")}


@pytest.mark.long
def test_mode_full_compares_as_spark_does(collated: str, lake: Lake) -> None:
    table = StreamTable("full", "SELECT COUNT(*) AS n FROM collated GROUP BY name", mode=Mode.FULL)
    refreshed(lake, table)
    add(lake, 2, "a")
    refreshed(lake, table)
    assert set(stored(lake, "full", ["n"])) == {("2",)}
