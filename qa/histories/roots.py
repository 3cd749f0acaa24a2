"""The stream tables over the table: for each kind of root some queries, of which a history has one.

No query leaves an answer open (ties, sums of floats, the extremum of two zeros): plain Spark gives
the same rows each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from dagster_streamtables import StreamTable
from dagster_streamtables.runtime.model.stream_table import CdcMode
from qa.histories.rows import some_rows
from qa.histories.world import World

QUERIES: dict[str, tuple[str, ...]] = {
    "bag": (
        "SELECT id, g, v, x, s, arr, bin FROM t",
        "SELECT id, g, txt, c, d, ts, nt, f, small FROM t WHERE g > 0 OR g IS NULL",
        "SELECT id, g, s.a AS a, s.b AS b, s.z AS z, m['a'] AS ma, -x AS minus FROM t",
        "SELECT id, g, each FROM t LATERAL VIEW explode(arr) AS each",
        "SELECT id, g, named_struct('x', x, 's', s) AS both, array(x, f) AS floats FROM t",
        "SELECT g, CAST(ts AS STRING) AS at, year(d) AS y, upper(c) AS c FROM t",
        "SELECT g, HOUR(ts) AS hour, nt, nt + INTERVAL '1' HOUR AS later, TYPEOF(nt) AS type FROM t"
        " WHERE nt < DATE'3000-01-01'",
        "SELECT id, g, x FROM t UNION ALL SELECT id, k, w FROM u",
        "SELECT g, x, f FROM t",
        "SELECT g, ts, nt, d FROM t WHERE x IS NOT NULL",
    ),
    "fold": (
        "SELECT g, COUNT(*) AS n, COUNT(v) AS nv, SUM(v) AS total, MIN(d) AS least, MAX(ts) AS last"
        " FROM t GROUP BY g",
        "SELECT s.a AS a, txt, COUNT(*) AS n, MAX(nt) AS last, AVG(v) AS mean FROM t"
        " GROUP BY s.a, txt",
        "SELECT COUNT(*) AS n, SUM(id) AS ids, MIN(txt) AS first FROM t",
        "SELECT x, COUNT(*) AS n, SUM(small) AS smalls FROM t GROUP BY x",
        "SELECT c, ts, COUNT(*) AS n, MAX(d) AS d FROM t GROUP BY c, ts",
        "SELECT s, arr, COUNT(*) AS n FROM t GROUP BY s, arr",
        "SELECT g, f, x, COUNT(*) AS n FROM t GROUP BY g, f, x",
    ),
    "regroup": (
        "SELECT g, COUNT(DISTINCT txt) AS texts, COUNT(DISTINCT x) AS xs FROM t GROUP BY g",
        "SELECT g, sort_array(collect_list(id)) AS ids, bool_or(v > 0) AS some FROM t GROUP BY g",
        "SELECT c, sort_array(collect_set(d)) AS days FROM t GROUP BY c",
        "SELECT g, c, COUNT(*) AS n, MIN(ts) AS t0 FROM t GROUP BY GROUPING SETS ((g), (c), ())",
    ),
    "keyed": (
        "SELECT id, g, x, RANK() OVER (PARTITION BY g ORDER BY d, id) AS place FROM t",
        "SELECT id, g, x, s.z AS z, SUM(v) OVER (PARTITION BY id) AS total FROM t",
        "SELECT id, g, d, arr FROM t"
        " QUALIFY DENSE_RANK() OVER (PARTITION BY g ORDER BY ts DESC NULLS LAST) <= 2",
        "SELECT id, g, txt FROM t ORDER BY id, g, txt LIMIT 4",
        "SELECT id, c, COUNT(*) OVER (PARTITION BY c) AS n FROM t",
        "SELECT g, x, COUNT(*) OVER (PARTITION BY x, g) AS n FROM t",
        "SELECT f, x, ts FROM t QUALIFY RANK() OVER (PARTITION BY f ORDER BY ts) = 1",
    ),
    "recursive": (
        "WITH RECURSIVE r AS (SELECT id, g, 0 AS depth FROM t WHERE g = 0 UNION ALL"
        " SELECT t.id, t.g, r.depth + 1 FROM r JOIN t ON t.g = r.id WHERE r.depth < 3)"
        " SELECT id, g, depth FROM r",
        "WITH RECURSIVE r AS (SELECT id, x, 0 AS depth FROM t WHERE id = 1 UNION ALL"
        " SELECT u.id, r.x, r.depth + 1 FROM r JOIN u ON u.k = r.id WHERE r.depth < 3)"
        " SELECT id, x, depth FROM r",
    ),
    "intermediate": (
        "SELECT n, COUNT(*) AS groups FROM (SELECT g, COUNT(*) AS n FROM t GROUP BY g) GROUP BY n",
        "SELECT t.id, t.x FROM t JOIN (SELECT g, MAX(d) AS d FROM t GROUP BY g"
        " HAVING COUNT(*) > 1) AS m ON t.g = m.g AND t.d = m.d",
        "SELECT id, x, c FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.g)",
        "SELECT o.id, o.v FROM t AS o WHERE o.v >= (SELECT AVG(i.v) FROM t AS i WHERE i.g = o.g)",
        "SELECT id, arr FROM t WHERE g NOT IN (SELECT k FROM u WHERE k IS NOT NULL)",
    ),
    "distinct": (
        "SELECT DISTINCT g, c, d FROM t",
        "SELECT DISTINCT x, s.z AS z FROM t",
        "SELECT id, ts FROM t UNION SELECT id, at FROM u",
        "SELECT DISTINCT s, bin FROM t",
    ),
    "join": (
        "SELECT t.id, t.x, t.ts, u.label FROM t JOIN u ON t.g = u.k",
        "SELECT t.id, t.s, u.label, u.w FROM t LEFT JOIN u ON t.g = u.k",
        "SELECT t.id, t.d, u.label, u.w FROM t FULL JOIN u ON t.id = u.id AND t.g = u.k",
        "SELECT a.id, a.x, b.nt FROM t AS a JOIN t AS b ON a.id = b.g",
        "SELECT t.id, t.c, u.k FROM t JOIN u ON t.c = u.label",
        "SELECT t.id, t.arr FROM t ANTI JOIN u ON t.x = u.w",
        "SELECT t.x, t.f, u.w, u.label FROM t LEFT JOIN u ON t.x = u.w",
    ),
    "set-operation": (
        "SELECT id, g FROM t EXCEPT ALL SELECT id, k FROM u",
        "SELECT id, ts FROM t INTERSECT SELECT id, at FROM u",
        "SELECT x FROM t EXCEPT SELECT w FROM u",
        "SELECT c FROM t INTERSECT ALL SELECT label FROM u",
    ),
    # Their numbers are whole: as canonical JSON, -0.0 would be 0.0.
    "maps": (
        "SELECT id, g, m FROM t",
        "SELECT MAP('b', txt, 'a', c) AS k, COUNT(*) AS n, SUM(id) AS ids FROM t"
        " GROUP BY MAP('b', txt, 'a', c)",
        "SELECT t.id, t.m, u.label FROM t LEFT JOIN u ON t.g = u.k",
        "SELECT id, m, RANK() OVER (PARTITION BY g ORDER BY d, id) AS place FROM t",
        "SELECT id, m FROM t UNION ALL SELECT id, MAP(label, k) FROM u WHERE label IS NOT NULL",
        "SELECT id, MAP('g', m) AS both, ARRAY(m) AS list FROM t",
    ),
    "over-another": (
        "SELECT g, COUNT(*) AS n FROM bag GROUP BY g",
        "SELECT bag.g, u.label FROM bag JOIN u ON bag.g = u.k",
    ),
}


@dataclass(frozen=True)
class Root:
    """A stream table of a history."""

    kind: str
    table: StreamTable
    by_spark: bool
    """Spark computes the change and writes it, however small."""
    pace: int
    """It is refreshed after each step, or after every second or third: as all of a history are."""

    @property
    def name(self) -> str:
        return self.table.name


def some_roots(seed: str, kinds: Sequence[str] = (), zone: str = "UTC") -> list[Root]:
    """One of each kind that is named, or of all, in an order in which they can be refreshed.

    What a root is depends on its kind alone: it stays as it is when others are left out.
    """
    pace = Random(seed).choice((1, 1, 2, 3))
    return [
        _root(kind, pace, Random(f"{seed} {kind}"), zone)
        for kind in QUERIES
        if kind in (kinds or QUERIES)
    ]


def _root(kind: str, pace: int, random: Random, zone: str) -> Root:
    table = StreamTable(
        kind.replace("-", "_"),
        random.choice(QUERIES[kind]),
        differential_max_change_ratio=0,
        max_consecutive_errors=0,
        session_timezone=zone,
        cdc_mode=random.choice((CdcMode.AUTO, CdcMode.AUTO, CdcMode.SNAPSHOT)),
    )
    return Root(kind, table, by_spark=random.random() < 0.3, pace=pace)


def _other_rows(random: Random) -> pa.Table:
    kinds = {"id": "long", "k": "integer", "label": "string", "w": "double", "at": "timestamp"}
    fields = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in kinds.items()]
    rows = some_rows(random, fields, random.randrange(1, 4))
    few = pa.array([None if v is None else v % 4 for v in rows["k"].to_pylist()], pa.int32())
    return rows.set_column(1, "k", few)


def make_other(world: World, random: Random) -> None:
    """The source that the table is joined with."""
    feed = {"delta.enableChangeDataFeed": "true"} if random.random() < 0.5 else None
    write_deltalake(str(world.u), _other_rows(random), configuration=feed)


def change_other(world: World, random: Random) -> None:
    other = DeltaTable(str(world.u))
    match random.randrange(4):
        case 0:
            other.delete(random.choice(("k = 1", "id = 3", "k IS NULL")))
        case 1:
            other.update(updates={"k": "k + 1"}, predicate="k = 1")
        case _:
            write_deltalake(str(world.u), _other_rows(random), mode="append")
