"""Mode AUTO takes the way that is cheaper, by what the table's own refreshes took."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from dagster_streamtables import Action, Lake, Mode
from dagster_streamtables.runtime.model.costs import Costs, Effort, RefreshMethod
from dagster_streamtables.runtime.model.refresh_report import Stopwatch
from runtime.delta import write
from runtime.orders import LARGE, orders
from runtime.refreshes import refreshed


class Machine:
    """A table whose refreshes take what two functions say, and up to twice that."""

    def __init__(self, differential: Callable[[int], float], full: Callable[[int], float]) -> None:
        self.true = {RefreshMethod.DIFFERENTIAL: differential, RefreshMethod.FULL: full}
        self.dice, self.costs, self.sequence = random.Random(3), Costs(), 0

    def refresh(self, changed: int, rows: int) -> tuple[float, float]:
        """The seconds that the chosen way takes, and those of the better one."""
        self.sequence += 1
        sizes = {RefreshMethod.DIFFERENTIAL: changed, RefreshMethod.FULL: rows}
        choice = self.costs.choice(changed, rows, self.sequence)
        way = (
            choice.way
            if choice
            else RefreshMethod.FULL
            if changed > 0.15 * rows
            else RefreshMethod.DIFFERENTIAL
        )
        seconds = {each: self.true[each](size) for each, size in sizes.items()}
        slowed = seconds[way] * self.dice.uniform(1, 2)
        self.measured(way, sizes[way], slowed)
        return seconds[way], min(seconds.values())

    def measured(
        self, way: RefreshMethod, rows: int, seconds: float, *, cold: bool = False
    ) -> None:
        effort = Effort(way, rows, seconds, 0.0, cold)
        self.costs = self.costs.with_effort(effort, self.sequence, 0.0)


@pytest.mark.parametrize("per_row", [2e-6, 20e-6, 200e-6], ids=["cheap", "usual", "costly"])
@pytest.mark.parametrize("fixed", [0.1, 1.0, 5.0])
def test_it_is_near_the_better_way_while_data_grows_and_shrinks(
    per_row: float, fixed: float
) -> None:
    machine = Machine(lambda rows: fixed + per_row * rows, lambda rows: 1 + 1e-6 * rows)
    machine.measured(RefreshMethod.FULL, 1_000_000, 20.0, cold=True)
    for rows in (1_000_000, 100_000_000, 1_000_000, 10_000):
        taken = [
            machine.refresh(int(rows * part), rows)
            for _ in range(30)
            for part in (1e-5, 0.01, 0.1, 0.3)
        ]
        settled = taken[40:]
        ours, best = (sum(column) for column in zip(*settled, strict=True))
        assert ours <= 1.2 * best, (rows, ours / best)


def test_nothing_is_said_before_something_was_measured() -> None:
    machine = Machine(float, float)
    assert machine.costs.choice(10, 1000, 1) is None
    machine.measured(RefreshMethod.FULL, 1000, 1.0)
    assert machine.costs.choice(10, 1000, 1) is None
    machine.measured(RefreshMethod.DIFFERENTIAL, 10, 1.0)
    assert machine.costs.choice(10, 1000, 1) is not None
    assert machine.costs.choice(10_000_000, 1000, 1) is None


def test_one_slow_refresh_does_not_count() -> None:
    machine = Machine(float, float)
    machine.measured(RefreshMethod.FULL, 1_000_000, 2.0)
    for seconds in (1.2, 0.5, 60.0, 0.6):
        machine.measured(RefreshMethod.DIFFERENTIAL, 100, seconds)
    choice = machine.costs.choice(100, 1_000_000, 1)
    assert choice and choice.way is RefreshMethod.DIFFERENTIAL
    assert str(choice) == "differential about 0.5 s, full about 0.67 s"


def test_a_slow_first_refresh_of_a_way_is_not_its_last() -> None:
    machine = Machine(float, float)
    machine.measured(RefreshMethod.FULL, 20_000, 2.4, cold=True)
    machine.measured(RefreshMethod.DIFFERENTIAL, 10, 1.5)
    choice = machine.costs.choice(10, 20_000, 1)
    assert choice and choice.way is RefreshMethod.DIFFERENTIAL
    assert str(choice) == "differential about 0.5 s, full about 0.8 s"


def test_the_other_way_is_tried_again_after_a_while() -> None:
    machine = Machine(float, float)
    for seconds in (3.0, 2.0):
        machine.measured(RefreshMethod.DIFFERENTIAL, 100, seconds)
    for machine.sequence in range(1, 33):
        machine.measured(RefreshMethod.FULL, 1_000_000, 1.0)
    before, after = (machine.costs.choice(100, 1_000_000, each) for each in (32, 33))
    assert before and not before.trial and before.way is RefreshMethod.FULL
    assert after and after.way is RefreshMethod.DIFFERENTIAL
    assert str(after).endswith(", measured long ago")


def test_a_larger_change_than_any_before_is_tried_once() -> None:
    """A merge of keys all over a table writes all of it anew, however many they are."""
    machine = Machine(lambda rows: 1.5 + 1e-5 * rows, lambda _: 3.4)
    for _ in range(3):
        machine.measured(RefreshMethod.FULL, 10_000_000, 3.4)
        machine.measured(RefreshMethod.DIFFERENTIAL, 10_000, 1.9)
    choice = machine.costs.choice(100_000, 10_000_000, 1)
    assert choice and choice.way is RefreshMethod.DIFFERENTIAL
    assert str(choice) == (
        "differential about 7.6 s, full about 3.4 s, not measured for so many rows"
    )
    machine.measured(choice.way, 100_000, 2.5)
    choice = machine.costs.choice(100_000, 10_000_000, 2)
    assert choice and choice.way is RefreshMethod.DIFFERENTIAL and not choice.trial
    far = machine.costs.choice(1_000_000, 10_000_000, 3)
    assert far and far.way is RefreshMethod.FULL, "it may take more than three times as long"


def test_only_so_much_is_kept() -> None:
    machine = Machine(float, float)
    for machine.sequence in range(100):
        machine.measured(RefreshMethod.FULL, 10, 1.0)
    assert [each.sequence for each in machine.costs.full] == list(range(92, 100))


@pytest.mark.long
def test_a_table_knows_what_its_refreshes_took(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    auto = replace(LARGE, mode=Mode.AUTO, differential_max_change_ratio=0.9)
    write(lake, "orders", orders(*range(50)))
    found: list[tuple[Action, str]] = []
    for row, seconds in enumerate([30_000, 50_000, 90_000, 40_000]):
        if row:
            write(lake, "orders", orders(100 + row))
        monkeypatch.setattr(Stopwatch, "work_seconds", seconds)
        done = refreshed(lake, auto)
        told = "" if done.forecast is None else str(done.forecast)
        found.append((done.action, told))
        assert (done.forecast_error is None) == (done.forecast is None)
        assert told in done.reason

    assert found == [
        (Action.REINITIALIZE, ""),
        (Action.DIFFERENTIAL, ""),
        (Action.FULL, "differential about 1.7e+04 s, full about 1e+04 s"),
        (Action.DIFFERENTIAL, "differential about 1.7e+04 s, full about 9e+04 s"),
    ]


@pytest.mark.long
def test_the_ratio_goes_first_where_it_allows_nothing_or_everything(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(lake, "orders", orders(*range(50)))
    never = replace(LARGE, mode=Mode.AUTO, differential_max_change_ratio=0)
    for row, seconds in enumerate([1, 90_000, 1]):
        if row:
            write(lake, "orders", orders(100 + row))
        monkeypatch.setattr(Stopwatch, "work_seconds", seconds)
        done = refreshed(lake, never)
    assert done.action is Action.DIFFERENTIAL and done.forecast is None
    write(lake, "orders", orders(200))
    assert refreshed(lake, replace(never, differential_max_change_ratio=1)).action is Action.FULL
