"""The commits of a log, replayed: do they, the checkpoints and the checksums fit together?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dagster_streamtables.amounts import count
from dagster_streamtables.runtime.doctor.checkpoints import LogState, checkpoint_state
from dagster_streamtables.runtime.doctor.checksums import Checksums
from dagster_streamtables.runtime.doctor.commits import CommitRecord
from dagster_streamtables.runtime.doctor.findings import Contradiction, Trace
from dagster_streamtables.runtime.doctor.log_files import LogFiles


class Transactions:
    def __init__(self) -> None:
        self._newest: dict[str, tuple[int, int]] = {}
        """Application → its newest number, and the version of that commit."""

    def begin(self, version: int, numbers: Mapping[str, int]) -> None:
        """The numbers in a checkpoint, of which those in earlier commits are known already."""
        for application, number in numbers.items():
            self._newest.setdefault(application, (number, version))

    def follow(self, commit: CommitRecord) -> Iterator[Contradiction]:
        for application, number in commit.transactions.items():
            newest, version = self._newest.get(application, (None, commit.version))
            if newest is not None and number <= newest and not commit.replaces:
                what = "the number of an application's transaction is not greater than before"
                told = f"{application}: {newest} in version {version}, {number} in {commit.version}"
                yield Contradiction(
                    Trace.TRANSACTION, version, commit.version, what, [told], sure=False
                )
            self._newest[application] = number, commit.version


class Replay:
    """Follows the commits in order.

    The state is known from commit 0 or from a checkpoint on. After each checkpoint it is that of
    the checkpoint, with which readers begin; so one erased commit is found once.
    """

    def __init__(self, log: LogFiles) -> None:
        self._log = log
        self._unread = sorted(log.checkpoints)
        self._hint = log.read_json(log.last) if log.last else {}
        self._checksums = Checksums(log)
        self._transactions = Transactions()
        self._state: LogState | None = None
        self._reached = -1
        self._agreed = -1
        """The version of the last checkpoint."""
        self.named: set[str] = set()
        """Every file that the log names."""

    def follow(self, commit: CommitRecord) -> Iterator[Contradiction]:
        """What contradicts the commits before it; also what a checkpoint of its version does."""
        while self._unread and self._unread[0] < commit.version:
            yield from self._begin(self._unread.pop(0))
        if commit.version == 0:
            self._state = LogState()
        elif commit.version != self._reached + 1:
            self._state = None
        if self._state is not None:
            yield from self._apply(self._state, commit)
        yield from self._transactions.follow(commit)
        self._reached = commit.version
        self.named.update(each.path for each in (*commit.adds, *commit.removes))
        self.named.update(commit.changes)
        if self._state is not None:
            yield from self._checksums.differences(commit, self._state)
        if self._unread and self._unread[0] == commit.version:
            yield from self._compare(self._unread.pop(0))

    def finish(self) -> Iterator[Contradiction]:
        """What checkpoints contradict that have no commit after them."""
        while self._unread:
            yield from self._begin(self._unread.pop(0))

    def _begin(self, version: int) -> Iterator[Contradiction]:
        """Go on with a checkpoint that has no commit: nothing says what leads to it."""
        self._state = None
        yield from self._compare(version)
        self._reached = version

    def _compare(self, version: int) -> Iterator[Contradiction]:
        """Compare the state with the checkpoints of a version, and go on with theirs."""
        states = list(self._states(version))
        for name, held in states:
            self.named.update(held.live, held.removed)
            self._transactions.begin(version, held.transactions)
            if self._state is not None:
                yield from self._differences(self._state, held, version, name)
            self._state, self._agreed = held, version
        files = self._hint.get("numOfAddFiles")
        counts = [len(held.live) for _, held in states]
        if counts and version == self._hint.get("version") and files not in (None, *counts):
            what = f"the file that names the checkpoint of version {version} has another count"
            found = [f"{count(files, 'file')}, and the checkpoint has {counts[-1]:,}"]
            yield Contradiction(Trace.CHECKPOINT, version, version, what, found, sure=True)

    def _apply(self, state: LogState, commit: CommitRecord) -> Iterator[Contradiction]:
        added = {each.path for each in commit.adds}
        unknown, again, doubled = [], [], []
        for each in commit.removes:
            held = state.live.pop(each.path, None)
            if held is None and each.path not in added:
                (again if each.path in self.named else unknown).append(each.path)
            elif held is not None and each.vector not in (None, held[0]):
                unknown.append(each.path)
        for each in commit.adds:
            # Statistics and row ids are added by naming the file again, without a change of data.
            if each.changes_data and state.live.get(each.path, ("", 0))[0] == each.vector:
                doubled.append(each.path)
            state.live[each.path] = each.vector, each.size
        state.metadata = commit.metadata or state.metadata
        state.protocol = commit.protocol or state.protocol
        last = max(commit.version - 1, 0)
        span, said = (min(self._agreed + 1, last), last), f"version {commit.version}"
        if unknown:
            what = f"{said} removes files, or their deletion vectors, that no commit added"
            yield Contradiction(Trace.ACTION, *span, what, unknown, sure=True, is_dated=True)
        if again:
            what = f"{said} removes files that were already removed"
            yield Contradiction(Trace.ACTION, *span, what, again, sure=False)
        if doubled:
            what = f"{said} adds files that were already there"
            yield Contradiction(Trace.ACTION, *span, what, doubled, sure=True)

    def _differences(
        self, state: LogState, held: LogState, version: int, name: str
    ) -> Iterator[Contradiction]:
        ours, theirs = ({(p, v) for p, (v, _) in s.live.items()} for s in (state, held))
        paths = {path for path, _ in ours ^ theirs}
        if paths:
            what = f"{name} has other files than the commits up to its version"
            yield Contradiction(
                Trace.CHECKPOINT, min(self._agreed + 1, version), version, what, paths,
                sure=True, is_dated=True,
            )  # fmt: skip

    def _states(self, version: int) -> Iterator[tuple[str, LogState]]:
        """The states in the checkpoints of a version, each with the name of its first part."""
        for parts in self._log.checkpoints[version]:
            state = checkpoint_state(self._log, parts)
            if state is not None:
                yield parts[0].rsplit("/", 1)[-1], state
