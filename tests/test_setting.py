"""Every public setting, given values of other types and out of range: refused in words."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from dagster_streamtables import Lake, StreamTable, StreamTablesResource, View, build_definitions
from dagster_streamtables.components.component_settings import OpSettings
from dagster_streamtables.declare.sql_files import SETTINGS, read_header
from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.orchestration.automation.sensor_settings import SensorSettings
from dagster_streamtables.orchestration.checks.check_kind import CheckSettings
from dagster_streamtables.runtime.spark import local_server, settings
from dagster_streamtables.scheduling.dueness import Backoff
from runtime.orders import NOWHERE, TOTALS

TEXT, NUMBER, TRUTH = (7, None, ["a"]), ("x", None, True), ("no", 1, None)
ZERO, NEGATIVE = timedelta(), timedelta(seconds=-1)

TABLE: dict[str, tuple[object, ...]] = {
    "name": (7, None, "a b", ""),
    "query": (7, None, " ; "),
    "mode": ("quick", 1, None),
    "schedule": (5, ["5m"]),
    "timezone": TEXT,
    "description": TEXT,
    "differential_max_change_ratio": (*NUMBER, -0.1, 1.1, float("nan")),
    "file": (7,),
    "dialect": (*TEXT, "klingon"),
    "session_timezone": (*TEXT, "Moon"),
    "views": (7, "v", ["v"]),
    "on_schema_change": ("ignore", 1, None),
    "on_manual_write": ("ignore", 1, None),
    "on_full": ("never", 1, None),
    "on_representation": ("ignore", 1, None),
    "functions": (7, "project.functions", [7], ["no module"], ["a:b:c"]),
    "changed_at": (*TEXT, "a b", "__st_n"),
    "cdc_mode": ("none", 1, None),
    "max_consecutive_errors": (*NUMBER, -1, 1.5),
    "initialize": TRUTH,
    "owners": (7, "ann@example.com", [7], ["nobody"]),
    "tags": (7, "gold", {"a": 1}, {"a b": "c"}),
    "group": (*TEXT, "a b"),
    "line": (*NUMBER, 0),
    "max_recursion_levels": (*NUMBER, 0),
    "max_recursion_rows": (*NUMBER, 0),
}
VIEW = {
    "name": TEXT,
    "query": (7, None, ";"),
    "columns": (7, "a", [1]),
    "dialect": (*TEXT, "klingon"),
    "description": TEXT,
    "file": (7,),
    "line": (*NUMBER, 0),
}
LAKE = {
    "root": (7, None, ""),
    "storage_options": (7, "x", {"a": 1}),
    "driver_rows": ("x", True, -1, 1.5),
    "preview_rows": (*NUMBER, -1),
    "allow_unsafe_commits": TRUTH,
    "views": (7, "v", ["v"]),
    "catalogs": (7, "main", {"main": 1}, {"main": "main"}),
    "catalog_token": (7, None),
    "register_in": (7, None),
    "ask_spark": TRUTH,
}
RESOURCE = {
    "root": (7, None, ""),
    "spark": (7,),
    "storage_options": (7, "x", {"a": 1}),
    "catalogs": (7, "main", {"main": 1}),
    "catalog_token": (7, None),
    "register_in": (7, None),
    "max_concurrent_refreshes": (*NUMBER, 0, 1.5),
    "preview_rows": (*NUMBER, -1),
    "allow_unsafe_commits": TRUTH,
}
_SPAN = ("1h", 60, None, ZERO, NEGATIVE)
_CRON = ("x", 7, "5m", "* * * * * *", "61 * * * *")
_SCHEDULES = "equality state columns freshness retention full pinned lag origin replication"
CHECKS = {
    **dict.fromkeys(_SCHEDULES.split(), _CRON),
    "timezone": (*TEXT, "Moon"),
    "enabled": TRUTH,
    "sample": ("x", True, 0, 2, -0.5),
    "quick": ("1h", 60, NEGATIVE),
    "grace": ("1h", 60, None, NEGATIVE),
    "warn_before": ("1h", 60, None, NEGATIVE),
    "max_lag": ("1h", 60, None, NEGATIVE),
}
SENSOR = {
    "name": TEXT,
    "enabled": TRUTH,
    "interval_seconds": (*NUMBER, 0, -5),
    **dict.fromkeys(("stuck_after", "retry_first", "retry_longest"), _SPAN),
    "observe_sources": TRUTH,
    "conditions": TRUTH,
}
BACKOFF = dict.fromkeys(("first", "longest"), _SPAN)
OPS = {
    "pool": (7,),
    "tags": (7, "gold", {"a": 1}),
    "max_retries": (*NUMBER, -1, 1.5),
    "retry_delay_seconds": (*NUMBER, -1),
}
DEFINITIONS = {
    "resource": (7, None, "lake"),
    "name": TEXT,
    "tables": (7, None),
    "views": (7, ["v"]),
    "folder": (7,),
    "assets": (7,),
    "change_assets": (7,),
    "replications": (7,),
    "written_by_dagster": (7,),
    "translator": (7,),
    "group_name": (7,),
    "source_group_name": (7,),
    "source_keys": (7, ["a"]),
    "min_schedule_seconds": (*NUMBER, -1),
    "compile_at_load": TRUTH,
    "strict": TRUTH,
    "sensor": (7,),
    "checks": (7,),
    "alerts": (7,),
    "executor": (7,),
    "pool": (7,),
    "retry_policy": (7,),
    "op_tags": (7, "gold"),
    "refresh": (7,),
}


def made(kind: Callable[..., Any], **given: Any) -> Callable[..., Any]:
    return lambda **more: kind(**{**given, **more})


KINDS: dict[str, tuple[Any, Callable[..., Any], dict[str, tuple[object, ...]]]] = {
    "StreamTable": (StreamTable, made(StreamTable, name="a", query="SELECT 1 AS n"), TABLE),
    "View": (View, made(View, name="a", query="SELECT 1 AS n"), VIEW),
    "Lake": (Lake.__init__, made(Lake, root="lake"), LAKE),
    "StreamTablesResource": (
        StreamTablesResource,
        made(StreamTablesResource, root="lake"),
        RESOURCE,
    ),
    "CheckSettings": (CheckSettings, CheckSettings, CHECKS),
    "SensorSettings": (SensorSettings, SensorSettings, SENSOR),
    "Backoff": (Backoff, Backoff, BACKOFF),
    "OpSettings": (OpSettings, OpSettings, OPS),
    "build_definitions": (
        build_definitions,
        made(build_definitions, resource=StreamTablesResource(root="lake")),
        DEFINITIONS,
    ),
}
NOT_FED = {"self", "pyspark"} | {"spark"}
"""What takes any object; and the session of a `Lake`, whose type is imported for the checker."""


@pytest.mark.parametrize("kind", KINDS)
def test_every_setting_is_fed(kind: str) -> None:
    declared, _, values = KINDS[kind]
    if dataclasses.is_dataclass(declared):
        names = {field.name for field in dataclasses.fields(declared)}
    elif isinstance(declared, type):
        names = set(StreamTablesResource.model_fields)
    else:
        names = set(inspect.signature(declared).parameters)
    assert names - NOT_FED == set(values) - NOT_FED, (
        f"give each setting of {kind} some wrong values, in its dictionary at the top of this file"
    )


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        (kind, n, v)
        for kind, (_, _, values) in KINDS.items()
        for n, vs in values.items()
        for v in vs
    ],
)
def test_what_cannot_be_is_refused_in_words(kind: str, name: str, value: object) -> None:
    with pytest.raises(InvalidDefinition) as raised:
        KINDS[kind][1](**{name: value})
    error = raised.value
    assert error.what
    assert error.fix
    words = [name, *map(str, value if isinstance(value, list | dict) else [value])]
    assert any(word.strip(" ;") and word in str(error) for word in words) or name == "query"


HEADER = {
    "mode": "quick",
    "differential_max_change_ratio": "many",
    "max_consecutive_errors": "1.5",
    "max_recursion_levels": "deep",
    "max_recursion_rows": "0",
    "initialize": "no",
    "on_schema_change": "ignore",
    "on_manual_write": "ignore",
    "on_full": "never",
    "on_representation": "ignore",
    "functions": "no module",
    "changed_at": "a b",
    "cdc_mode": "none",
    "kind": "thing",
    "owners": "nobody",
    "tags": "a b",
    "group": "a b",
}
FREE = {"name", "schedule", "timezone", "description", "dialect", "session_timezone", "columns"}
"""Texts, of which the table, the view, or the schedule says what they may be."""


def test_every_key_of_a_header_is_fed() -> None:
    assert {*HEADER, *FREE} == set(SETTINGS)


@pytest.mark.parametrize(("key", "text"), HEADER.items())
def test_a_header_is_refused_with_its_line(key: str, text: str) -> None:
    with pytest.raises(InvalidDefinition) as raised:
        read_header(f"-- a comment\n-- {key}: {text}\nSELECT 1 AS n")
    assert "2" in raised.value.where.splitlines()[0]
    assert raised.value.fix


@pytest.mark.parametrize(
    ("name", "text", "ask"),
    [
        ("STREAMTABLES_SPARK_MEMORY", "plenty", settings.driver_memory),
        ("STREAMTABLES_SPARK_MEMORY", "0g", settings.driver_memory),
        ("STREAMTABLES_IDLE_MINUTES", "long", local_server.idle_minutes),
        ("STREAMTABLES_IDLE_MINUTES", "-1", local_server.idle_minutes),
    ],
)
def test_the_environment_is_refused_by_name(
    name: str, text: str, ask: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, text)
    with pytest.raises(InvalidDefinition, match=f'the setting {name} is "{text}"'):
        ask()
    monkeypatch.setenv(name, "")
    assert ask()


def test_methods_refuse_what_cannot_be(tmp_path: Path) -> None:
    lake: Any = Lake(tmp_path, spark=NOWHERE)
    for call in (
        lambda: lake.refresh("mart.totals"),
        lambda: lake.refresh(TOTALS, full="no"),
        lambda: lake.refresh_all([TOTALS], max_concurrent=0),
        lambda: lake.check(TOTALS, sample=2),
        lambda: lake.retention.vacuum("orders", keep=timedelta(hours=-1)),
    ):
        with pytest.raises(InvalidDefinition, match="the setting"):
            call()
