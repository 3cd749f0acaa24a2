"""A rehearsal goes as real refreshes do, leaves nothing, and gives way."""

from __future__ import annotations

import pytest

from dagster_streamtables.runtime.rehearsal import rehearse
from dagster_streamtables.runtime.spark.environment import lock, temporary


@pytest.mark.spark
def test_a_rehearsal_gives_way_to_real_refreshes_and_to_another_one() -> None:
    asked: list[bool] = []

    def goes_on() -> bool:
        asked.append(True)
        return len(asked) < 2

    assert not rehearse(goes_on)
    assert len(asked) == 2

    with lock("rehearsal.lock", blocking=False):
        assert not rehearse()


@pytest.mark.spark
@pytest.mark.long
def test_a_rehearsal_leaves_nothing() -> None:
    before = {*temporary().iterdir()}

    assert rehearse()
    assert {each for each in temporary().iterdir() if each.name.startswith("tmp")} <= before
