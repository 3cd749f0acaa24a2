"""The log store by which Spark commits to S3; `S3LogStore.java` says how.

It is loaded as Delta's JARs are, by the same class loader: it extends one of their classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

CLASS = "streamtables.S3LogStore"
SCHEMES = ("s3", "s3a")
"""The schemes of URIs that Spark may know for S3."""
JAR = Path(__file__).parent / "streamtables-log-store.jar"
SOURCE = Path(__file__).parent / "S3LogStore.java"


def setting(scheme: str) -> str:
    """The name of the setting by which Delta chooses the log store of a scheme."""
    return f"spark.delta.logStore.{scheme}.impl"


SETTINGS: Mapping[str, str] = {setting(each): CLASS for each in SCHEMES}
"""Read by Delta when Spark starts, not later."""
