"""Changes that are too large for this process stay in Spark.

Rows that are too many for a statement go to Spark by a file, and are those that would go along.
"""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.storagelevel import StorageLevel

from dagster_streamtables import Action, Lake
from dagster_streamtables.runtime.compute import row_files
from dagster_streamtables.runtime.compute.row_files import AT_ONCE, FOLDER, RowFile, RowFiles
from dagster_streamtables.runtime.compute.spark_engine import LIMIT, NARROW, Inputs
from dagster_streamtables.runtime.compute.spark_relations import (
    Relations,
    in_statement,
    views_of,
)
from dagster_streamtables.runtime.spark.connect import arrow_rows
from dagster_streamtables.runtime.spark.environment import temporary
from runtime.delta import log_of, write
from runtime.orders import orders, source
from runtime.refreshes import each_refreshed, maintained, refreshed
from runtime.ways import no_orders

COPIES = maintained("copies", "SELECT v, f FROM s")


def rows(*values: int | None) -> pa.Table:
    floats = [None if v is None else -0.0 if v == 0 else v / 3 for v in values]
    return pa.table({"v": pa.array(values, pa.int64()), "f": pa.array(floats, pa.float64())})


@pytest.mark.long
@pytest.mark.parametrize("driver_rows", [0])
def test_rows_that_only_come_are_appended_with_their_copies(lake: Lake) -> None:
    write(lake, "s", rows(1, 1, None))
    refreshed(lake, COPIES)
    write(lake, "s", rows(1, 1, 1, None, None, 0, 0, 2))
    refreshed(lake, COPIES, writer="spark", inserted=8, deleted=0)
    table = DeltaTable(lake.location("copies"))
    assert table.history(1)[0]["operation"] == "WRITE"
    assert str(table.to_pyarrow_table().column("f").to_pylist()).count("-0.0") == 2

    DeltaTable(lake.location("s")).delete("v = 1")
    refreshed(lake, COPIES, writer="spark", inserted=0, deleted=5)
    assert DeltaTable(lake.location("copies")).history(1)[0]["operation"] == "MERGE"


@pytest.mark.parametrize("driver_rows", [5])
def test_a_change_of_many_rows_that_comes_to_few_is_committed_here(lake: Lake) -> None:
    few = maintained("few", "SELECT v FROM s WHERE v > 30")
    write(lake, "s", rows(*range(20)))
    refreshed(lake, few)
    write(lake, "s", rows(*range(20, 34)))
    refreshed(lake, few, writer="delta-rs", inserted=3)


def test_what_spark_holds_it_lets_go(spark: SparkSession) -> None:
    rows = spark.range(3)
    with closing(Relations(views_of(spark, "held", RowFiles()))) as relations:
        assert relations.cache(rows).count() == 3
        assert rows.storageLevel != StorageLevel.NONE
    assert rows.storageLevel == StorageLevel.NONE


@pytest.mark.smoke("changes that stay in Spark")
def test_what_is_held_may_read_what_was_named(spark: SparkSession) -> None:
    with closing(Relations(views_of(spark, "held", RowFiles()))) as relations:
        name = relations.create_view(spark.range(3))
        assert relations.cache(spark.sql(f"SELECT id FROM {name}")).count() == 3


@pytest.mark.parametrize(
    ("tables", "driver_rows", "limit"),
    [
        pytest.param((), None, NARROW, id="a new table"),
        pytest.param(("narrow",), None, NARROW, id="narrow"),
        pytest.param(("narrow", "wide"), None, LIMIT, id="wide"),
        pytest.param(("wide", "empty"), 7, 7, id="as many as somebody says"),
        pytest.param(("empty",), None, NARROW, id="empty"),
    ],
)
def test_narrow_rows_come_in_greater_numbers(
    tables: tuple[str, ...], driver_rows: int | None, limit: int, tmp_path: Path
) -> None:
    lake = Lake(tmp_path)
    random = np.random.default_rng(1)
    write(lake, "narrow", pa.table({"id": pa.array(range(10_000), pa.int64())}))
    write(lake, "wide", pa.table({"note": [random.bytes(4000).hex() for _ in range(10)]}))
    write(lake, "empty", pa.table({"id": pa.array([], pa.int64())}))
    inputs = Inputs(
        session=lambda: pytest.fail("it opens a session"),
        stored=lambda _: None,
        driver_rows=driver_rows,
        tables=tuple(log_of(lake, name) for name in tables),
    )
    assert (len(inputs.tables), inputs.limit) == (len(tables), limit)


MANY = AT_ONCE + 1
COLUMNS: dict[str, tuple[pa.DataType, list[object]]] = {
    "boolean": (pa.bool_(), [True, False]),
    "tinyint": (pa.int8(), [-128, 127]),
    "smallint": (pa.int16(), [-32768, 32767]),
    "int": (pa.int32(), [-(2**31), 2**31 - 1]),
    "bigint": (pa.int64(), [-(2**63), 2**63 - 1]),
    "float": (pa.float32(), [-0.0, 0.0, float("nan"), float("inf"), 1e-45]),
    "double": (pa.float64(), [-0.0, 0.0, float("nan"), float("-inf"), 5e-324]),
    "short decimal": (pa.decimal128(5, 2), [Decimal("-999.99"), Decimal("0.01")]),
    "long decimal": (pa.decimal128(38, 0), [Decimal(10**38 - 1), Decimal(-(10**38) + 1)]),
    "string": (pa.string(), ["", " ", "a\0b", "ß", "ss", "𝄞", "e\u0301"]),
    "binary": (pa.binary(), [b"", b"\xff\x00"]),
    "date": (pa.date32(), [date(1, 1, 1), date(1582, 10, 4), date(1900, 1, 1), date(9999, 12, 31)]),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        [
            datetime(1, 1, 1, tzinfo=UTC),
            datetime(1582, 10, 10, 12, 0, 0, 1, UTC),
            datetime(1883, 11, 18, 17, 0, tzinfo=UTC),
            datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC),
        ],
    ),
    "timestamp_ntz": (
        pa.timestamp("us"),
        [datetime(1, 1, 1), datetime(1582, 10, 10), datetime(9999, 12, 31, 23, 59, 59, 999_999)],
    ),
}
OTHERS = {"array": pa.list_(pa.int64()), "struct": pa.struct({"a": pa.int64()}), "void": pa.null()}


def repeated(values: list[object], type_: pa.DataType, count: int = MANY) -> pa.Array:
    """Each of the values and NULL, again and again."""
    several = [*values, None]
    return pa.array([several[number % len(several)] for number in range(count)], type_)


@pytest.fixture
def relations(spark: SparkSession) -> Iterator[Relations]:
    with closing(Relations(views_of(spark, "test_handed", RowFiles()))) as relations:
        yield relations


@pytest.mark.parametrize("kind", COLUMNS)
def test_a_file_holds_what_a_local_relation_holds(kind: str, relations: Relations) -> None:
    type_, values = COLUMNS[kind]
    rows = pa.table({"v": repeated(values, type_)})
    file, beside = RowFiles().write(relations.spark, rows), in_statement(relations.spark, rows)
    assert file is not None
    frame = file.rows

    assert frame.schema == beside.schema
    assert shown(arrow_rows(frame)) == shown(arrow_rows(beside)) == shown(rows)
    # Read by Spark's own eyes: as Arrow it may be as it was although Spark sees something else.
    seen = ["typeof(v)", "hex(CAST(v AS STRING))", "hash(v)", "v < v", "v IS NULL"]
    assert shown(arrow_rows(frame.selectExpr(*seen))) == shown(arrow_rows(beside.selectExpr(*seen)))
    file.delete()


def shown(rows: pa.Table) -> Counter[tuple[object, ...]]:
    """Rows such that NaN equals NaN, and -0.0 not 0.0."""
    columns = [[_shown(value) for value in column.to_pylist()] for column in rows.columns]
    return Counter(zip(*columns, strict=True))


def _shown(value: object) -> object:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else (value, math.copysign(1, value))
    return value


def test_columns_keep_their_names(relations: Relations) -> None:
    names = ["a", "A", "a.b", "a b,;{}()=", "`", "ß"]
    rows = pa.table([pa.array([number] * MANY) for number in range(len(names))], names=names)
    file = RowFiles().write(relations.spark, rows)
    assert file is not None
    assert file.rows.columns == names
    assert arrow_rows(file.rows).slice(0, 1).columns == rows.slice(0, 1).columns
    file.delete()


def test_a_file_is_for_its_owner_alone(relations: Relations) -> None:
    file = RowFiles().write(relations.spark, pa.table({"v": [1] * MANY}))
    assert file is not None
    assert (temporary() / file.path).stat().st_mode & 0o077 == 0
    assert arrow_rows(file.rows.groupBy().count()).to_pylist() == [{"count": MANY}]
    file.delete()


@pytest.mark.parametrize("kind", OTHERS)
def test_what_parquet_may_give_back_otherwise_goes_along(kind: str, relations: Relations) -> None:
    rows = pa.table({"v": repeated([], OTHERS[kind]), "w": repeated([1], pa.int64())})
    assert RowFiles().write(relations.spark, rows) is None


def test_few_rows_go_along(relations: Relations) -> None:
    assert RowFiles().write(relations.spark, pa.table({"v": [1] * AT_ONCE})) is None


@pytest.fixture
def distant(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> SparkSession:
    """A session that counts as one at an address, which may be that of another machine."""
    monkeypatch.setattr(row_files, "shares_files", lambda spark: False)
    return spark


@pytest.mark.spark
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_spark_at_an_address_finds_the_rows_below_the_root(
    scheme: str, distant: SparkSession, tmp_path: Path
) -> None:
    rows = pa.table({"v": range(MANY)})
    assert RowFiles().write(distant, rows) is None

    file = RowFiles(f"{scheme}{tmp_path}").write(distant, rows)
    assert file is not None
    assert [each.name for each in (tmp_path / FOLDER).iterdir()] == [file.path]
    assert shown(arrow_rows(file.rows)) == shown(rows)
    file.delete()
    assert not any((tmp_path / FOLDER).iterdir())


@pytest.mark.spark
def test_files_that_a_killed_process_left_are_deleted_after_a_day(
    distant: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / FOLDER).mkdir(parents=True)
    for name, hours in ("old", 25), ("new", 23):
        (tmp_path / FOLDER / name).touch()
        then = time.time() - hours * 3600
        os.utime(tmp_path / FOLDER / name, (then, then))
    file = RowFiles(str(tmp_path)).write(distant, pa.table({"v": range(MANY)}))
    assert file is not None
    assert {each.name for each in (tmp_path / FOLDER).iterdir()} == {"new", file.path}


@pytest.mark.spark
def test_spark_at_an_address_may_be_refused_a_file(distant: SparkSession, tmp_path: Path) -> None:
    """The root cannot be written, or Spark would take its path for a pattern."""
    (tmp_path / "_streamtables").write_text("in the way")
    rows = pa.table({"v": range(MANY)})
    assert RowFiles(str(tmp_path)).write(distant, rows) is None
    (tmp_path / "lake[ab]").mkdir()
    assert RowFiles(str(tmp_path / "lake[ab]")).write(distant, rows) is None
    assert not any((tmp_path / "lake[ab]").iterdir())


@pytest.mark.spark
def test_a_store_that_refuses_a_file_does_not_fail_a_refresh(distant: SparkSession) -> None:
    """Azure's addresses have an @, which is part of no pattern."""
    refusing = {"max_retries": "0", "azure_storage_account_key": "a2V5", "connect_timeout": "1 s"}
    files = RowFiles("abfss://lake@127.0.0.1:9/root", refusing)
    assert files.write(distant, pa.table({"v": range(MANY)})) is None


@pytest.mark.spark
def test_a_damaged_file_of_rows_is_an_error(distant: SparkSession, tmp_path: Path) -> None:
    """Whatever the settings of the server say of damaged files."""
    distant.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    try:
        file = RowFiles(str(tmp_path)).write(distant, pa.table({"v": range(MANY)}))
        assert file is not None
        (tmp_path / FOLDER / file.path).write_bytes(b"PAR1")
        with pytest.raises(PySparkException):
            file.rows.count()
    finally:
        distant.conf.unset("spark.sql.files.ignoreCorruptFiles")


def test_rows_go_along_where_no_file_can_be_written(
    relations: Relations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmp").write_text("in the way")
    monkeypatch.setenv("STREAMTABLES_HOME", str(tmp_path))
    rows = pa.table({"v": range(MANY)})
    assert RowFiles().write(relations.spark, rows) is None
    total = relations.sql(f"SELECT SUM(v) AS v FROM {relations.local(rows)}")
    assert arrow_rows(total).to_pylist() == [{"v": sum(range(MANY))}]


@pytest.mark.long
@no_orders
def test_a_refresh_deletes_its_files(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Path] = []
    write_rows = RowFiles.write

    def noted(files: RowFiles, spark: SparkSession, rows: pa.Table) -> RowFile | None:
        file = write_rows(files, spark, rows)
        if file is not None:
            made.append(temporary() / file.path)
            assert made[-1].exists()
        return file

    monkeypatch.setattr(RowFiles, "write", noted)
    queries = {
        "m.filter": "SELECT id, amount * 2 AS twice FROM orders WHERE amount > 1",
        "m.sums": "SELECT id % 7000 AS k, SUM(amount) AS s FROM orders GROUP BY 1",
        "m.pairs": "SELECT o.id, p.id AS p FROM orders AS o JOIN orders AS p ON o.id = p.id",
    }
    tables = [maintained(name, query) for name, query in queries.items()]
    write(lake, "orders", orders(*range(20_000)))
    each_refreshed(lake, *tables)
    write(lake, "orders", orders(*range(15_000, 21_000)))
    source(lake).delete("id % 3 = 0")
    for table in tables:
        before = len(made)
        assert refreshed(lake, table).action is Action.DIFFERENTIAL
        assert len(made) > before
    assert not [path for path in made if path.exists()]
