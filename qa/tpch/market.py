"""What happens to the sources: TPC-H's two refresh functions, and updates.

A change is drawn like the data, with one exception. At a small scale a random row hardly ever
reaches the narrow queries (of 2,000 parts Q17 asks for none), so every second draw is among what
some query asks for, each query as often as another.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import TypeVar

from qa.tpc.sources import Row, Sources

T = TypeVar("T")

NATIONS = ("FRANCE", "GERMANY", "BRAZIL", "CANADA", "SAUDI ARABIA")
KINDS: tuple[Row, ...] = (
    {"p_type": "STANDARD BRUSHED BRASS", "p_size": 15},
    {"p_type": "ECONOMY ANODIZED STEEL"},
    {"p_type": "PROMO BURNISHED TIN"},
    {"p_type": "SMALL PLATED COPPER", "p_size": 9},
    {"p_brand": "Brand#12", "p_container": "SM CASE", "p_size": 3},
    {"p_brand": "Brand#23", "p_container": "MED BOX"},
)
"""What an update may make of a part, beside a random type and size."""
COMMENTS = ("the Customer sends Complaints", "ironic Customer, no pending Complaints sleep")
PARTS_OF: tuple[Callable[[Row], bool], ...] = (
    lambda part: part["p_type"] == "ECONOMY ANODIZED STEEL",
    lambda part: "green" in part["p_name"],
    lambda part: part["p_brand"] == "Brand#23" and part["p_container"] == "MED BOX",
    lambda part: part["p_brand"] == "Brand#12" and part["p_container"].startswith("SM"),
    lambda part: part["p_name"].startswith("forest"),
)
"""What Q8, Q9, Q17, Q19 and Q20 ask of a part."""
DAYS = (
    date(1993, 7, 20),
    date(1993, 11, 1),
    date(1994, 2, 1),
    date(1995, 3, 14),
    date(1995, 8, 20),
    date(1996, 1, 5),
)
"""Of orders that Q4, Q10, Q5, Q3, Q14 or Q15, and those that ask for a year, may see."""
LINES, LARGE = 7, 50
"""Lineitems that an order has at most, and what the largest has of each: Q18 asks for over 300."""


class Market:
    """The sources and a generator of numbers: the same seed gives the same windows."""

    def __init__(self, sources: Sources, scale: float, seed: int) -> None:
        self._sources = sources
        self._random = random.Random(seed)
        self._count = max(1, round(1500 * scale))
        self._newest = sources.values("orders", "o_orderkey")[-1]
        self._inserted: list[int] = []
        self._wanted = self._wanted_parts()
        self._types = sources.values("part", "p_type")
        self._segments = sources.values("customer", "c_mktsegment")
        parts = sources.rows("part")
        self._parts = [row["p_partkey"] for row in parts]
        self._parts_of: dict[int, list[int]] = {}
        self._suppliers = {row["p_partkey"]: list[int]() for row in parts}
        for row in sources.rows("partsupp"):
            self._suppliers[row["ps_partkey"]].append(row["ps_suppkey"])
            self._parts_of.setdefault(row["ps_suppkey"], []).append(row["ps_partkey"])

    def insert_orders(self) -> None:
        """RF1: new orders with their lineitems."""
        keys = self._random.sample(self._sources.values("orders", "o_orderkey"), self._count)
        customers = self._sources.rows("customer")
        building = [row for row in customers if row["c_mktsegment"] == "BUILDING"]
        lines = self._sources.rows("lineitem", "l_orderkey", keys)
        self._wanted = self._wanted_parts()
        orders: list[Row] = []
        lineitems: list[Row] = []
        for position, pattern in enumerate(self._sources.rows("orders", "o_orderkey", keys)):
            its = [line for line in lines if line["l_orderkey"] == pattern["o_orderkey"]]
            large = position % 5 == 0
            customer = self._random.choice(building if large else customers)
            order, more = self._order(pattern, its, large=large)
            orders.append(order | {"o_custkey": customer["c_custkey"]})
            lineitems += more
        self._sources.insert("orders", orders)
        self._sources.insert("lineitem", lineitems)

    def delete_orders(self) -> None:
        """RF2: orders that go with their lineitems, some of them inserted before."""
        keys = set(self._sources.values("orders", "o_orderkey"))
        inserted = [key for key in self._inserted if key in keys]
        chosen = self._random.sample(inserted, min(len(inserted), self._count // 3))
        rest = sorted(keys - set(chosen))
        self._delete([*chosen, *self._random.sample(rest, self._count - len(chosen))])

    def delete_neighbours(self) -> None:
        """RF2 as the generator's own files have it: orders of neighbouring keys."""
        keys = self._sources.values("orders", "o_orderkey")
        first = self._random.randrange(len(keys) - self._count)
        self._delete(keys[first : first + self._count])

    def insert_and_delete_orders(self) -> None:
        """New orders, half of which go again within the window."""
        before = len(self._inserted)
        self.insert_orders()
        self._delete(self._inserted[before::2])

    def update_customers(self) -> None:
        keys = self._random.sample(self._sources.values("customer", "c_custkey"), self._count)
        self._update("customer", "c_custkey", keys, self._customer)

    def update_parts(self) -> None:
        wanted = {self._random.choice(parts) for parts in self._wanted_parts()}
        rest = [part for part in self._parts if part not in wanted]
        keys = [*sorted(wanted), *self._random.sample(rest, self._count)]
        self._update("part", "p_partkey", keys, self._part)

    def update_suppliers(self) -> None:
        rows = self._sources.rows("nation")
        nations = [row["n_nationkey"] for row in rows if row["n_name"] in NATIONS]
        all_of_them = self._sources.values("supplier", "s_suppkey")
        keys = self._random.sample(all_of_them, max(1, self._count // 3))
        self._update("supplier", "s_suppkey", keys, lambda row: self._supplier(row, nations))

    def update_nations(self) -> None:
        """Two nations exchange their names, and a third one goes to another region."""
        rows = self._sources.rows("nation")
        one = self._random.choice([row for row in rows if row["n_name"] in NATIONS])
        other, third = self._random.sample([row for row in rows if row is not one], 2)
        one["n_name"], other["n_name"] = other["n_name"], one["n_name"]
        third["n_regionkey"] = self._random.randrange(5)
        self._sources.update("nation", "n_nationkey", [one, other, third])

    def _order(self, pattern: Row, lines: list[Row], *, large: bool) -> tuple[Row, list[Row]]:
        """An order like another one, on another day."""
        self._newest += 1
        self._inserted.append(self._newest)
        near = pattern["o_orderdate"] + timedelta(days=self._random.randint(-30, 30))
        day = self._random.choice(DAYS) if large else self._either(DAYS, [near])
        changed = [self._lineitem(line, day - pattern["o_orderdate"]) for line in lines]
        if large:
            changed = self._large(changed)
        numbers = ({"l_orderkey": self._newest, "l_linenumber": n} for n in range(1, LINES + 1))
        changed = [line | number for line, number in zip(changed, numbers, strict=False)]
        order = pattern | {
            "o_orderkey": self._newest,
            "o_orderdate": day,
            "o_totalprice": sum((line["l_extendedprice"] for line in changed), Decimal(0)),
        }
        return order, changed

    def _large(self, lines: list[Row]) -> list[Row]:
        """So much of one supplier that Q3, Q10, Q15 and Q18 have it among their first."""
        supplier = self._random.choice(sorted(self._parts_of))
        parts = self._random.sample(self._parts_of[supplier], LINES)
        return [
            lines[each % len(lines)]
            | {
                "l_partkey": part,
                "l_suppkey": supplier,
                "l_quantity": Decimal(LARGE),
                "l_extendedprice": LARGE * self._cents(150_000, 200_000),
            }
            for each, part in enumerate(parts)
        ]

    def _lineitem(self, pattern: Row, days: timedelta) -> Row:
        wanted = self._random.random() < 1 / 3
        part = self._random.choice(self._random.choice(self._wanted) if wanted else self._parts)
        quantity = self._random.randint(1, 10 if wanted else LARGE)
        moved = ("l_shipdate", "l_commitdate", "l_receiptdate")
        mode = self._random.choice(["AIR", "MAIL"])
        delivered = {"l_shipmode": mode, "l_shipinstruct": "DELIVER IN PERSON"}
        return {
            **pattern,
            **{name: pattern[name] + days for name in moved},
            **(delivered if wanted else {}),
            "l_partkey": part,
            "l_suppkey": self._random.choice(self._suppliers[part]),
            "l_quantity": Decimal(quantity),
            "l_extendedprice": quantity * self._cents(90_000, 200_000),
            "l_discount": self._cents(0, 10),
            "l_tax": self._cents(0, 8),
        }

    def _wanted_parts(self) -> list[list[int]]:
        """For each question in `PARTS_OF` the parts that answer it now, where there are any."""
        rows = self._sources.rows("part")
        found = ([row["p_partkey"] for row in rows if asks(row)] for asks in PARTS_OF)
        return [parts for parts in found if parts]

    def _customer(self, row: Row) -> None:
        row["c_acctbal"] = self._cents(-99_999, 999_999)
        row["c_mktsegment"] = self._random.choice(self._segments)
        row["c_nationkey"] = self._random.randrange(25)

    def _part(self, row: Row) -> None:
        drawn = {"p_type": self._random.choice(self._types), "p_size": self._random.randint(1, 50)}
        row |= self._either(KINDS, [drawn])

    def _supplier(self, row: Row, nations: Sequence[int]) -> None:
        row["s_nationkey"] = self._either(nations, range(25))
        row["s_comment"] = self._either(COMMENTS, ["nothing to say", row["s_comment"]])

    def _update(
        self, table: str, key: str, keys: Sequence[int], change: Callable[[Row], None]
    ) -> None:
        rows = self._sources.rows(table, key, keys)
        for row in rows:
            change(row)
        self._sources.update(table, key, rows)

    def _delete(self, orders: Sequence[int]) -> None:
        self._sources.delete("lineitem", "l_orderkey", orders)
        self._sources.delete("orders", "o_orderkey", orders)

    def _either(self, wanted: Sequence[T], all_of_them: Sequence[T]) -> T:
        return self._random.choice(wanted if self._random.random() < 1 / 2 else all_of_them)

    def _cents(self, least: int, most: int) -> Decimal:
        return Decimal(self._random.randint(least, most)) / 100


RF1, RF2 = Market.insert_orders, Market.delete_orders
CUSTOMERS, PARTS = Market.update_customers, Market.update_parts
SUPPLIERS, NATIONS_TOO = Market.update_suppliers, Market.update_nations
WINDOWS: tuple[tuple[Callable[[Market], None], ...], ...] = (
    (RF1,),
    (RF2,),
    (CUSTOMERS,),
    (PARTS,),
    (SUPPLIERS,),
    (NATIONS_TOO,),
    (RF1, RF2),
    (RF2, CUSTOMERS, PARTS),
    (NATIONS_TOO, RF1, SUPPLIERS),
    (RF1, CUSTOMERS, PARTS, SUPPLIERS, NATIONS_TOO, RF2),
    (Market.insert_and_delete_orders,),
    (SUPPLIERS, RF2, NATIONS_TOO, CUSTOMERS, RF1, SUPPLIERS, NATIONS_TOO, CUSTOMERS),
)
"""What happens between two refreshes; after the last one it begins anew."""
