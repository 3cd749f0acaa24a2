"""`read_by`: schedules that are inherited from the readers in other catalogs."""

from __future__ import annotations

from datetime import timedelta

import dagster as dg
import pytest

from dagster_streamtables.declare.schedule import Duration
from dagster_streamtables.orchestration.catalog import metadata
from dagster_streamtables.orchestration.catalog.asset_catalog import Catalog, build_catalog, read_by
from dagster_streamtables.orchestration.catalog.freshness import freshness_policy
from dagster_streamtables.orchestration.catalog.translator import (
    StreamTableProps,
    StreamTablesTranslator,
)
from dagster_streamtables.runtime.model.stream_table import StreamTable


def table(name: str, source: str, schedule: str | None = None) -> StreamTable:
    return StreamTable(name, f"SELECT id FROM {source}", schedule=schedule)


def resolved(catalog: Catalog) -> dict[str, str]:
    told = {entry.name: entry.examined.resolved_schedule for entry in catalog.entries}
    shown = {e.name: e.spec.metadata[metadata.RESOLVED_SCHEDULE] for e in catalog.entries}
    assert told == shown
    return told


class In(StreamTablesTranslator):
    """Assets below a prefix, and its sources with them."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix

    def get_asset_spec(self, props: StreamTableProps) -> dg.AssetSpec:
        spec = super().get_asset_spec(props)
        return spec.replace_attributes(key=spec.key.with_prefix(self.prefix))


ON_DEMAND = "on demand: no table that reads it has a duration as its schedule"
CRON_ONLY = (
    "on demand: the cron schedule of c and d, elsewhere in the code location, does not refresh it; "
    "give it a schedule of its own"
)
# The tables of a catalog and those of another, as `name source schedule`, and what is resolved.
READERS: dict[str, tuple[str, str, dict[str, str]]] = {
    "the tightest, through others": ("a s", "b a 5m, c b 2m", {"a": "2m, from c through b"}),
    "out of the catalog and back into it": (
        "a s, d c 1m", "b a, c b 2m", {"a": "1m, from d through c through b", "d": "1m"}),
    "a reader of its own is tighter": ("a s, d a 1m", "b a 2m", {"a": "1m, from d", "d": "1m"}),
    "of two as tight, that of its own": ("a s, d a 2m", "b a 2m", {"a": "2m, from d", "d": "2m"}),
    "a schedule of its own stays": ("a s 1h", "b a 2m", {"a": "1h"}),
    "nobody reads it": ("a s", "b s 2m", {"a": ON_DEMAND}),
    "a duration over a cron schedule": (
        "a s", "b a @daily, c b 2m", {"a": "2m, from c through b"}),
    "cron schedules only": ("a s", "b a, c b @daily, d a @daily", {"a": CRON_ONLY}),
    "a cron schedule of its own catalog refreshes it": (
        "a s, d a @daily", "b s 2m", {"a": ON_DEMAND, "d": "@daily"}),
}  # fmt: skip


@pytest.mark.parametrize(("own", "theirs", "expected"), READERS.values(), ids=READERS)
def test_a_table_takes_the_duration_of_the_tightest_reader(
    own: str, theirs: str, expected: dict[str, str]
) -> None:
    mine, others = (
        build_catalog([table(*each.split()) for each in some.split(", ")]) for some in (own, theirs)
    )
    assert resolved(read_by(mine, [others])) == expected


def test_several_catalogs_are_one_graph() -> None:
    bronze, silver, gold = (
        build_catalog([each]) for each in (table("a", "s"), table("b", "a"), table("c", "b", "2m"))
    )
    assert resolved(read_by(bronze, [gold, silver])) == {"a": "2m, from c through b"}
    assert resolved(read_by(silver, [bronze, gold])) == {"b": "2m, from c"}
    assert read_by(gold, [bronze, silver]) == gold
    assert read_by(bronze, []) is bronze


def test_a_table_of_the_same_name_elsewhere_is_another_one() -> None:
    here = build_catalog([table("a", "s")], translator=In("eu"))
    theirs = [table("a", "s"), table("b", "a", "1m")]
    there = build_catalog(theirs, translator=In("us"))
    assert read_by(here, [there]).entries[0].examined.schedule is None
    over = build_catalog(
        [table("b", "a", "1m")], translator=In("us"), source_keys={"a": dg.AssetKey(["eu", "a"])}
    )
    assert resolved(read_by(here, [over])) == {"a": "1m, from b"}


def test_the_asset_shows_it_unless_the_translator_knows_better() -> None:
    reader = build_catalog([table("b", "a", "5m")])
    [entry] = read_by(build_catalog([table("a", "s")]), [reader]).entries
    assert entry.spec.freshness_policy == freshness_policy(Duration("5m", 300))
    mine = dg.FreshnessPolicy.cron("0 6 * * *", lower_bound_delta=timedelta(minutes=9))

    class Mine(StreamTablesTranslator):
        def get_asset_spec(self, props: StreamTableProps) -> dg.AssetSpec:
            spec = super().get_asset_spec(props)
            return spec.replace_attributes(freshness_policy=mine, metadata={})

    [entry] = read_by(build_catalog([table("a", "s")], translator=Mine()), [reader]).entries
    assert entry.spec.freshness_policy == mine
    assert metadata.RESOLVED_SCHEDULE not in entry.spec.metadata
    assert entry.examined.schedule is not None


def test_what_is_broken_stays_out_of_it() -> None:
    broken = StreamTable("a", "SELECT id FROM s", schedule="1s")
    [entry] = read_by(build_catalog([broken]), [build_catalog([table("b", "a", "5m")])]).entries
    assert entry.examined.error is not None
    unread = StreamTable("b", "SELECT id FROM a", schedule="1s")
    [entry] = read_by(build_catalog([table("a", "s")]), [build_catalog([unread])]).entries
    assert entry.examined.schedule is None
