"""Values that only Spark reads as they are: texts that are no UTF-8, and days of October 1582.

`CAST(value AS STRING)` makes such texts of binary values, and Spark keeps their bytes. Arrow and
delta-rs cannot read them, Delta's reader of the feed replaces them, and the minimum and maximum in
the log are not theirs.
"""

from __future__ import annotations

import pytest

from dagster_streamtables import Lake, subscribe
from dagster_streamtables.errors import SourceProblem
from named_rows import rows_in_order
from runtime.delta import create, on_spark
from runtime.refreshes import each_followed, each_refreshed, maintained, refreshed
from runtime.ways import feeds, writers

TEXTS = "id BIGINT, s STRING"
QUERIES = {
    "bag": "SELECT id, s FROM src",
    "groups": "SELECT s, COUNT(*) AS n, MAX(id) AS most FROM src GROUP BY s",
    "most": "SELECT id % 2 AS odd, MAX(s) AS s, COUNT(*) AS n FROM src GROUP BY id % 2",
    "rows": "SELECT id, ROW_NUMBER() OVER (PARTITION BY s ORDER BY id) AS n FROM src",
}


def stored_bytes(lake: Lake, name: str, columns: str) -> list[tuple[object, ...]]:
    """The rows, and their texts in hexadecimal digits."""
    rows = lake.read(name)
    shown = (f"hex(CAST({n} AS BINARY)) AS {n}" if t == "string" else n for n, t in rows.dtypes)
    return rows_in_order(rows.selectExpr(*shown), columns)


@pytest.mark.long
@feeds
@writers
def test_bytes_stay_as_they_are(feed: bool, lake: Lake) -> None:
    create(lake, "src", TEXTS, enableChangeDataFeed=feed)
    on_spark(lake, "INSERT INTO {src} VALUES (1, 'a'), (2, 'é')")
    tables = [maintained(n, QUERIES[n]) for n in QUERIES]
    each_refreshed(lake, *tables)
    on_spark(
        lake,
        "INSERT INTO {src} VALUES (3, CAST(X'FF61' AS STRING)), (4, CAST(X'FE61' AS STRING)), "
        "(5, CAST(X'FF61' AS STRING))",
    )
    each_refreshed(lake, *tables)
    on_spark(lake, "DELETE FROM {src} WHERE id = 3")
    on_spark(lake, "UPDATE {src} SET s = 'a' WHERE id = 4")
    on_spark(lake, "INSERT INTO {src} VALUES (6, 'é')")
    each_followed(lake, *tables)
    assert stored_bytes(lake, "bag", "id, s") == [
        (1, "61"), (2, "C3A9"), (4, "61"), (5, "FF61"), (6, "C3A9")
    ]  # fmt: skip
    groups = [("61", 2, 4), ("C3A9", 2, 6), ("FF61", 1, 5)]
    assert stored_bytes(lake, "groups", "s, n, most") == groups


@pytest.mark.long
@writers
def test_a_group_is_found_whatever_the_log_says_of_its_file(lake: Lake) -> None:
    """The least text of the file is the byte 93, and U+FFFD in the log, which is more than "é"."""
    create(lake, "src", TEXTS, enableChangeDataFeed=True)
    on_spark(lake, "INSERT INTO {src} SELECT 1, CAST(X'93' AS STRING) UNION ALL SELECT 2, 'é'")
    groups = maintained("groups", QUERIES["groups"])
    joined = maintained(
        "joined", "SELECT a.id, b.id AS other FROM src AS a JOIN src AS b ON a.s = b.s"
    )
    each_refreshed(lake, groups, joined)
    on_spark(lake, "INSERT INTO {src} VALUES (3, 'é')")
    each_refreshed(lake, groups, joined)
    assert stored_bytes(lake, "groups", "s, n, most") == [("93", 1, 1), ("C3A9", 2, 3)]
    assert len(stored_bytes(lake, "joined", "id, other")) == 5


DAYS = {
    "rows": "SELECT id, d, unix_micros(t) AS t, unix_date(l[0]) AS l FROM src",
    "most": "SELECT id > 1 AS high, MAX(d) AS d, MAX(unix_micros(t)) AS t, "
    "MAX(unix_date(l[0])) AS l FROM src GROUP BY id > 1",
}


@pytest.mark.long
@pytest.mark.parametrize("name", [*DAYS])
@writers
def test_days_that_the_old_calendar_skips(name: str, lake: Lake) -> None:
    """They are values, and the reader of the feed moves them: as the greatest of a group, too."""
    columns = "id BIGINT, d DATE, t TIMESTAMP, l ARRAY<DATE>"
    create(lake, "src", columns, enableChangeDataFeed=True)
    row = "{}, DATE '{}', TIMESTAMP '{} 12:00:00', array(DATE '{}')"
    days = ["1582-10-04", "1582-10-05", "1582-10-14", "1582-10-15"]
    rows = ", ".join(f"({row.format(n, day, day, day)})" for n, day in enumerate(days))
    on_spark(lake, f"INSERT INTO {{src}} VALUES {rows}")
    table = maintained(name, DAYS[name])
    for change in (
        "UPDATE {src} SET d = DATE '1582-10-10', t = TIMESTAMP '1582-10-10 01:00:00', "
        "l = array(DATE '1582-10-06') WHERE id < 2",
        "DELETE FROM {src} WHERE id = 2",
    ):
        refreshed(lake, table)
        on_spark(lake, change)
    each_followed(lake, table)


@pytest.mark.long
def test_such_a_day_is_found_in_a_file_that_has_no_other(lake: Lake) -> None:
    """Spark looks for the 15th in its place, and skips the file."""
    create(lake, "src", "id BIGINT, g INT, d DATE")
    on_spark(lake, "INSERT INTO {src} VALUES (1, 3, DATE '1582-10-10'), (2, 3, DATE '1582-10-10')")
    on_spark(lake, "INSERT INTO {src} VALUES (3, 1, DATE '1582-10-15'), (4, 2, DATE '1970-01-01')")
    table = maintained(
        "latest",
        "SELECT a.id FROM src AS a JOIN (SELECT g, MAX(d) AS d FROM src GROUP BY g "
        "HAVING COUNT(*) > 1) AS b ON a.g = b.g AND a.d = b.d",
    )
    refreshed(lake, table)
    on_spark(lake, "DELETE FROM {src} WHERE id > 1")
    assert refreshed(lake, table).action == "DIFFERENTIAL"


@pytest.mark.smoke("a table that only Spark writes")
def test_who_follows_is_told(lake: Lake) -> None:
    create(lake, "src", TEXTS, enableChangeDataFeed=True)
    on_spark(lake, "INSERT INTO {src} VALUES (1, 'a')")
    changes = subscribe(lake, "src")
    mended = subscribe(lake, "SELECT make_valid_utf8(s) AS s FROM src")
    for each in (changes, mended):
        assert each.fetch(None, timeout=0).num_rows == 1
    on_spark(lake, "INSERT INTO {src} VALUES (2, CAST(X'FF61' AS STRING))")
    assert mended.fetch(None, timeout=0).column("s").to_pylist() == ["\ufffda"]
    for each in (changes, subscribe(lake, "src")):
        with pytest.raises(SourceProblem, match="a text is not UTF-8"):
            each.fetch(None, timeout=0)
