"""Stars inside of calls, stars of structs, columns of one name, and parentheses.

The plan is that of the query with its columns written out; what Spark answers is tested in
`runtime/test_as_spark_takes_it.py`.
"""

from __future__ import annotations

import pytest

from compiler.database import TABLES
from dagster_streamtables.compiler import Plan, compile_query
from dagster_streamtables.errors import InvalidDefinition

JOINED = "orders AS o JOIN customers AS c ON o.customer = c.id"
ALIKE = [
    (
        "SELECT hash(*) AS h FROM orders",
        "SELECT hash(orders.id, orders.customer, orders.amount) AS h FROM orders",
    ),
    (
        f"SELECT o.id, struct(c.*, 1 AS one) AS s FROM {JOINED}",
        f"SELECT o.id, struct(c.id AS id, c.region AS region, 1 AS one) AS s FROM {JOINED}",
    ),
    (
        "SELECT to_json(struct(* EXCEPT (id))) AS j FROM orders",
        "SELECT to_json(struct(orders.customer AS customer, orders.amount AS amount)) AS j "
        "FROM orders",
    ),
    (
        "SELECT id FROM orders WHERE coalesce(*) > 1",
        "SELECT id FROM orders WHERE coalesce(orders.id, orders.customer, orders.amount) > 1",
    ),
    (
        "SELECT * EXCEPT (place.x, tags, visits.happened) FROM visits",
        "SELECT id, struct(visits.place.y AS y) AS place FROM visits",
    ),
    (
        "SELECT place.* FROM visits",
        "SELECT visits.place.x AS x, visits.place.y AS y FROM visits",
    ),
    (
        "SELECT v.place.*, id FROM visits AS v",
        "SELECT v.place.x AS x, v.place.y AS y, id FROM visits AS v",
    ),
    (
        "WITH w AS (SELECT struct(*) AS s FROM regions) SELECT s.* FROM w",
        "WITH w AS (SELECT struct(regions.name AS name, regions.country AS country) AS s "
        "FROM regions) SELECT w.s.name AS name, w.s.country AS country FROM w",
    ),
    (
        f"SELECT x.amount, y.region FROM ({JOINED}) AS x "
        "JOIN ((customers)) AS y ON y.id = x.amount",
        f"SELECT x.amount, y.region FROM (SELECT * FROM {JOINED}) AS x "
        "JOIN (SELECT * FROM customers) AS y ON y.id = x.amount",
    ),
    (
        "WITH W AS (SELECT id FROM (((SELECT id FROM orders)))) SELECT w.ID FROM w",
        "WITH w AS (SELECT id FROM (SELECT id FROM orders)) SELECT w.id FROM w",
    ),
    (
        f"SELECT x.region FROM (SELECT * FROM {JOINED}) AS x",
        "SELECT x.region FROM (SELECT o.id AS st_same_0_id, o.customer, o.amount, "
        f"c.id AS st_same_3_id, c.region FROM {JOINED}) AS x",
    ),
    (
        "SELECT x.region, hash(*) AS h, hash(x.* EXCEPT (amount)) AS k "
        f"FROM (SELECT * FROM {JOINED}) AS x",
        "SELECT x.region, hash(x.st_same_0_id, x.customer, x.amount, x.st_same_3_id, x.region) "
        "AS h, hash(x.st_same_0_id, x.customer, x.st_same_3_id, x.region) AS k FROM (SELECT o.id "
        "AS st_same_0_id, o.customer, o.amount, c.id AS st_same_3_id, c.region "
        f"FROM {JOINED}) AS x",
    ),
    (
        "SELECT region, hash(*) AS h FROM (SELECT id, region FROM customers) WHERE id >= "
        "(SELECT MIN(customer) FROM (SELECT id, customer FROM orders))",
        "SELECT region, hash(_1.id, _1.region) AS h FROM (SELECT id, region FROM "
        "customers) AS _1 WHERE _1.id >= "
        "(SELECT MIN(customer) FROM (SELECT id, customer FROM orders))",
    ),
    (
        "SELECT COUNT(* EXCEPT (id)) AS n, COUNT(*, 1) AS m, COUNT(orders.*, id) AS k FROM orders",
        "SELECT COUNT(customer, amount) AS n, COUNT(id, customer, amount, 1) AS m, "
        "COUNT(id, customer, amount, id) AS k FROM orders",
    ),
    (
        "SELECT COUNT(place.*) AS n FROM visits",
        "SELECT COUNT(visits.place.x, visits.place.y) AS n FROM visits",
    ),
]


def _bare(plan: Plan) -> str:
    """Quotes and case aside: a name that is not the author's is quoted."""
    return plan.change_sql().replace("`", "").lower()


@pytest.mark.parametrize(("query", "written_out"), ALIKE)
def test_the_columns_are_those_written_out(query: str, written_out: str) -> None:
    plan, other = compile_query(query, TABLES), compile_query(written_out, TABLES)
    lowered = [[name.lower() for name in each.stored_columns] for each in (plan, other)]
    assert lowered[0] == lowered[1]
    assert _bare(plan) == _bare(other)


@pytest.mark.parametrize(
    ("query", "what"),
    [
        (f"SELECT * FROM (SELECT * FROM {JOINED})", 'two output columns are called "id"'),
        (f"SELECT x.id FROM (SELECT * FROM {JOINED}) AS x", 'column "x.id" is ambiguous'),
        (f"SELECT id, amount FROM (SELECT * FROM {JOINED})", 'column "id" is ambiguous'),
    ],
)
def test_a_repeated_name_cannot_be_mentioned(query: str, what: str) -> None:
    with pytest.raises(InvalidDefinition) as raised:
        compile_query(query, TABLES)
    assert raised.value.what == what
