"""What happens to the sources: sales and returns, those that go, and updates of the tables around.

A part of what is sold is in the niche of some query, each query as often as another, so that the
result of each changes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from tests.tpc.sources import Row, Sources
from tests.tpcds.niche import niches
from tests.tpcds.schema import CHANNELS, FACTS, KEYS, Channel
from tests.tpcds.wanted import Wanted

DAYS = ("date_dim", "time_dim")
"""Nothing happens to these."""
PATTERNS = 50
"""Rows of a table that new ones are made like."""
YEARS = range(1998, 2003)


class Shop:
    """The sources and a generator of numbers: the same seed gives the same windows."""

    def __init__(self, sources: Sources, asked: Sequence[Wanted], scale: float, seed: int) -> None:
        self._sources = sources
        self._random = random.Random(seed)
        self._count = max(1, round(500 * scale))
        self._newest = 10_000_000
        self._sold: dict[str, list[int]] = {channel.sales: [] for channel in CHANNELS}
        self._patterns = {table: self._some(sources.rows(table)) for table in (*KEYS, *FACTS)}
        days = {table: sources.rows(table) for table in DAYS}
        days["date_dim"] = [row for row in days["date_dim"] if row["d_year"] in YEARS]
        self._niches = niches(asked, days, self._random)
        for table in KEYS:
            if table not in DAYS:
                self._make(table)

    def sell(self) -> None:
        """For each query a few sales in each channel, half of which come back."""
        for channel in CHANNELS:
            sold, back = list[Row](), list[Row]()
            for niche in self._niches:
                for _ in range(self._count):
                    self._newest += 1
                    number = {f"{channel.prefix}_{channel.number}": self._newest}
                    sold.append(niche.like(self._pattern(channel.sales), self._random) | number)
                    self._sold[channel.sales].append(self._newest)
                    if self._random.random() < 1 / 2:
                        returned = niche.like(self._pattern(channel.returns), self._random)
                        back.append(returned | _of(channel, sold[-1], returned))
            self._sources.insert(channel.sales, sold)
            self._sources.insert(channel.returns, back)

    def forget_sales(self) -> None:
        """Some of the new sales and some of the old ones go, with what came back."""
        for channel in CHANNELS:
            number, own = f"{channel.prefix}_{channel.number}", self._sold[channel.sales]
            chosen = self._random.sample(own, len(own) // 2)
            self._sold[channel.sales] = [each for each in own if each not in set(chosen)]
            old = self._random.sample(self._sources.values(channel.sales, number), 20)
            self._sources.delete(channel.sales, number, [*chosen, *old])
            number = f"{channel.prefix_of_returns}_{channel.number}"
            self._sources.delete(channel.returns, number, [*chosen, *old])

    def correct_sales(self) -> None:
        """Other amounts, buyers and days of sales, which are another query's then."""
        for channel in CHANNELS:
            number, own = f"{channel.prefix}_{channel.number}", self._sold[channel.sales]
            rows = self._sources.rows(channel.sales, number, own[::3])
            self._sources.update(channel.sales, number, [self._moved(row) for row in rows])

    def stock(self) -> None:
        """New stocks for each query; those of some days go."""
        days = self._sources.values("inventory", "inv_date_sk")
        self._sources.delete("inventory", "inv_date_sk", self._random.sample(days, 5))
        pairs = [niche for niche in self._niches for _ in range(2 * self._count)]
        rows = [niche.like(self._pattern("inventory"), self._random) for niche in pairs]
        self._sources.insert("inventory", rows)

    def change_items(self) -> None:
        self._change("item")

    def change_customers(self) -> None:
        for table in ("customer", "customer_address", "household_demographics"):
            self._change(table)

    def change_places(self) -> None:
        for table in ("store", "warehouse", "web_site", "call_center", "promotion"):
            self._change(table)

    def _change(self, table: str) -> None:
        """A quarter of the rows that were made for a query are another query's now."""
        made = sorted({key for niche in self._niches for key in niche.keys[table]})
        chosen = self._random.sample(made, len(made) // 4)
        rows = self._sources.rows(table, KEYS[table], chosen)
        self._sources.update(table, KEYS[table], [self._moved(row) for row in rows])

    def _make(self, table: str) -> None:
        """One row for each query that asks something of the table; the others share one."""
        newest = self._sources.values(table, KEYS[table])[-1]
        made: list[Row] = []
        for niche in self._niches:
            pattern = self._pattern(table)
            if table == "customer" or niche.asked.among(pattern) or not made:
                newest += 1
                made.append(niche.make(table, newest, pattern, self._random))
            else:
                niche.keys[table] = [made[0][KEYS[table]]]
        self._sources.insert(table, made)

    def _moved(self, row: Row) -> Row:
        return self._random.choice(self._niches).like(row, self._random)

    def _pattern(self, table: str) -> Row:
        return self._random.choice(self._patterns[table])

    def _some(self, rows: Sequence[Row]) -> list[Row]:
        return self._random.sample(rows, min(len(rows), PATTERNS))


def _of(channel: Channel, sale: Row, returned: Row) -> Row:
    """What a return has of its sale: the number, the item and who bought it."""
    same = {
        f"{channel.prefix_of_returns}_{role}{name}": value
        for column, value in sale.items()
        for name in [column.removeprefix(f"{channel.prefix}_").removeprefix("bill_")]
        for role in ("", "returning_", "refunded_")
        if name.endswith(("_number", "item_sk", "customer_sk", "demo_sk", "addr_sk"))
    }
    return {column: value for column, value in same.items() if column in returned}


Change = Callable[[Shop], None]
WINDOWS: tuple[tuple[Change, ...], ...] = (
    (Shop.sell, Shop.stock),
    (Shop.change_items, Shop.change_customers, Shop.change_places),
    (Shop.correct_sales, Shop.forget_sales, Shop.stock),
    (Shop.change_items, Shop.sell, Shop.forget_sales, Shop.change_places, Shop.correct_sales),
)
"""What happens between two refreshes; after the last one it begins anew."""
