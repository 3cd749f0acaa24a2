"""One history: a table made, things that happen to it, and stream tables that follow."""

from __future__ import annotations

import shutil
import tempfile
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from pyspark.sql import SparkSession

from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.runtime.spark.session import drop_views, open_session
from qa.histories.kinds import CREATIONS, KINDS
from qa.histories.oracle import differences, runs
from qa.histories.refreshed import Refreshed
from qa.histories.roots import QUERIES, Root, make_other, some_roots
from qa.histories.steps import Step, some_steps
from qa.histories.subscribed import Subscribed
from qa.histories.tally import Tally
from qa.histories.world import World

_ZONE = "spark.sql.session.timeZone"
_ZONES = ("UTC", "UTC", "Europe/Berlin", "America/New_York")


@dataclass(frozen=True)
class History:
    seed: str
    """Of the stream tables."""
    steps: tuple[Step, ...]
    """The first one makes the table."""
    kinds: tuple[str, ...] = ()
    """The kinds of roots over it; all, where none is named."""
    subscribed: bool = False
    """The roots are subscriptions, and nothing is stored."""

    @classmethod
    def random(
        cls, seed: int, number: int, length: int = 10, roots: int = 0, *, subscribed: bool = False
    ) -> History:
        name = f"{seed}:{number}"
        steps = some_steps(Random(name), length)
        kinds = Random(f"{name} roots").sample(list(QUERIES), roots)
        chosen = ("bag", *kinds) if "over-another" in kinds else tuple(kinds)
        return cls(name, steps, chosen, subscribed)

    @property
    def zone(self) -> str:
        """Of the session; that of subscriptions is always UTC."""
        return "UTC" if self.subscribed else Random(f"{self.seed} zone").choice(_ZONES)

    def roots(self) -> list[Root]:
        return some_roots(self.seed, self.kinds, self.zone)

    def __str__(self) -> str:
        kinds = f" [{' '.join(self.kinds)}]" if self.kinds else ""
        followed = " subscribed" if self.subscribed else ""
        return f"{self.seed}{kinds}{followed} {' '.join(map(str, self.steps))}"

    @classmethod
    def read(cls, text: str) -> History:
        """A history as it was printed."""
        seed, _, rest = text.strip().partition(" ")
        kinds: tuple[str, ...] = ()
        if rest.startswith("["):
            inside, _, rest = rest[1:].partition("]")
            kinds = tuple(inside.split())
        steps = rest.split()
        subscribed = steps[:1] == ["subscribed"]
        return cls(seed, tuple(map(Step.read, steps[subscribed:])), kinds, subscribed)


@dataclass
class Failure:
    at: int
    """The number of the step after which it was seen; 0 is the making of the table."""
    what: str
    """The kind of failure, without what differs from one run to the next."""
    roots: tuple[str, ...] = ()
    """The kinds of roots that are wrong."""
    detail: list[str] = field(default_factory=list[str])


@dataclass(frozen=True)
class Sessions:
    """Two that share nothing but the server, and its memory of logs."""

    product: SparkSession
    """What the refreshes run in."""
    plain: SparkSession
    """What writes the table, and runs the queries to compare with."""


def open_sessions(address: str | None = None) -> Sessions:
    named = str(uuid.uuid5(uuid.NAMESPACE_URL, "histories"))
    sessions = Sessions(open_session(address), open_session(address, session_id=named))
    for each in (sessions.product, sessions.plain):
        # To compile a statement takes longer than to run it over some rows.
        each.conf.set("spark.sql.codegen.wholeStage", "false")
        each.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    return sessions


def run(history: History, sessions: Sessions, tally: Tally) -> Failure | None:
    """Run a history until its end or its first failure."""
    folder = Path(tempfile.mkdtemp(prefix="history_"))
    both = (sessions.product, sessions.plain)
    try:
        for each in both:
            each.conf.set(_ZONE, history.zone)
        return _Run(history, World(folder, sessions.plain), sessions.product, tally).whole()
    finally:
        for each in both:
            each.conf.set(_ZONE, "UTC")
        drop_views(sessions.product)
        shutil.rmtree(folder, ignore_errors=True)


class _Run:
    def __init__(self, history: History, world: World, product: SparkSession, tally: Tally) -> None:
        self.history, self.world, self.tally = history, world, tally
        follower = Subscribed if history.subscribed else Refreshed
        self.follower: Refreshed | Subscribed = follower(world, product, tally)
        self.roots = [*history.roots(), *self.follower.more]
        self.notes: list[str] = []

    def whole(self) -> Failure | None:
        world, steps = self.world, self.history.steps
        world.clear()
        make_other(world, Random(self.history.seed))
        for number, step in enumerate(steps):
            last = number == len(steps) - 1
            if not self._happen(step) and not last:
                continue
            due = [each for each in self.roots if last or number % each.pace == 0]
            failure = self._follow(number, due)
            if failure is not None:
                failure.detail = [*self.notes, *failure.detail]
                return failure
        return None

    def _happen(self, step: Step) -> bool:
        """Whether the folder is another one afterwards: a refused step may have begun."""
        before = _listed(self.world.t)
        kind = {**CREATIONS, **KINDS}[step.kind]
        began = time.monotonic()
        said = ""
        try:
            kind.run(self.world, Random(step.seed))
        except Exception as error:
            said = _gist(error)
        self.tally.step(step.kind, said, time.monotonic() - began)
        self.notes.append(f"{step}{' refused: ' + said if said else ''}")
        return not said or before != _listed(self.world.t)

    def _follow(self, number: int, due: list[Root]) -> Failure | None:
        """Refresh, and compare all that could be refreshed."""
        followed: list[Root] = []
        versions: dict[str, int] = {}
        for root in due:
            try:
                with self.tally.timed("refresh"):
                    done, told = self.follower.follow(root)
            except Exception as error:
                self.notes.append(f"  {root.name}: {_gist(error)}")
                failure = self._not_followed(number, root, error)
                if failure is not None:
                    return failure
                continue
            self.notes.append(f"  {root.name}: {told}")
            followed.append(root)
            late = self._late(root, done)
            if late:
                return Failure(number, "a version left out", (root.kind,), [late])
            versions |= done
        return self._compared(number, followed, versions)

    def _not_followed(self, number: int, root: Root, error: Exception) -> Failure | None:
        """A refresh may fail where the query itself has no answer."""
        with self.tally.timed("failed"):
            if not runs(self.world, root):
                self.tally.failed(root, _gist(error))
                return None
        kind = "raised" if isinstance(error, StreamTablesError) else "raw error"
        return Failure(number, f"{kind}: {_gist(error)}", (root.kind,), [str(error)])

    def _late(self, root: Root, versions: Mapping[str, int]) -> str:
        """What of its sources a root did not take, if it did not take the newest version."""
        for name, version in versions.items():
            there = newest(self.world.root / "public" / name)
            if version != there:
                return f"{root.name} took version {version} of {name}, not {there}"
        return ""

    def _compared(self, number: int, roots: list[Root], versions: dict[str, int]) -> Failure | None:
        if not roots:
            return None
        with self.tally.timed("oracle"):
            try:
                wrong = differences(self.world, list(map(self.follower.held, roots)), versions)
            except Exception as error:
                if not all(runs(self.world, root) for root in roots):
                    # Spark itself cannot read the table.
                    return None
                kinds = tuple(root.kind for root in roots)
                return Failure(number, "plain Spark fails", kinds, [str(error)[:2000]])
        self.tally.compared += len(roots)
        if not wrong:
            return None
        names = {each.root for each in wrong}
        kinds = tuple(root.kind for root in roots if root.name in names)
        return Failure(number, "wrong rows", kinds, [str(each) for each in wrong[:12]])


def newest(folder: Path) -> int:
    return max(int(p.name[:20]) for p in (folder / "_delta_log").glob("*[0-9].json"))


def _listed(folder: Path) -> set[tuple[str, int]]:
    return {(p.name, p.stat().st_mtime_ns) for p in (folder / "_delta_log").glob("*")}


def _gist(error: Exception) -> str:
    lines = [line for line in str(error).strip().splitlines() if line.strip()] or [""]
    return f"{type(error).__name__}: {lines[0][:160]}"
