"""Traps of the query: time, chance, ties, recursion, errors, and one table by several names."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from dagster_streamtables import Action, Lake, Mode, View
from dagster_streamtables.errors import FailedQuery, UnsupportedQuery
from dagster_streamtables.runtime.delta.delta_log import TableLog
from dagster_streamtables.runtime.delta.logs import Logs
from dagster_streamtables.runtime.refresh import refresh_job
from runtime.delta import held, run_on_delta, stored, write
from runtime.orders import orders, source
from runtime.refreshes import each_followed, each_refreshed, maintained, refreshed

pytestmark = pytest.mark.long


def test_p16_chance_is_found_wherever_it_hides(lake: Lake) -> None:
    view = View("chance", "SELECT rand() AS x FROM orders")
    hidden = {
        "uuid": "SELECT id, CASE WHEN amount > 5 THEN uuid() END AS x FROM orders",
        "rand": "SELECT o.id, l.x FROM orders AS o, LATERAL (SELECT o.id + rand() AS x) AS l",
        'view "chance": rand': "SELECT x FROM chance",
    }
    for what, query in hidden.items():
        with pytest.raises(UnsupportedQuery, match=rf"{what}\(\) cannot be maintained"):
            lake.refresh(maintained("mart.t", query, views=(view,)))
        assert lake.version("mart.t") is None

    auto = maintained("mart.t", hidden["uuid"], mode=Mode.AUTO)
    lake.refresh(auto)
    write(lake, "orders", orders(20))
    done = lake.refresh(auto)

    assert (done.action, done.row_count) == (Action.FULL, 21)
    assert "uuid() cannot be maintained" in done.reason


def test_p17_rows_leave_though_no_source_changed(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    today = dt.datetime.now(dt.UTC).date()
    days = [today - dt.timedelta(days=back) for back in (0, 3, 6, 9)]
    write(lake, "visits", pa.table({"id": [1, 2, 3, 4], "d": days}))
    recent = maintained("mart.t", "SELECT id, d FROM visits WHERE d >= current_date() - 7")
    hidden = maintained(
        "mart.hidden",
        "SELECT COUNT(*) AS n FROM lately",
        views=(View("lately", "SELECT id FROM visits WHERE d >= current_date - 7"),),
    )
    assert [refreshed(lake, each).row_count for each in (recent, hidden)] == [3, 1]

    class Later(dt.datetime):
        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> dt.datetime:
            return dt.datetime.now(tz) + dt.timedelta(days=2)

    monkeypatch.setattr(refresh_job, "datetime", Later)
    for each, deleted in ((recent, 1), (hidden, 1)):
        refreshed(lake, each, Action.DIFFERENTIAL, reason="time passed", deleted=deleted)
    assert lake.read("mart.hidden").collect()[0]["n"] == 2


def test_p19_a_second_row_of_a_scalar_subquery_fails_and_leaves_all_as_it_was(lake: Lake) -> None:
    write(lake, "r", pa.table({"k": [5]}))
    above = maintained("mart.t", "SELECT id, (SELECT k FROM r) AS k FROM orders WHERE amount > 3")
    refreshed(lake, above)
    before = held(lake, above.name)
    write(lake, "orders", orders(20))
    write(lake, "r", pa.table({"k": [6]}))

    with pytest.raises(FailedQuery) as raised:
        lake.refresh(above)

    assert "SCALAR_SUBQUERY_TOO_MANY_ROWS" in raised.value.why
    assert (lake.version(above.name), held(lake, above.name)) == (0, before)
    assert lake.frontier(above) == {"orders": 0, "r": 0}
    run_on_delta(lake, "DELETE FROM r WHERE k = 5")
    assert refreshed(lake, above).action is Action.DIFFERENTIAL


def test_p20_a_change_does_not_ask_what_the_query_does_not_ask(lake: Lake) -> None:
    """A divisor of zero, a cast without a value: in rows, old and new, that a filter removes."""
    divided = maintained(
        "mart.t", "SELECT id, amount DIV customer AS x FROM orders WHERE customer <> 0"
    )
    cast = maintained(
        "mart.cast",
        "SELECT customer, SUM(CAST(note AS INT)) AS x FROM orders WHERE note RLIKE '^[0-9]+$' "
        "GROUP BY customer",
    )
    each_refreshed(lake, divided, cast)
    run_on_delta(
        lake,
        "UPDATE orders SET note = '7', customer = 4 WHERE id = 3;"
        "UPDATE orders SET note = 'seven', customer = 0 WHERE id = 4;"
        "INSERT INTO orders VALUES (20, 0, 1, 'x'), (21, 0, 1, '9')",
    )

    each_followed(lake, divided, cast)


def test_p26_what_rests_on_itself_alone_goes(lake: Lake) -> None:
    """Two kinds of rows that follow from each other, and from one row of a base."""
    write(lake, "base", pa.table({"x": [1, 7]}))
    write(lake, "edges", pa.table({"a": [1, 2, 7], "b": [2, 1, 8]}))
    query = (
        "WITH RECURSIVE pq(kind, x) AS (SELECT 'p', x FROM base UNION "
        "SELECT IF(pq.kind = 'p', 'q', 'p'), e.b FROM pq JOIN edges AS e ON e.a = pq.x) "
        "SELECT kind, x FROM pq"
    )
    both = maintained("mart.t", query)
    refreshed(lake, both, row_count=4)
    DeltaTable(lake.location("base")).delete("x = 1")

    refreshed(lake, both, Action.DIFFERENTIAL, row_count=2)

    without = query.replace("e.a = pq.x)", "e.a = pq.x WHERE NOT EXISTS (SELECT 1 FROM pq AS s))")
    with pytest.raises(UnsupportedQuery, match="recursion"):
        lake.refresh(maintained("mart.without", without))


def test_p34_the_answer_to_a_tie_stays(lake: Lake) -> None:
    """The same rows in another order and in other files are the same rows."""
    ties = "SELECT id, customer, ROW_NUMBER() OVER (ORDER BY amount) AS place FROM orders"
    few = "SELECT id, note FROM orders ORDER BY amount LIMIT 3"
    any_of = (
        "SELECT customer, ANY_VALUE(note) AS one, FIRST(id) AS first, MODE(id) AS usual "
        "FROM orders GROUP BY customer"
    )
    named = {"ties": ties, "few": few, "any_of": any_of}
    tables = [maintained(name, query) for name, query in named.items()]
    versions = [refreshed(lake, each).data_version for each in tables]
    for part in (range(19, 9, -1), range(9, -1, -1)):
        write(lake, "orders", orders(*part), mode="append" if 0 in part else "overwrite")

    for each, version in zip(tables, versions, strict=True):
        before = held(lake, each.name)
        refreshed(lake, each, Action.NO_DATA, data_version=version)
        refreshed(lake, each, full=True)
        assert held(lake, each.name) == before


def test_p36_weights_beyond_32_bits(lake: Lake) -> None:
    """Of 60,000 equal rows and 60,000 others there are 3,600,000,000 pairs; nobody makes them."""
    many = 60_000
    for name in ("a", "b"):
        write(lake, name, pa.table({"k": [0, 1]}))
    pairs = maintained(
        "mart.t", "SELECT a.k, COUNT(*) AS n, SUM(b.k) AS s FROM a JOIN b ON b.k = a.k GROUP BY a.k"
    )
    refreshed(lake, pairs)
    write(lake, "b", pa.table({"k": [1] * (many - 1)}))
    refreshed(lake, pairs)
    write(lake, "a", pa.table({"k": [1] * (many - 1)}))
    # A delete in the same window: the change is read from the feed, where equal rows are one.
    DeltaTable(lake.location("a")).delete("k = 0")

    assert lake.refresh(pairs).action is Action.DIFFERENTIAL
    assert stored(lake, "mart.t", ["k", "n", "s"]) == {("1", str(many**2), str(many**2)): 1}
    for name in ("a", "b"):
        write(lake, name, pa.table({"k": [1, 2]}), mode="overwrite")
    assert refreshed(lake, pairs).action is Action.DIFFERENTIAL


def test_p37_a_table_and_a_view_of_it_are_one_source(lake: Lake) -> None:
    both = maintained(
        "mart.t",
        "SELECT o.id, v.note FROM orders AS o JOIN seen AS v ON v.id = o.id",
        views=(View("seen", "SELECT id, note FROM orders WHERE id > 1"),),
    )
    refreshed(lake, both)
    DeltaTable(lake.location("orders")).delete("id = 3")
    write(lake, "orders", orders(20))

    refreshed(lake, both, Action.DIFFERENTIAL, inserted=1, deleted=1)

    assert lake.frontier(both) == {"orders": 2}


@pytest.mark.parametrize(
    "query",
    [
        pytest.param("SELECT p.id, p.note FROM {} AS p WHERE p.amount > 3", id="alone"),
        pytest.param(
            "SELECT a.id, b.note FROM {} AS a LEFT JOIN {} AS b ON b.id = a.customer",
            id="joined with itself as it was before",
        ),
    ],
)
def test_p37_a_source_by_its_path(query: str, lake: Lake) -> None:
    place = f"delta.`{lake.location('orders')}`"
    table = maintained("mart.t", query.format(place, place))
    refreshed(lake, table)
    source(lake).update(predicate="id = 2", updates={"note": "'changed'"})
    each_followed(lake, table)
    source(lake).delete("id = 3")
    each_followed(lake, table)


def test_p37_one_table_by_two_names_is_read_at_one_version(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = maintained(
        "mart.t", "SELECT o.id, q.note FROM orders AS o LEFT JOIN public.orders AS q ON q.id = o.id"
    )
    refreshed(lake, both)
    place, newest, more = lake.location("orders"), Logs.newest, iter((20, 21))

    def and_another_commit(logs: Logs, location: str) -> TableLog | None:
        log = newest(logs, location)
        if location == place and (new := next(more, None)) is not None:
            write(lake, "orders", orders(new))
        return log

    source(lake).delete("id = 3")
    with monkeypatch.context() as patch:
        patch.setattr(Logs, "newest", and_another_commit)
        lake.refresh(both)

    assert lake.check(both).equal
    assert len(set((lake.frontier(both) or {}).values())) == 1, lake.frontier(both)
