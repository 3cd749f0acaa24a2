"""What an ended process may have left in a session of Spark Connect.

A session that a later process continues is warm: its first statement takes a second less. But a
killed process may leave a statement that still runs, under settings that name its commit; those
settings; and views, each of which holds a snapshot of a table in Spark's memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dagster_streamtables.runtime.spark.settings import COMMIT_SETTINGS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEWS = "st_"


def take_over(session: SparkSession) -> bool:
    """Clear a session that no other process uses; False if a statement was still running in it.

    Such a session must not be used. A MERGE reads the settings when it commits, so with ours it
    would commit its own rows as our refresh.
    """
    if session.interruptAll():
        return False
    for name in COMMIT_SETTINGS:
        session.conf.unset(name)
    drop_views(session)
    return True


def drop_views(session: SparkSession) -> None:
    """Drop the views that refreshes keep in a session for later ones."""
    for row in session.sql(f"SHOW VIEWS LIKE '{VIEWS}*'").collect():
        session.catalog.dropTempView(row["viewName"])
