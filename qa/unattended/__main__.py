"""Random histories of operations, for some minutes:

    python -m qa.unattended --minutes 60 --seed 1

Each history is a number of steps of `machine`, and then everything must come to rest. The first
failure is shrunk, printed and ends the command.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time

from hypothesis import HealthCheck, Phase, Verbosity, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from qa.unattended.machine import Unattended, tally

_AT_ONCE = 5


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=12)
    given = parser.parse_args(argv)
    logging.getLogger("dagster").setLevel(logging.CRITICAL)
    began, number, histories = time.monotonic(), given.seed, 0
    while time.monotonic() - began < 60 * given.minutes:
        machine = seed(number)(Unattended)
        run_state_machine_as_test(machine, settings=_settings(given.steps))
        number, histories = number + 1, histories + _AT_ONCE
        hours = (time.monotonic() - began) / 3600
        steps = sum(tally.values())
        speed = f"{steps / hours:.0f} steps an hour"
        print(f"seed {number}: {histories} histories, {steps} steps; {speed}", flush=True)
    print(dict(sorted(tally.items())))
    return 0


def _settings(steps: int) -> settings:
    return settings(
        max_examples=_AT_ONCE,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        print_blob=False,
        verbosity=Verbosity.quiet,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
    )


if __name__ == "__main__":
    sys.exit(main())
