"""`op` and `executor` in YAML: the ops that refresh the tables, and where they run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

import dagster as dg

from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.orchestration.assets.assets import RETRIES
from dagster_streamtables.orchestration.assets.thread_executor import threads_executor
from dagster_streamtables.setting import Display, Range, normalize_fields

ExecutorName = Literal["threads", "in_process", "multiprocess", "code_location"]


@dataclass
class OpSettings:
    """The ops that refresh the tables."""

    pool: Annotated[str | None, Display(default="one for each table")] = None
    """The concurrency pool of the ops."""
    tags: Annotated[Mapping[str, str], Display(({"dagster/priority": "3"},))] = field(
        default_factory=dict[str, str]
    )
    """The tags of the ops, for example for an executor's resource limits."""
    max_retries: Annotated[int, Range(0)] = RETRIES.max_retries
    """How often a transient error is retried. Errors that need a person are not retried."""
    retry_delay_seconds: Annotated[float, Range(0)] = 1.0
    """The approximate delay before the first retry. It doubles with each retry."""

    def __post_init__(self) -> None:
        normalize_fields(self)

    @property
    def retry_policy(self) -> dg.RetryPolicy | None:
        """The retry policy for Dagster; None for no retries."""
        if self.max_retries == 0:
            return None
        return dg.RetryPolicy(
            max_retries=self.max_retries,
            delay=self.retry_delay_seconds,
            backoff=RETRIES.backoff,
            jitter=RETRIES.jitter,
        )


def executor_of(name: ExecutorName, at_once: int) -> dg.ExecutorDefinition | None:
    """The executor of scheduled refreshes; None for that of the code location.

    Args:
        name: The name of the executor.
        at_once: How many tables it may refresh at the same time.

    Raises:
        InvalidDefinition: There is no such executor.
    """
    known = {
        "threads": threads_executor,
        "in_process": dg.in_process_executor,
        "multiprocess": dg.multiprocess_executor.configured({"max_concurrent": at_once}),
        "code_location": None,
    }
    if name not in known:
        raise InvalidDefinition(
            f'there is no executor "{name}"',
            fix="write threads, in_process, multiprocess or code_location",
        )
    return known[name]
