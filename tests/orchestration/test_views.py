"""Views are no assets: what they read, the stream tables that name them depend on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dagster_streamtables import (
    StreamTable,
    StreamTablesResource,
    View,
    build_definitions,
    load_tables,
)
from dagster_streamtables.catalog import build_catalog
from dagster_streamtables.declarations import find_problems, read_folder
from dagster_streamtables.declare.sql_files import BrokenTable
from dagster_streamtables.orchestration.catalog import metadata
from orchestration.conftest import Write

PAID = View("paid", "SELECT id, amount FROM sales.orders WHERE paid", description="What came in.")
TOTAL = StreamTable("total", "SELECT SUM(amount) AS total FROM paid", schedule="5m")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "tables"
    (folder / "sales").mkdir(parents=True)
    (folder / "sales" / "paid.sql").write_text(
        "-- kind: view\n-- columns: order_id, value\n-- dialect: postgres\n"
        "-- description: Orders that were paid.\n"
        "SELECT id, amount / 2 FROM sales.orders WHERE paid\n"
    )
    (folder / "total.sql").write_text(
        "-- schedule: 5m\n-- dialect: duckdb\n-- session_timezone: Europe/Berlin\n"
        "SELECT SUM(value) AS total FROM sales.paid\n"
    )
    return folder


def test_a_file_of_the_kind_view_is_a_view_of_the_tables_that_name_it(folder: Path) -> None:
    (folder / "alone.sql").write_text("SELECT id FROM sales.orders")
    alone, total = load_tables(folder)
    assert alone.views == ()
    assert (total.dialect, total.session_timezone) == ("duckdb", "Europe/Berlin")
    [view] = total.views
    assert (view.name, view.columns, view.dialect) == (
        "sales.paid", ("order_id", "value"), "postgres",
    )  # fmt: skip
    assert view.file == str(folder / "sales" / "paid.sql")
    assert total.sources == ("sales.orders",)


def test_dependencies_go_through_a_view_to_its_sources(logs: StreamTablesResource) -> None:
    definitions = build_definitions(resource=logs, tables=[TOTAL], views=[PAID])
    graph = definitions.resolve_asset_graph()
    assert {key.to_user_string() for key in graph.get_all_asset_keys()} == {"total", "sales/orders"}
    [entry] = build_catalog([TOTAL], views=[PAID]).entries
    assert [dep.asset_key.path for dep in entry.spec.deps] == [["sales", "orders"]]


def test_the_text_of_a_view_is_shown_and_is_part_of_the_code_version() -> None:
    [entry] = build_catalog([TOTAL], views=[PAID]).entries
    assert entry.spec.description is not None
    assert "#### View paid\n\nWhat came in.\n\n```sql\nSELECT id, amount" in entry.spec.description
    assert "```sql\nSELECT SUM(amount) AS total FROM paid\n```" in entry.spec.description

    changed = replace(PAID, query=PAID.query + " AND amount > 0")
    [other] = build_catalog([TOTAL], views=[changed]).entries
    assert other.spec.code_version != entry.spec.code_version
    for setting in ({"dialect": "postgres"}, {"session_timezone": "Asia/Tokyo"}):
        [other] = build_catalog([replace(TOTAL, **setting)], views=[PAID]).entries
        assert other.spec.code_version != entry.spec.code_version


def test_a_declaration_comes_back_from_its_asset_with_its_views(folder: Path) -> None:
    [total] = load_tables(folder)
    [entry] = build_catalog([total]).entries
    assert metadata.read_definition(entry.spec.metadata) == total


def test_columns_and_lineage_of_a_table_over_a_view_are_known_before_it_is_refreshed(
    logs: StreamTablesResource, write: Write, folder: Path
) -> None:
    write("sales.orders", id=[1], amount=[10], paid=[True])
    [entry] = build_catalog(read_folder(folder), lake=logs.logs()).entries
    assert entry.examined.error is None
    [column] = entry.spec.metadata[metadata.COLUMN_SCHEMA].columns
    assert column.name == "total"
    [origin] = entry.spec.metadata[metadata.COLUMN_LINEAGE].deps_by_column["total"]
    assert (origin.asset_key.path, origin.column_name) == (["sales", "orders"], "amount")


def test_a_broken_view_breaks_the_tables_that_name_it_and_no_other(folder: Path) -> None:
    (folder / "sales" / "paid.sql").write_text("-- kind: view\nSELEC id FROM sales.orders")
    (folder / "alone.sql").write_text("SELECT id FROM sales.orders")
    [problem] = find_problems(read_folder(folder))
    assert problem.table == "total"
    assert problem.error.what == (
        'stream table "total": view "sales.paid": SELEC does not begin a query'
    )


def test_views_in_a_circle_are_a_problem_of_the_tables_that_name_them() -> None:
    views = [View("paid", "SELECT * FROM kept"), View("kept", "SELECT * FROM paid")]
    [entry] = build_catalog([TOTAL], views=views).entries
    assert entry.examined.error is not None
    assert entry.examined.error.where == "paid reads kept reads paid"


@pytest.mark.parametrize(
    ("header", "what"),
    [
        ("-- kind: view\n-- schedule: 5m\n", 'a view has no setting "schedule"'),
        ("-- columns: a\n", 'a stream table has no setting "columns"'),
        ("-- kind: cube\n", 'there is no kind "cube"'),
        ("-- kind: view\n-- dialect: postgre\n", 'there is no SQL dialect "postgre"'),
        ("-- dialect: postgre\n", 'there is no SQL dialect "postgre"'),
        ("-- session_timezone: Berlin\n", 'there is no time zone "Berlin"'),
    ],
)
def test_a_header_that_says_what_cannot_be_is_refused(folder: Path, header: str, what: str) -> None:
    (folder / "other.sql").write_text(f"{header}SELECT 1 AS a FROM t")
    broken = [table for table in read_folder(folder) if isinstance(table, BrokenTable)]
    assert [table.name for table in broken] == ["other"]
    assert what in broken[0].error.what


def test_a_name_is_a_view_or_a_table_and_not_both() -> None:
    same = StreamTable("paid", "SELECT 1 AS a FROM t")
    [broken] = build_catalog([same], views=[PAID]).entries
    assert broken.examined.error is not None
    assert "a stream table has the name of a view" in broken.examined.error.what
    [*_, twice] = build_catalog([TOTAL], views=[PAID, View("paid", "SELECT 1 AS a")]).entries
    assert twice.examined.error is not None
    assert "another view has the name of a view" in twice.examined.error.what


def test_a_lake_with_views_is_opened_once(logs: StreamTablesResource) -> None:
    view = View("clean", "SELECT * FROM sales.orders")

    assert logs.lake([view]) is logs.lake([view])
    assert logs.lake([view]) is not logs.lake()
    assert logs.lake() is logs.lake()
