"""What an option says that it is without being given, it is in Python, too."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from datetime import timedelta
from enum import Enum
from typing import Any

import pytest
import typer

from dagster_streamtables import FromLake, FromPostgres, Lake, Replication, Replications, subscribe
from dagster_streamtables.changes.subscription import DEADLINE
from dagster_streamtables.cli import app
from dagster_streamtables.declare.schedule import MIN_SCHEDULE_SECONDS
from dagster_streamtables.runtime.observe.monitor import WARN_BEFORE
from dagster_streamtables.serve.access_policy import Limits

_COMMAND_ONLY = {
    "history.limit", "events.limit",  # how much is shown
    "metrics.address", "serve.host", "serve.port", "subscribe.format_", "worker status.name",
    "slots create.dialect", "slots create.session_timezone", "slots move.dialect",
    "slots move.session_timezone",
}  # fmt: skip
"""What there is no other place for."""


def default(of: Any, name: str) -> Any:
    return inspect.signature(of).parameters[name].default


IN_PYTHON = {
    "refresh.max_concurrent": default(Lake.refresh_all, "max_concurrent"),
    "alter.min_schedule_seconds": MIN_SCHEDULE_SECONDS,
    "events.warn_hours": WARN_BEFORE / timedelta(hours=1),
    "serve.max_connections": default(Limits, "connections"),
    "serve.max_rows_per_second": default(Limits, "rows_per_second"),
    "serve.max_seconds_unread": default(Limits, "seconds_unread"),
    "slots create.deadline": DEADLINE.total_seconds(),
    "replications follow.every": default(Replications.follow, "seconds"),
    **{
        f"subscribe.{name}": default(subscribe, name)
        for name in ("names", "dialect", "session_timezone", "on_history_lost")
    },
}


def options(command: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The options of a command and of those below it, and what they are if not given."""
    for name, below in getattr(command, "commands", {}).items():
        yield from options(below, f"{path} {name}".strip())
    if not hasattr(command, "commands"):
        for each in command.params:
            value = each.default.value if isinstance(each.default, Enum) else each.default
            yield f"{path}.{each.name}", value


ALL = dict(options(typer.main.get_command(app)))
SAID = {name: value for name, value in ALL.items() if value not in (None, "", False, [], ())}
CREATE = "replications create."


@pytest.mark.parametrize("name", [each for each in SAID if not each.startswith(CREATE)])
def test_a_default_is_that_of_python(name: str) -> None:
    if name not in _COMMAND_ONLY:
        assert SAID[name] == IN_PYTHON[name]


def test_the_lists_are_of_options_that_are_there() -> None:
    assert IN_PYTHON.keys() <= SAID.keys()


@pytest.mark.parametrize(
    "name", [name.removeprefix(CREATE) for name in ALL if name.startswith(CREATE)]
)
def test_a_replication_is_what_it_is_in_python(name: str) -> None:
    """An option that is empty is not passed on."""
    said = ALL[CREATE + name]
    for declared in (Replication, FromPostgres, FromLake):
        known = inspect.signature(declared).parameters
        if name in known and known[name].default is not inspect.Parameter.empty:
            assert said in (None, "", known[name].default), declared
