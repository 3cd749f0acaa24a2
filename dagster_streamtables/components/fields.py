"""What `defs.yaml` may say below `resource`, `sensor`, `op` and `checks`."""

# No `from __future__ import annotations`: Dagster reads the annotations of fields at run time.
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Literal

import dagster as dg

from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.orchestration.assets.assets import RETRIES
from dagster_streamtables.orchestration.assets.thread_executor import threads_executor
from dagster_streamtables.orchestration.automation.dueness import Backoff
from dagster_streamtables.orchestration.automation.tick import SensorSettings
from dagster_streamtables.orchestration.checks.check_settings import CheckSettings
from dagster_streamtables.orchestration.declare.schedule import Duration, parse_schedule
from dagster_streamtables.setting import Range, require_fields

about = dg.Resolver.default


@dataclass
class ResourceFields(dg.Resolvable):
    """Where the tables are and which Spark refreshes them."""

    root: Annotated[
        str,
        about(
            description="The folder or URI below which a table sales.orders is sales/orders. A "
            "relative path begins at the folder of this file.",
            examples=["s3://lake/warehouse", "{{ context.project_root }}/lake"],
        ),
    ]
    spark: Annotated[
        str | None,
        about(
            description="The address of a Spark Connect server. Without one, a local server is "
            "started when it is needed, and shared by all processes.",
            examples=["sc://spark.internal:15002", "{{ env.SPARK_REMOTE }}"],
        ),
    ] = None
    storage_options: Annotated[
        dict[str, str] | None,
        about(
            description="What delta-rs needs to reach the root. A value that is nothing but "
            "{{ env.X }} is read when it is needed, not shown in the UI, and left out where X is "
            "not set.",
            examples=[{"AWS_SECRET_ACCESS_KEY": "{{ env.AWS_SECRET_ACCESS_KEY }}"}],
        ),
    ] = None
    max_concurrent_refreshes: Annotated[
        int,
        about(
            description="How many tables that do not read each other are refreshed at once in one "
            "run."
        ),
    ] = 4
    preview_rows: Annotated[
        int,
        about(
            description="How many changed rows each materialization shows, and Dagster's database "
            "then holds."
        ),
    ] = 0


@dataclass
class SensorFields(dg.Resolvable):
    """The sensor that refreshes what is due."""

    enabled: Annotated[
        bool, about(description="Whether it is on before anybody touches its switch.")
    ] = True
    interval_seconds: Annotated[
        int, about(description="Between two looks. Dagster looks every five seconds at most.")
    ] = 5
    stuck_after: Annotated[
        str,
        about(description="Unfinished runs that are older no longer keep their tables waiting."),
    ] = "1h"
    retry_first: Annotated[
        str,
        about(
            description="A table that failed is left alone so long, then twice as long; up to a "
            "quarter is added by chance."
        ),
    ] = "30s"
    retry_longest: Annotated[str, about(description="It is not left alone for longer.")] = "1h"
    observe_sources: Annotated[
        bool, about(description="Record new versions of the observed sources, without a run.")
    ] = True

    def settings(self, name: str) -> SensorSettings:
        """What the sensor of this name is given.

        Raises:
            InvalidDefinition: A duration is none.
        """
        return SensorSettings(
            name=name,
            stuck_after=_span("stuck_after", self.stuck_after),
            backoff=Backoff(
                _span("retry_first", self.retry_first), _span("retry_longest", self.retry_longest)
            ),
            observe_sources=self.observe_sources,
        )

    @property
    def status(self) -> dg.DefaultSensorStatus:
        return dg.DefaultSensorStatus.RUNNING if self.enabled else dg.DefaultSensorStatus.STOPPED


@dataclass
class CheckFields(dg.Resolvable):
    """When checks run: a cron expression of five fields for each kind, or null for no schedule."""

    equality: Annotated[
        str | None, about(description="Compares each table with its query, which is run for it.")
    ] = CheckSettings.equality
    state: Annotated[
        str | None, about(description="Looks for damage, in a pass over each stored table.")
    ] = CheckSettings.state
    schema: Annotated[
        str | None, about(description="Looks for columns that are not as they were.")
    ] = CheckSettings.schema
    freshness: Annotated[
        str | None, about(description="Looks for tables that are behind their schedule.")
    ] = CheckSettings.freshness
    retention: Annotated[
        str | None, about(description="Looks whether sources keep what the next refresh needs.")
    ] = CheckSettings.retention
    quick: Annotated[
        str | None,
        about(
            description="How often the sensor evaluates freshness and retention, which read logs "
            "alone; null if neither it nor refreshes are to."
        ),
    ] = "5m"
    timezone: Annotated[str, about(description="Where the hours of all of them are.")] = (
        CheckSettings.timezone
    )
    enabled: Annotated[
        bool, about(description="Whether they are on before anybody touches their switches.")
    ] = True
    sample: Annotated[
        float | None,
        about(description="What part of the rows the equality check compares; null for all."),
    ] = CheckSettings.sample
    grace: Annotated[
        str | None, about(description="What the freshness check allows beside the schedule.")
    ] = None
    warn_before: Annotated[
        str, about(description="The retention check fails so long before history may be gone.")
    ] = "2d"

    @property
    def settings(self) -> CheckSettings:
        """
        Raises:
            InvalidDefinition: A duration is none.
        """
        on, off = dg.DefaultScheduleStatus.RUNNING, dg.DefaultScheduleStatus.STOPPED
        return CheckSettings(
            equality=self.equality,
            state=self.state,
            schema=self.schema,
            freshness=self.freshness,
            retention=self.retention,
            quick=_span("quick", self.quick) if self.quick else None,
            timezone=self.timezone,
            status=on if self.enabled else off,
            sample=self.sample,
            grace=_span("grace", self.grace) if self.grace else timedelta(),
            warn_before=_span("warn_before", self.warn_before),
        )


@dataclass
class OpFields(dg.Resolvable):
    """The ops that refresh the tables."""

    pool: Annotated[
        str | None,
        about(description="Their concurrency pool; without one, each table has its own."),
    ] = None
    tags: Annotated[
        dict[str, str] | None,
        about(
            description="Their tags, for example for an executor's resource limits.",
            examples=[{"dagster/priority": "3"}],
        ),
    ] = None
    max_retries: Annotated[
        int,
        Range(0),
        about(description="For errors that may pass; those that need a person are not retried."),
    ] = RETRIES.max_retries
    retry_delay_seconds: Annotated[
        float,
        Range(0),
        about(description="About how long before the first retry; then it doubles."),
    ] = 1.0

    def __post_init__(self) -> None:
        require_fields(self)

    @property
    def retry_policy(self) -> dg.RetryPolicy | None:
        if self.max_retries == 0:
            return None
        return dg.RetryPolicy(
            max_retries=self.max_retries,
            delay=self.retry_delay_seconds,
            backoff=RETRIES.backoff,
            jitter=RETRIES.jitter,
        )


ExecutorName = Literal["threads", "in_process", "multiprocess", "code_location"]


def executor_of(name: ExecutorName, at_once: int) -> dg.ExecutorDefinition | None:
    """The executor of scheduled refreshes; None for the code location's.

    Args:
        name: Of the executor.
        at_once: How many tables it may refresh at once.

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


def _span(key: str, text: str) -> timedelta:
    found = parse_schedule(text, min_schedule_seconds=0)
    if not isinstance(found, Duration):
        raise InvalidDefinition(f'{key} is "{text}"', fix="write a duration, such as 30s or 1h30m")
    return timedelta(seconds=found.seconds)
