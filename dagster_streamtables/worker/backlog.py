"""`Backlog`: the refreshes that were decided and have not ended, and which of them is next."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass
class Task:
    """One refresh that was decided."""

    name: str
    began: datetime
    """When it was decided: all of one decision read the sources that they share as of that time, so
    that a table which reads several of them need not wait."""
    urgency: datetime
    """The tightest deadline of the table and of the tables that wait for it."""
    waits: set[str] = field(default_factory=set[str])
    """Tables of the same decision that it reads and that have not ended."""
    ended: dict[str, datetime] = field(default_factory=dict[str, datetime])
    """When each task of the same decision ended, if it has; all of one decision share it."""
    running: datetime | None = None
    """When it was started."""


class Backlog:
    """Each table is in it at most once. Only the readers of a table wait for its refresh."""

    def __init__(self) -> None:
        self.tasks: dict[str, Task] = {}

    def __contains__(self, name: str) -> bool:
        return name in self.tasks

    @property
    def running(self) -> list[Task]:
        return [task for task in self.tasks.values() if task.running is not None]

    def behind(self, readers: Mapping[str, Collection[str]]) -> set[str]:
        """Tables all of whose readers are still to show what was decided before, down to the last
        reader of one of them. To refresh such a table again would only delay them: if commits come
        faster than refreshes, the first table of a chain would keep the last one waiting. In
        `readers`, each table comes after those it reads."""
        found: set[str] = set()
        for name in reversed([*readers] if self.tasks else []):
            below = readers[name]
            if below and all(each in self.tasks or each in found for each in below):
                found.add(name)
        return found

    def add(
        self,
        names: Collection[str],
        reads: Mapping[str, Collection[str]],
        deadlines: Mapping[str, datetime],
        began: datetime,
    ) -> None:
        """The tables of one decision, made at `began`, each after those it reads; none of them is
        in the backlog. `deadlines` has the times when each becomes late."""
        within, ended = set(names), dict[str, datetime]()
        for name in names:
            waits = {source for source in reads[name] if source in within}
            self.tasks[name] = Task(name, began, deadlines[name], waits, ended)
        for name in reversed(list(names)):
            for source in self.tasks[name].waits:
                above = self.tasks[source]
                above.urgency = min(above.urgency, self.tasks[name].urgency)

    def next(self, now: datetime) -> Task | None:
        """Start the most urgent task that waits for nothing; None if all wait."""
        ready = [t for t in self.tasks.values() if t.running is None and not t.waits]
        if not ready:
            return None
        task = min(ready, key=lambda each: (each.urgency, each.began))
        task.running = now
        return task

    def finish(self, name: str, now: datetime) -> None:
        """A refresh ended well: what waited for it may start."""
        ended = self.tasks.pop(name)
        ended.ended[name] = now
        for task in self.tasks.values():
            if task.began == ended.began:
                task.waits.discard(name)

    def fail(self, name: str) -> list[str]:
        """A refresh ended in an error. Returns the tables that waited for it: they are dropped."""
        ended = self.tasks.pop(name)
        lost = [t.name for t in self.tasks.values() if name in t.waits and t.began == ended.began]
        return [each for one in lost if one in self.tasks for each in (one, *self.fail(one))]

    def keep(self, names: Iterable[str]) -> None:
        """Forget what has not started of tables that no longer exist, and all that waits for it."""
        kept = set(names)
        for name in [*self.tasks]:
            task = self.tasks.get(name)
            if task is not None and name not in kept and task.running is None:
                self.fail(name)

    def clear(self) -> None:
        """Forget what has not started."""
        self.tasks = {name: t for name, t in self.tasks.items() if t.running is not None}
