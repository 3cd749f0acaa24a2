"""A lake with three stream tables that were refreshed twice, and the folder that declares them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from cli.command_line import CommandLine
from cli.following import Followed
from dagster_streamtables import Lake, load_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = {
    "revenue": "-- description: What each customer has paid.\n"
    "SELECT customer, SUM(amount) AS total FROM sales.orders GROUP BY customer\n",
    "best": "-- schedule: 5m\nSELECT customer FROM mart.revenue WHERE total > 20\n",
    "busy": "-- schedule: @hourly\n-- mode: AUTO\n"
    "SELECT COUNT(*) AS customers FROM (SELECT customer FROM sales.orders GROUP BY customer "
    "HAVING COUNT(*) > 2)\n",
}


class Shop(CommandLine):
    """A lake, its declarations, and the command line over both."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "lake")
        self.folder, self.tables = folder, folder / "tables"

    @property
    def environment(self) -> dict[str, str]:
        return {**super().environment, "STREAMTABLES_TABLES": str(self.tables)}

    @property
    def undeclared(self) -> CommandLine:
        """Over the same lake."""
        return CommandLine(Path(self.root))

    def declare(self, name: str, text: str) -> Path:
        """The file that declares the table ``mart.NAME``."""
        file = self.tables / f"mart/{name}.sql"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def sell(self, *ids: int, amount: int = 5) -> None:
        rows = [{"id": i, "customer": i % 4, "amount": amount} for i in ids]
        schema = pa.schema(dict.fromkeys(("id", "customer", "amount"), pa.int64()))
        place = Path(self.root, "sales", "orders")
        place.mkdir(parents=True, exist_ok=True)
        write_deltalake(place, pa.Table.from_pylist(rows, schema), mode="append")


def declare(folder: Path) -> Shop:
    shop = Shop(folder)
    for name, text in FILES.items():
        shop.declare(name, text)
    return shop


@pytest.fixture
def bare(tmp_path: Path) -> Shop:
    """Nothing refreshed yet; no Spark anywhere."""
    shop = declare(tmp_path)
    shop.sell(*range(20))
    return shop


@pytest.fixture(scope="module")
def refreshed(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Shop:
    shop = declare(tmp_path_factory.mktemp("shop"))
    shop.sell(*range(20))
    lake, tables = Lake(shop.root, spark=spark), load_tables(shop.tables)
    lake.refresh_all(tables)
    shop.sell(21)
    lake.refresh_all(tables)
    return shop


@pytest.fixture
def shop(refreshed: Shop, tmp_path: Path) -> Shop:
    """A copy of one's own; tables are where their folders are."""
    shutil.copytree(refreshed.folder, tmp_path, dirs_exist_ok=True)
    return Shop(tmp_path)


@pytest.fixture
def t(tmp_path: Path) -> Followed:
    made = Followed(tmp_path)
    made.add()
    made.add((1, "a"), (2, "b"))
    made.table.update(predicate="k = 1", updates={"v": "'A'"})
    made.table.delete("k = 2")
    made.add((3, "c"), (3, "c"))
    return made
