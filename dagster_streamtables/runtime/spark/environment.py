"""The environment variables that say which Spark is used, and how the local server runs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any

from dagster_streamtables.setting import Display, Predicate, Range, read_environment, settings_of


def memory_bytes(text: str) -> int:
    """The bytes of a size as Java writes it; 0 if it is not a size.

    >>> memory_bytes("2g"), memory_bytes("1500m"), memory_bytes("plenty")
    (2147483648, 1572864000, 0)
    """
    found = re.fullmatch(r"(\d+)([kmgt]?)b?", text.lower())
    return int(found[1]) * 1024 ** " kmgt".index(found[2] or " ") if found else 0


_MEMORY = Predicate(
    lambda text: memory_bytes(text) >= 2**20, "memory as Java writes it, such as 2g or 1500m"
)


@dataclass(frozen=True)
class Variables:
    """Their names, values and defaults; an empty variable counts as not set."""

    STREAMTABLES_SPARK: Annotated[str, Display(default="the local server")] = ""
    """The default address of Spark: `sc://host:15002`, or `local[2]`."""
    STREAMTABLES_HOME: Annotated[str, Display(default="`~/.streamtables`")] = ""
    """The folder of the local server: JARs, log, state, Spark's temporary files. Each folder has
    one server, and is closed to other users."""
    STREAMTABLES_SPARK_MEMORY: Annotated[str, _MEMORY] = "2g"
    """The heap of the local server."""
    STREAMTABLES_IDLE_MINUTES: Annotated[float, Range(0, above=True)] = 60
    """The local server stops after this many minutes without use."""
    STREAMTABLES_IVY_SETTINGS: str = ""
    """An Ivy settings file, for a mirror of Maven Central."""
    STREAMTABLES_CLASS_ARCHIVE: bool = True
    """Whether the local server keeps an archive of Java's classes in its folder, 210 MB, which
    makes later starts quicker."""


_DECLARED = {each.name: each for each in settings_of(Variables)}


def variable(name: str) -> Any:
    """The value of one of `Variables`, with the type that it declares.

    Raises:
        InvalidDefinition: Its text is not a valid value.
    """
    declared = _DECLARED[name]
    return read_environment(name, declared.hint, declared.default)
