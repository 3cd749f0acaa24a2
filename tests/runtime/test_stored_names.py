"""Names that Delta takes for no column: refused before delta-rs writes what Spark could not."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dagster_streamtables import Lake, StreamTable, subscribe
from dagster_streamtables.compiler import is_storable, storable
from dagster_streamtables.errors import InvalidDefinition
from runtime.delta import run_on_delta, write
from runtime.orders import orders

NAMES = ["net total", "a,b", "a;b", "{a", "a}", "f(", "x)", "a\tb", "a\nb", "a=b", "_Change_Type"]
GOOD = ["net-total", "a.b", "[a]", "it's", "50%", "ü", "a/b", "a\\b", "count.*"]
TOLD = "a stream table cannot have a column called"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(tmp_path)
    write(made, "orders", orders(2))
    return made


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_refused_when_its_table_is_defined(lake: Lake, name: str) -> None:
    query = f"SELECT id,\n  amount AS `{name}` FROM orders"
    for mode in ("DIFFERENTIAL", "AUTO"):
        table = StreamTable("t", query, mode=mode)
        with pytest.raises(InvalidDefinition) as refusal:
            lake.plan(table)
        shown = name.replace("\n", "\\n")
        assert refusal.value.what == f'{TOLD} "{shown}"'
        assert "line 2, column 3" in str(refusal.value)
        with pytest.raises(InvalidDefinition, match=TOLD):
            lake.refresh(table)
    assert lake.version("t") is None
    assert is_storable(storable(name))


def test_one_that_a_star_brings_is_refused(lake: Lake) -> None:
    write(lake, "odd", orders(2).rename_columns(["id", "customer", "net amount", "note"]))
    with pytest.raises(InvalidDefinition, match=f'{TOLD} "net amount"'):
        lake.plan(StreamTable("t", "SELECT * FROM odd"))
    lake.plan(StreamTable("t", "SELECT * EXCEPT (`net amount`), `net amount` AS net FROM odd"))


@pytest.mark.spark
@pytest.mark.parametrize(
    ("mode", "query", "name"),
    [
        ("FULL", "SELECT id, amount AS `net total` FROM orders", "net total"),
        ("FULL", "SELECT id, named_struct('a b', amount) AS s FROM orders", "a b"),
        ("AUTO", "SELECT id, array(map(1, named_struct('a=b', id))) AS s FROM orders", "a=b"),
        ("DIFFERENTIAL", "SELECT id, from_json('{}', '`a b` INT') AS s FROM orders", "a b"),
    ],
)
def test_one_that_spark_alone_knows_is_refused_before_anything_is_written(
    lake: Lake, mode: str, query: str, name: str
) -> None:
    with pytest.raises(InvalidDefinition) as refusal:
        lake.refresh(StreamTable("t", query, mode=mode))
    assert refusal.value.what == f'stream table "t": {TOLD} "{name}"'
    assert lake.version("t") is None


@pytest.mark.long
def test_spark_writes_all_other_names(spark: SparkSession, lake: Lake) -> None:
    columns = ", ".join(f"amount + {i} AS `{name}`" for i, name in enumerate(GOOD))
    large = Lake(lake.root, spark=spark, driver_rows=0)
    table = StreamTable("t", f"SELECT id, {columns} FROM orders")
    assert large.refresh(table).writer == "spark"
    run_on_delta(large, "INSERT INTO orders SELECT id + 9, customer, amount, note FROM orders")
    assert large.refresh(table).writer == "spark"
    assert large.check(table).equal


@pytest.mark.spark
def test_what_is_followed_and_not_stored_has_any_name(lake: Lake) -> None:
    with subscribe(lake, "SELECT id AS `net id` FROM orders", up_to=1) as sub:
        assert sub.fetch(None).schema.names[-1] == "net id"
