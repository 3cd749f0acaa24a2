"""What a user writes over the public names; `test_wheel.py` checks it by pyright in strict mode."""

# No `from __future__ import annotations`: Dagster reads the annotation of an op's context.
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import dagster as dg
from dagster_deltalake import LocalConfig
from prometheus_client import CollectorRegistry

from dagster_streamtables import (
    Action,
    Alert,
    AlertKind,
    CdcMode,
    CheckSettings,
    Lake,
    Mode,
    Refresh,
    StreamTable,
    StreamTablesComponent,
    StreamTablesError,
    StreamTablesIOManager,
    StreamTablesResource,
    StreamTablesTranslator,
    View,
    build_alert_sensor,
    build_definitions,
    build_refresh_sensor,
    build_source_assets,
    build_stream_table_assets,
    load_tables,
    stream_table_assets,
)
from dagster_streamtables.checks import build_table_checks
from dagster_streamtables.declarations import alter_table, expected_tables, find_problems
from dagster_streamtables.errors import UnsupportedQuery
from dagster_streamtables.metrics import StreamTablesCollector
from dagster_streamtables.reports import Comparison, Window

TABLES = [
    StreamTable("mart.paid", "SELECT SUM(paid) AS paid FROM raw.payments", schedule="5m"),
    StreamTable("mart.all", "SELECT * FROM raw.payments", mode=Mode.AUTO, cdc_mode=CdcMode.CDF),
]


def refresh(lake: Lake, table: StreamTable) -> str:
    try:
        done: Refresh = lake.refresh(table, until={"raw.payments": datetime.now().astimezone()})
    except UnsupportedQuery as error:
        return f"{error.what}: {error.fix}"
    except StreamTablesError as error:
        return str(error)
    windows: Mapping[str, Window] = done.windows
    if done.action is Action.DIFFERENTIAL:
        return f"{done.reason}: {sum(each.rows or 0 for each in windows.values())}"
    return f"{done.inserted} {done.deleted}"


def prove(lake: Lake, table: StreamTable) -> bool:
    compared: Comparison = lake.check(table, sample=0.05)
    return compared.equal


def look(lake: Lake) -> list[tuple[str, str, bool]]:
    return [(each.table, each.status, each.suspended) for each in lake.monitor.status()]


def tell(alert: Alert) -> None:
    if alert.kind is AlertKind.SUSPENDED:
        print(alert.table, alert.message)


class Layers(StreamTablesTranslator):
    pass


class Mine(StreamTablesComponent):
    pass


def definitions() -> dg.Definitions:
    return build_definitions(
        tables=TABLES,
        views=[View("raw.recent", "SELECT * FROM raw.payments WHERE at > now() - INTERVAL 1 DAY")],
        resource=StreamTablesResource(root="lake", spark="sc://host:15002"),
        checks=CheckSettings(equality="0 3 * * *", sample=0.01),
        alerts=tell,
        translator=Layers(),
    )


@stream_table_assets(tables=TABLES)
def several(
    context: dg.AssetExecutionContext, streamtables: StreamTablesResource
) -> Iterator[dg.MaterializeResult[Any]]:
    yield from streamtables.refresh(context)


def by_hand() -> dg.Definitions:
    return dg.Definitions(
        assets=[
            *build_stream_table_assets(tables=TABLES),
            *build_source_assets(tables=TABLES),
        ],
        asset_checks=build_table_checks(tables=TABLES, kinds=["equality"]),
        sensors=[
            build_refresh_sensor(tables=TABLES),
            build_alert_sensor(tables=TABLES, alerts=tell),
        ],
        resources={
            "streamtables": StreamTablesResource(root="lake"),
            "io_manager": StreamTablesIOManager(root_uri="lake", storage_options=LocalConfig()),
        },
    )


def in_ci(lake: Lake) -> list[str]:
    tables = load_tables("tables")
    alter_table(tables[0], {"schedule": "10m"})
    return [str(each.error) for each in find_problems(tables, lake) if each.fatal]


def serve(lake: Lake, registry: CollectorRegistry) -> None:
    registry.register(StreamTablesCollector(lake.monitor, lambda: expected_tables(TABLES)))
