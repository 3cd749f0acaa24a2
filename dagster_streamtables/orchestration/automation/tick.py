"""One tick of the refresh sensor: histories and versions → runs, events without a run, reasons."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import dagster as dg

from dagster_streamtables.amounts import count
from dagster_streamtables.declare.schedule import Schedule
from dagster_streamtables.log import logger
from dagster_streamtables.orchestration.automation.sensor_events import (
    missing_events,
    needs_mark,
    repeat_materialization,
)
from dagster_streamtables.orchestration.automation.sensor_settings import SensorSettings
from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.orchestration.catalog.asset_catalog import RESOURCE_KEY, Catalog
from dagster_streamtables.orchestration.catalog.node_assets import NodeAssets
from dagster_streamtables.orchestration.catalog.provenance import (
    CODE_VERSION,
    last_observation,
    observation,
)
from dagster_streamtables.orchestration.checks.blocking import BlockingChecks, blocks_of
from dagster_streamtables.orchestration.checks.quick_checks import QuickChecks
from dagster_streamtables.orchestration.instance.dagster_runs import (
    DEFINITIONS_TAG,
    SENSOR_TAG,
    AssetHistory,
    end_dead_runs,
    latest,
    read_history,
    requesting_process,
)
from dagster_streamtables.orchestration.instance.standing_checks import results_to_repeat
from dagster_streamtables.runtime.delta.delta_log import Head
from dagster_streamtables.runtime.observe.lease import Heartbeat, Heartbeats, LastHeartbeat
from dagster_streamtables.scheduling import dueness
from dagster_streamtables.scheduling.dueness import TickPlan
from dagster_streamtables.scheduling.other_definitions import OtherDefinitions
from dagster_streamtables.scheduling.refresh_states import (
    RefreshProgress,
    Versions,
    refresh_states,
    replication_states,
    suspension_reasons,
)

if TYPE_CHECKING:
    from dagster_streamtables.runtime.lake import Lake

_SKEW = timedelta(minutes=5)
"""How far the clocks of two machines may differ. A time further in the future comes from a wrong
clock, and is ignored: a table must not wait for it."""
_NEXT_SHOWN = 5
_BY_CONDITIONS = "Automation conditions start the refreshes."


@dataclass(frozen=True)
class Cursor:
    """The recorded versions of sources, and when tables were found up to date."""

    sources: Mapping[str, tuple[int, str]] = field(default_factory=dict[str, tuple[int, str]])
    """The newest commit of each: its version, and a digest."""
    looked: Mapping[str, float] = field(default_factory=dict[str, float])
    """When each table was last found to have nothing to do, in seconds since 1970."""
    heard: LastHeartbeat | None = None
    """The newest heartbeat of a worker, and when this sensor first saw it."""

    @classmethod
    def read(cls, text: str | None) -> Cursor:
        """The cursor of a text; an empty one if it has none, as after another version."""
        try:
            values = json.loads(text or "{}")
            return cls(
                {str(name): (int(v), str(c)) for name, (v, c) in values["sources"].items()},
                {str(name): float(at) for name, at in values["looked"].items()},
                None if values["worker"] is None else _heard(*values["worker"]),
            )
        except (ValueError, TypeError, KeyError, AttributeError):
            return cls()

    def write(self) -> str:
        worker = None if self.heard is None else (self.heard.beat, self.heard.since)
        return json.dumps({"sources": self.sources, "looked": self.looked, "worker": worker})

    def up_to_date(self, name: str, as_of: datetime | None, now: datetime) -> datetime | None:
        """The time as of which a table is known to reflect its sources, given the time as of which
        its last refresh read them; None if unknown."""
        looked = self.looked.get(name)
        moments = [as_of, datetime.fromtimestamp(looked, UTC) if looked is not None else None]
        return max((m for m in moments if m is not None and m <= now + _SKEW), default=None)

    def after(
        self,
        observed: Mapping[str, Head],
        fresh: Iterable[str],
        kept: Iterable[str],
        now: datetime,
        heard: LastHeartbeat | None = None,
    ) -> Cursor:
        """The cursor after a tick that recorded the commits `observed` and found the tables
        `fresh`; entries of tables that are not in `kept` are removed."""
        looked = {name: self.looked[name] for name in kept if name in self.looked}
        return Cursor(
            {**self.sources, **{name: (h.version, h.commit) for name, h in observed.items()}},
            looked | dict.fromkeys(fresh, round(now.timestamp(), 3)),
            heard,
        )


def _heard(beat: str, since: float) -> LastHeartbeat:
    return LastHeartbeat(str(beat), float(since))


class TickMemory:
    """What the ticks of one process read once, and what they remember: the heads of the logs, the
    heartbeats of a worker, whose tables are left to it while it lives, and other definitions."""

    def __init__(
        self, lake: Lake, resource_key: str = RESOURCE_KEY, orphans: Collection[str] = ()
    ) -> None:
        options = lake.storage_options
        self.heads = lake.latest_versions()
        self.beats = Heartbeats(lake.root, options, resource_key)
        self.others = OtherDefinitions(orphans)


def evaluate(
    assets: NodeAssets,
    instance: dg.DagsterInstance,
    lake: Lake,
    *,
    now: datetime,
    settings: SensorSettings | None = None,
    cursor: str | None = None,
    memory: TickMemory | None = None,
    checks: Collection[dg.AssetCheckKey] = (),
    quick: QuickChecks | None = None,
    blocking: BlockingChecks | None = None,
    reports: bool = True,
    server: object = None,
) -> dg.SensorResult:
    """The result of a tick: run requests, events, the new cursor, and skip reasons.

    Args:
        assets: What is refreshed. A replication is refreshed as a whole.
        instance: The Dagster instance with the history of the assets.
        lake: The lake with their versions; needs no Spark.
        now: The time of the tick.
        settings: How to decide.
        cursor: The cursor that the last tick returned.
        memory: What earlier ticks of this process read.
        checks: Checks whose results are repeated when their table is marked fresh.
        quick: The checks to evaluate between refreshes.
        blocking: The blocking checks of the code location.
        reports: Whether the caller is the sensor, which reports the events of the result, and
            leaves the runs to automation conditions if these are set. Otherwise the event of a
            commit, which is reported only once, is left to a caller that does.
        server: As for `end_dead_runs`.
    """
    memory, blocking = memory or TickMemory(lake), blocking or BlockingChecks()
    others = memory.others
    settings = (settings or SensorSettings()).with_default_name(RESOURCE_KEY)
    by_conditions = reports and settings.conditions
    catalog, nodes = assets.catalog, assets.nodes
    tags = {SENSOR_TAG: settings.name, DEFINITIONS_TAG: nodes.fingerprint}
    end_dead_runs(instance, server)
    histories = read_history(
        instance,
        [spec.key for spec in assets.all],
        requested=tags,
        stuck_after=settings.stuck_after,
        now=now,
    )
    past = {n: latest(histories[s.key] for s in specs) for n, specs in assets.specs.items()}
    schedules, reads = nodes.schedules, nodes.reads
    before = Cursor.read(cursor)
    # A refresh counts from when it read the versions of its sources: one that was in progress when
    # the next became due does not replace it.
    last = {name: before.up_to_date(name, history.as_of, now) for name, history in past.items()}
    heard, worker = _listen(memory.beats, before, now)
    left = frozenset(worker.tables if worker is not None else ())
    due = [n for n in dueness.due(schedules, reads, last, now) if n not in left]
    versions = Versions(memory.heads)
    refused = blocks_of(assets.source_keys, blocking.refusals(instance))
    known = {name: progress_of(assets.specs[name], past[name]) for name in due}
    replications = {n: each for n, each in nodes.replications.items() if n in known}
    tables = {name: nodes.tables[name] for name in due if name in nodes.tables}
    suspended = suspension_reasons(tables.values(), lake)
    states = {
        **replication_states(replications, known, lake, now, settings.backoff),
        **refresh_states(tables, known, versions, suspended, others, now, refused),
    }
    decision = dueness.decide(states, reads, now, settings.backoff, nodes.writers)
    for name in decision.refresh:
        if states[name].redefined:
            others.ask(name, versions.head_with_state(name), now)
    told = missing_events(assets, due, left, past, versions, instance, lake, now) if reports else {}
    groups = dueness.runs(decision, schedules, last, reads)
    ours = {name: each for name, each in schedules.items() if name not in left}
    fresh = [n for n in decision.fresh if schedules[n] is not None]
    marked = {
        spec.key: histories[spec.key]
        for name in fresh
        for spec in assets.specs[name]
        if name not in {*told, *others.notes}
        and needs_mark(spec, schedules[name], histories[spec.key], now)
    }
    observed = {
        name: head
        for name, head in versions.read.items()
        if settings.observe_sources
        and name in catalog.observed
        and head is not None
        and before.sources.get(name) != (head.version, head.commit)
    }
    return dg.SensorResult(
        run_requests=[] if by_conditions else _requests(groups, assets, tags, blocking),
        skip_reason=None
        if groups and not by_conditions
        else "\n".join(
            [
                *([_BY_CONDITIONS] if by_conditions else []),
                *(
                    [f"The worker {worker.place} refreshes {count(len(left), 'table')}."]
                    if worker
                    else []
                ),
                *_reasons(catalog, decision, ours, last),
                *(f"{note}." for note in others.notes.values()),
                *_orphan_notes(others, versions),
                *dueness.too_fast(ours, settings.interval_seconds),
            ]
        ),
        cursor=before.after(observed, fresh, assets.specs, now, heard).write(),
        asset_events=[
            *told.values(),
            *(
                repeat_materialization(spec, marked[spec.key])
                for spec in assets.all
                if spec.key in marked
            ),
            *results_to_repeat(instance, checks, marked),
            *(quick.new_results(lake, instance, past, now) if quick is not None else ()),
            *(
                _observation(instance, catalog.observed[n], h, before, n)
                for n, h in observed.items()
            ),
        ],
    )


def _orphan_notes(others: OtherDefinitions, versions: Versions) -> Iterator[str]:
    versions.look(others.orphans)
    left = [name for name in others.orphans if versions.read.get(name) is not None]
    if left:
        yield (
            f"Stored, but not declared here: {', '.join(left)}. The command streamtables orphans "
            "tells how to rename or drop them."
        )


def _listen(
    beats: Heartbeats, before: Cursor, now: datetime
) -> tuple[LastHeartbeat | None, Heartbeat | None]:
    try:
        return beats.alive(before.heard, now.timestamp())
    except Exception as error:  # what cannot be read must not stop the refreshes
        logger.warning("whether a worker is alive is not known, so runs go on: %s", error)
        return before.heard, None


def progress_of(specs: Sequence[dg.AssetSpec], history: AssetHistory) -> RefreshProgress:
    """What Dagster remembers of the refreshes of a table, or of the tables of a replication."""
    return RefreshProgress(
        last=history.last,
        seen=keys.read_heads(history.metadata),
        redefined=specs[0].code_version not in (None, history.tags.get(CODE_VERSION)),
        run=history.run,
        failures=history.failures,
        failed_at=history.failed_at,
    )


def _requests(
    groups: Sequence[Sequence[str]],
    assets: NodeAssets,
    tags: Mapping[str, str],
    blocking: BlockingChecks,
) -> list[dg.RunRequest]:
    """One run request per group, with the checks that may stop it. Without a run key: Dagster never
    launches a second run with the same key, even if the first one failed."""
    selected = [[spec.key for name in group for spec in assets.specs[name]] for group in groups]
    return [
        dg.RunRequest(
            asset_selection=keys,
            asset_check_keys=blocking.of(keys),
            tags={**tags, **requesting_process(), "dagster/priority": str(len(groups) - place)},
        )
        for place, keys in enumerate(selected)
    ]


def _observation(
    instance: dg.DagsterInstance, key: dg.AssetKey, head: Head, before: Cursor, name: str
) -> dg.AssetObservation:
    version, _ = before.sources.get(name, (None, ""))
    # What was told last matters only if it may have the same number.
    last = last_observation(instance, key) if version in (None, head.version) else None
    return observation(key, head, last)


def _reasons(
    catalog: Catalog,
    decision: TickPlan,
    schedules: Mapping[str, Schedule | None],
    last: Mapping[str, datetime | None],
) -> Iterator[str]:
    if decision.fresh:
        yield f"Due, but without changes: {', '.join(decision.fresh)}."
    for name, why in decision.held.items():
        yield f"{name} is due, but not refreshed: {why}."
    coming = sorted(
        (dueness.due_at(schedule, last.get(name)), name)
        for name, schedule in schedules.items()
        if schedule is not None and name not in {*decision.fresh, *decision.held}
    )
    if coming:
        shown = (f"{name} at {at:%Y-%m-%d %H:%M:%S}" for at, name in coming[:_NEXT_SHOWN])
        yield f"Due next: {', '.join(shown)}."
    if on_demand := [name for name, schedule in schedules.items() if schedule is None]:
        yield f"Refreshed on demand only: {', '.join(on_demand)}."
    for entry in catalog.entries:
        if entry.examined.error is not None:
            yield f"Broken: {entry.examined.error.what}."
    if not catalog.entries and not schedules:
        yield "There are no stream tables."
