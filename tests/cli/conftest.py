"""A lake with three stream tables that were refreshed twice, and the folder that declares them."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from click.testing import Result
from deltalake import write_deltalake
from typer.testing import CliRunner

from dagster_streamtables import Lake, load_tables
from dagster_streamtables.cli import app

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = {
    "mart/revenue.sql": "-- description: What each customer has paid.\n"
    "SELECT customer, SUM(amount) AS total FROM sales.orders GROUP BY customer\n",
    "mart/best.sql": "-- schedule: 5m\nSELECT customer FROM mart.revenue WHERE total > 20\n",
    "mart/busy.sql": "-- schedule: @hourly\n-- mode: AUTO\n"
    "SELECT COUNT(*) AS customers FROM (SELECT customer FROM sales.orders GROUP BY customer "
    "HAVING COUNT(*) > 2)\n",
}


@dataclass(frozen=True)
class Shop:
    """A lake, its declarations, and the command line over both."""

    folder: Path

    @property
    def root(self) -> str:
        return str(self.folder / "lake")

    @property
    def tables(self) -> Path:
        return self.folder / "tables"

    @property
    def lake(self) -> Lake:
        return Lake(self.root)

    def sell(self, *ids: int, amount: int = 5) -> None:
        rows = {"id": ids, "customer": [i % 4 for i in ids], "amount": [amount for _ in ids]}
        place = Path(self.root, "sales", "orders")
        place.mkdir(parents=True, exist_ok=True)
        types = dict.fromkeys(rows, pa.int64())
        table = pa.table({name: pa.array(rows[name], types[name]) for name in rows})
        write_deltalake(place, table, mode="append")

    def run(self, *arguments: str, root: bool = True, tables: bool = True) -> Result:
        """Run the command, told by the environment where things are."""
        environment = {
            "STREAMTABLES_ROOT": self.root if root else None,
            "STREAMTABLES_TABLES": str(self.tables) if tables else None,
        }
        return CliRunner().invoke(app, list(arguments), env=environment)

    def said(self, *arguments: str, code: int = 0) -> str:
        done = self.run(*arguments)
        assert done.exit_code == code, done.output
        return done.stdout

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self.said(*arguments, "--json", code=code))


def declare(folder: Path) -> Shop:
    for name, text in FILES.items():
        file = folder / "tables" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return Shop(folder)


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
