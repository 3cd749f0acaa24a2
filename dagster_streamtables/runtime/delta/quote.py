"""Quote column names, with any characters, for the two engines."""

from __future__ import annotations


def spark_name(name: str) -> str:
    """A name in Spark SQL.

    >>> spark_name("two `words`")
    '`two ``words```'
    """
    escaped = name.replace("`", "``")
    return f"`{escaped}`"


def delta_rs_name(name: str) -> str:
    """A name in the SQL of the engine inside delta-rs.

    >>> print(delta_rs_name('two "quoted" words'))
    "two ""quoted"" words"
    """
    escaped = name.replace('"', '""')
    return f'"{escaped}"'
