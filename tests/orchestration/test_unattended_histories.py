"""A few random histories of operations; the long run is `python -m qa.unattended`."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from qa.unattended.machine import Unattended, tally

pytestmark = pytest.mark.spark


def test_a_code_location_comes_to_rest_after_whatever_happened() -> None:
    few = settings(
        max_examples=3,
        stateful_step_count=6,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Unattended, settings=few)
    assert sum(tally.values()) > 3
