"""All checks of a code location, and their schedules."""

from __future__ import annotations

from collections.abc import Iterator

import dagster as dg

from dagster_streamtables.orchestration.catalog.catalog import Catalog
from dagster_streamtables.orchestration.catalog.lake_provider import RESOURCE_KEY
from dagster_streamtables.orchestration.checks.check_kinds import KINDS
from dagster_streamtables.orchestration.checks.check_settings import CheckSettings
from dagster_streamtables.orchestration.checks.quick_checks import QuickChecks


def build_checks(
    catalog: Catalog, settings: CheckSettings, name: str = RESOURCE_KEY
) -> Iterator[dg.AssetChecksDefinition]:
    """All checks of all tables that are not broken, one op for each kind.

    Args:
        catalog: The stream tables.
        settings: The settings of the checks.
        name: The name of the resource, and the prefix of the names of the ops.
    """
    if catalog.sound:
        for kind in KINDS:
            yield kind.op(settings, name, tables=catalog, resource_key=name)


def build_quick_checks(catalog: Catalog, settings: CheckSettings) -> QuickChecks | None:
    """The checks that are evaluated without a separate run."""
    return None if settings.quick is None else QuickChecks(catalog, settings, settings.quick)


def build_check_schedules(
    catalog: Catalog,
    settings: CheckSettings,
    executor: dg.ExecutorDefinition | None,
    name: str = RESOURCE_KEY,
) -> Iterator[dg.ScheduleDefinition]:
    """The schedules of the checks that have one."""
    keys = [entry.key for entry in catalog.sound]
    for kind in KINDS:
        yield from kind.schedules(keys, "stream table", settings, executor, name)
