"""How a session reads SQL: the compiler reads it as Spark does by default.

Spark's settings can make an identifier of a text in double quotes, or two texts of ``'it''s'``. A
full refresh would then compute one query, and the change another.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dagster_streamtables.errors import EnvironmentProblem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ZONE = "spark.sql.session.timeZone"
_UTC = ("UTC", "Etc/UTC", "Z", "GMT", "Etc/GMT")

READING: Mapping[str, str] = {
    "spark.sql.analyzer.lowerEmptyGroupingSetToGlobalAggregate.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.groupByAliases": "true",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.legacy.allowStarWithSingleTableIdentifierInCount": "false",
    "spark.sql.legacy.consecutiveStringLiterals.enabled": "false",
    "spark.sql.legacy.ctePrecedencePolicy": "CORRECTED",
    "spark.sql.legacy.parser.havingWithoutGroupByAsWhere": "false",
    "spark.sql.legacy.setopsPrecedence.enabled": "false",
    "spark.sql.optimizer.decorrelateExistsSubqueryLegacyIncorrectCountHandling.enabled": "false",
    "spark.sql.optimizer.decorrelateSubqueryLegacyIncorrectCountHandling.enabled": "false",
    "spark.sql.orderByOrdinal": "true",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
}
"""Spark's defaults of the settings that give a text another meaning."""
OLD_VERSIONS = "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"
"""Whether Delta refuses a version whose commit is older than the table keeps deleted files, a week
by default. A source that nobody wrote to for a week has all its files."""
_NOT_BY_DEFAULT = {"spark.sql.variable.substitute": "false", OLD_VERSIONS: "false"}


def read_as_usual(session: SparkSession) -> None:
    """Set what differs, on a session of our own."""
    has = session.conf.getAll
    for name, value in {**READING, **_NOT_BY_DEFAULT}.items():
        if has.get(name, READING.get(name)) != value:
            session.conf.set(name, value)


def require_fitting(session: SparkSession, zone: str | None) -> None:
    """A given session is not changed: other threads of its owner may use it.

    Args:
        session: It.
        zone: The time zone of the query; None for any.

    Raises:
        EnvironmentProblem: It reads SQL in another way, or has another time zone.
    """
    _require_zone(session, zone)
    has = session.conf.getAll
    for name, value in READING.items():
        if has.get(name, value) != value:
            raise EnvironmentProblem(
                f"the given Spark session has {name} set to {has[name]}",
                why="a query is read as Spark reads it by default, and its change would be that "
                "of another query",
                fix=f"set {name} to {value} on it, or pass an address instead of the session",
            )


def _require_zone(session: SparkSession, zone: str | None) -> None:
    has = session.conf.get(ZONE)
    if zone is None or has == zone or {has, zone} <= set(_UTC):
        return
    raise EnvironmentProblem(
        f"the given Spark session has the time zone {has}, and the query needs {zone}",
        why="days and hours begin at other times there, and a refresh does not change your session",
        fix=f"set {ZONE} to {zone} on it, give the stream table session_timezone={has!r}, or pass "
        "an address instead of the session",
    )
