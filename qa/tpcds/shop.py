"""What happens to the sources: sales and returns, those that go, and updates of the tables around.

A part of what is sold is in the niche of some query, each query as often as another, so that the
result of each changes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from qa.tpc.sources import Row, Sources
from qa.tpcds.niche import niches
from qa.tpcds.schema import CHANNELS, FACTS, KEYS, Channel
from qa.tpcds.wanted import Wanted

DAYS = ("date_dim", "time_dim")
"""Nothing happens to these."""
LINES = 2
"""Of an order, and rows of each table around that an order of one niche refers to."""
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
        self._patterns = {
            table: self._some([row for row in sources.rows(table) if _has_price(row)])
            for table in (*KEYS, *FACTS)
        }
        days = {table: sources.rows(table) for table in DAYS}
        days["date_dim"] = [row for row in days["date_dim"] if row["d_year"] in YEARS]
        self._niches = niches(asked, days, self._random)
        for table in KEYS:
            if table not in DAYS:
                self._make(table)

    def sell(self) -> None:
        """For each query a few orders in each channel; a line of half of them comes back."""
        for channel in CHANNELS:
            sold, back = list[Row](), list[Row]()
            orders = [niche for niche in self._niches for _ in range(self._count)]
            for niche in orders:
                self._newest += 1
                number = {f"{channel.prefix}_{channel.number}": self._newest}
                self._sold[channel.sales].append(self._newest)
                for _ in range(LINES):
                    sold.append(niche.like(self._pattern(channel.sales), self._random) | number)
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
        """Orders get other buyers, days and amounts, and are another query's then."""
        for channel in CHANNELS:
            number, own = f"{channel.prefix}_{channel.number}", self._sold[channel.sales]
            numbers = own[::3]
            self._sources.delete(channel.sales, number, numbers)
            corrected = [self._moved(channel.sales, number, each) for each in numbers]
            self._sources.insert(channel.sales, corrected)

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
        """A quarter of the rows that were made for a query are others now, of any query."""
        made = sorted({key for niche in self._niches for key in niche.keys[table]})
        chosen = self._random.sample(made, len(made) // 4)
        rows = [self._moved(table, KEYS[table], key) for key in chosen]
        self._sources.update(table, KEYS[table], rows)

    def _make(self, table: str) -> None:
        """Two rows for each query that asks something of the table; the others share two."""
        newest = self._sources.values(table, KEYS[table])[-1]
        made: list[Row] = []
        for niche in self._niches:
            if made and table != "customer" and not niche.asked.among(made[0]):
                niche.keys[table] = [row[KEYS[table]] for row in made[:LINES]]
                continue
            for _ in range(LINES):
                newest += 1
                made.append(niche.make(table, newest, self._pattern(table), self._random))
        self._sources.insert(table, made)

    def _moved(self, table: str, column: str, key: int) -> Row:
        """Another row with this key, of any niche."""
        niche = self._random.choice(self._niches)
        return niche.like(self._pattern(table), self._random) | {column: key}

    def _pattern(self, table: str) -> Row:
        return self._random.choice(self._patterns[table])

    def _some(self, rows: Sequence[Row]) -> list[Row]:
        return self._random.sample(rows, min(len(rows), PATTERNS))


def _has_price(row: Row) -> bool:
    """Whether nothing is sold for 0: Q59 divides by what a day has sold."""
    return not any(value == 0 for name, value in row.items() if name.endswith("_sales_price"))


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
