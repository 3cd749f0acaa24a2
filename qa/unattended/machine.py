"""A state machine over a real code location, in process, on real Delta tables.

Steps are what writers, people and machines do: commits, tables that are made again, vacuums,
restores, deployments, runs that are killed, drivers that are switched. Each reason that a refresh
or a tick gives must be true. After it has settled, each table equals its query by column name,
Dagster's last event is the table's last version, what is downstream has read its data version,
nothing below a failed blocking check is newer than it, and no further run starts.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import wraps
from pathlib import Path
from typing import Any
from unittest.mock import patch

import dagster as dg
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from hypothesis.strategies import booleans, integers, sampled_from

from dagster_streamtables import Mode, StreamTable, StreamTablesResource
from dagster_streamtables.orchestration.automation import sensor_events
from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.runtime.model.refresh_report import Refresh
from orchestration.place import Deployment, hurry, reasons
from qa.unattended.truth import Past, said_to_be_fresh

UPPER, LOWER = ("paid", "payments"), ("totals", "sums")
"""The names that the two tables may have."""
PAID = "SELECT id, amount FROM orders WHERE amount > {limit}"
TOTALS = {
    "plain": "SELECT count(*) AS n, sum(amount) AS total FROM {upper}",
    "other case": "select COUNT(*) n, SUM(`amount`) total from {upper}",
    "other query": "SELECT count(*) AS n, max(amount) AS total FROM {upper}",
}
CURSORS = [None, "0", "[]", "yesterday", '{"later": 1}']
_WEEK = 8 * 86_400
_CLAIM = timedelta(seconds=1)
"""How long a claim to report a commit lasts here; in production, a minute."""
tally: dict[str, int] = {}
"""How often each step was taken."""


def step(**given: Any) -> Callable[[Callable[..., None]], Any]:
    """A rule of the machine, counted.

    Args:
        given: What it draws.
    """

    def ruled(does: Callable[..., None]) -> Any:
        @rule(**given)
        @wraps(does)
        def taken(self: Any, **drawn: Any) -> None:
            tally[does.__name__] = tally.get(does.__name__, 0) + 1
            self.past.take(does.__name__)
            does(self, **drawn)

        return taken

    return ruled


class Unattended(RuleBasedStateMachine):
    """One code location with a chain of two tables over `orders`."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="unattended-"))
        self.instance = dg.DagsterInstance.ephemeral()
        self.next = 0
        self.upper, self.lower = UPPER[0], LOWER[0]
        self.past = Past()
        self.lies: list[str] = []
        self.refresh = Lake.refresh
        self.patches = [
            patch.object(Lake, "refresh", self._overhear()),
            patch.object(sensor_events, "_LONGEST", _CLAIM),
        ]
        for each in self.patches:
            each.start()

    @initialize()
    def begin(self) -> None:
        self.past.take("begin")
        self._write()
        queries = {self.upper: PAID.format(limit=10), self.lower: self._totals("plain")}
        self.place = Deployment(
            StreamTablesResource(root=str(self.root)),
            self.instance,
            {n: StreamTable(n, query, schedule="on change") for n, query in queries.items()},
            {self.upper: True},
        )

    # Writers.

    @step()
    def append(self) -> None:
        self._write()

    @step()
    def delete(self) -> None:
        DeltaTable(self._orders).delete("id % 3 = 0")

    @step()
    def update(self) -> None:
        DeltaTable(self._orders).update(predicate="id % 2 = 0", updates={"amount": "amount + 7"})

    @step(versions=integers(1, 3))
    def make_again(self, versions: int) -> None:
        shutil.rmtree(self._orders)
        for _ in range(versions):
            self._write()

    @step()
    def put_back_a_copy(self) -> None:
        copy = self.root / "copy"
        shutil.copytree(self._orders, copy)
        self._write()
        self.place.settle()
        shutil.rmtree(self._orders)
        copy.rename(self._orders)
        self._write()

    @step()
    def restore(self) -> None:
        table = DeltaTable(self._orders)
        with suppress(DeltaError):  # files of version 0 may be gone
            if table.version():
                table.restore(0)

    @step()
    def compact(self) -> None:
        DeltaTable(self._orders).optimize.compact()

    @step()
    def vacuum(self) -> None:
        DeltaTable(self._orders).vacuum(0, dry_run=False, enforce_retention_duration=False)

    @step()
    def age(self) -> None:
        then = time.time() - _WEEK
        for file in (self._orders / "_delta_log").glob("*.json"):
            os.utime(file, (then, then))

    @step()
    def hurry(self) -> None:
        """A commit by a writer whose clock is an hour ahead."""
        self._write()
        hurry(self._orders, DeltaTable(self._orders).version())

    @step(upper=booleans())
    def write_into_a_stream_table(self, upper: bool) -> None:
        name = self._name(upper)
        if self.place.stored(name) is not None:
            DeltaTable(self.root / "public" / name).delete()

    # People.

    @step(limit=sampled_from([0, 10, 25]), form=sampled_from(list(TOTALS)), load=booleans())
    def edit(self, limit: int, form: str, load: bool) -> None:
        files = self.place.files
        files[self.upper] = replace(files[self.upper], query=PAID.format(limit=limit))
        files[self.lower] = replace(files[self.lower], query=self._totals(form))
        if load:
            self.place.reload()

    @step(mode=sampled_from(list(Mode)))
    def change_mode(self, mode: Mode) -> None:
        self.place.files[self.lower] = replace(self.place.files[self.lower], mode=mode)
        self.place.reload()

    @step(upper=booleans())
    def rename(self, upper: bool) -> None:
        """A table is declared by another name, under which there may be an older one."""
        before, names = self._name(upper), UPPER if upper else LOWER
        [after] = {*names} - {before}
        files = self.place.files
        files[after] = replace(files.pop(before), name=after)
        if upper:
            self.upper = after
            lower = files[self.lower]
            files[self.lower] = replace(lower, query=lower.query.replace(before, after))
            self.place.verdicts = {after: self.place.verdicts[before]}
        else:
            self.lower = after
        self.place.reload()

    @step()
    def refresh_from_an_old_checkout(self) -> None:
        old = replace(self.place.files[self.upper], query=PAID.format(limit=3))
        self.place.resource.lake().refresh(old)

    @step()
    def refresh_without_dagster(self) -> None:
        self.place.resource.lake().refresh(self.place.files[self.upper])

    @step()
    def reload(self) -> None:
        self.place.reload()

    @step(passes=booleans())
    def change_the_verdict(self, passes: bool) -> None:
        self.place.verdicts[self.upper] = passes

    @step(cursor=sampled_from(CURSORS))
    def lose_the_cursor(self, cursor: str | None) -> None:
        self.place.cursor = cursor

    @step()
    def wipe_the_event_log(self) -> None:
        self.instance.wipe_assets([dg.AssetKey(name) for name in self.place.files])
        time.sleep(_CLAIM.total_seconds())  # until then, nobody else reports what was reported

    # Machines.

    @step()
    def tick(self) -> None:
        found = self.place.tick()
        for name in said_to_be_fresh(reasons(found)):
            compared = self.place.resource.lake().check(self.place.known[name])
            assert compared.equal, f"{name} is due, and not without changes: {compared}"
        for request in found.run_requests or ():
            self.place.execute(request)

    @step()
    def work(self) -> None:
        self.place.work()

    @precondition(lambda self: self.place.stored(self.upper) is not None)
    @step(upper=booleans())
    def kill_a_run_after_its_commit(self, upper: bool) -> None:
        self.place.kill(self._name(upper))

    @step(upper=booleans())
    def kill_a_run_before_its_commit(self, upper: bool) -> None:
        key = dg.AssetKey(self._name(upper))
        request = dg.RunRequest(asset_selection=[key], asset_check_keys=[])
        with patch.object(Lake, "refresh", side_effect=dg.Failure("killed", allow_retries=False)):
            self.place.execute(request)

    # What must hold.

    @invariant()
    def reasons_are_true(self) -> None:
        assert not self.lies, (self.lies, self.past.steps)

    def teardown(self) -> None:
        try:
            if hasattr(self, "place"):
                self._come_to_rest()
        finally:
            for each in self.patches:
                each.stop()
            shutil.rmtree(self.root, ignore_errors=True)

    def _come_to_rest(self) -> None:
        self.past.take("rest")
        self.place.settle()
        if "reload the code location" in reasons(self.place.tick()):
            self.place.reload()
        if "by another one again" in reasons(self.place.tick()):
            self.place.reload()
        self.place.settle()
        # A check that failed holds what is below until a run evaluates it again.
        below = [self.lower] if self.place.refusals else []
        complaints = list(self.place.complaints(but=below))
        assert not complaints, (complaints, self.past.steps)
        if below and not self.place.verdicts[self.upper]:
            before = self.place.stored(self.lower)
            self._write()
            self.place.settle()
            assert self.place.stored(self.lower) == before, "rows were read that were refused"
        told = {name: len(self.place.events(name)) for name in self.place.files}
        assert self.place.settle() == [], "runs start although nothing is to do"
        self.place.work()
        after = {name: len(self.place.events(name)) for name in self.place.files}
        assert after == told, "events are reported again"
        assert not self.lies, (self.lies, self.past.steps)

    def _name(self, upper: bool) -> str:
        return self.upper if upper else self.lower

    def _totals(self, form: str) -> str:
        return TOTALS[form].format(upper=self.upper)

    def _overhear(self) -> Callable[..., Refresh]:
        refresh, past, lies = self.refresh, self.past, self.lies

        def overheard(lake: Lake, *given: Any, **named: Any) -> Refresh:
            done = refresh(lake, *given, **named)
            lies.extend(past.lies(done))
            return done

        return overheard

    @property
    def _orders(self) -> Path:
        return self.root / "public" / "orders"

    def _write(self) -> None:
        ids = range(self.next, self.next + 4)
        self.next += 4
        rows = pa.table({"id": [*ids], "amount": [(7 * i) % 41 for i in ids]})
        write_deltalake(self._orders, rows, mode="append")
