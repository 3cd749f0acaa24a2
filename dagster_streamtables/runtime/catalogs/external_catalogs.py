"""`ExternalCatalogs`: which names are those of tables in catalogs, and where these tables are."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from dagster_streamtables.compiler import same_but_case
from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.runtime.catalogs.external_table import ExternalCatalog, ExternalTable
from dagster_streamtables.runtime.catalogs.session_catalog import SessionCatalog, name_in_spark
from dagster_streamtables.runtime.catalogs.unity_catalog import UnityCatalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK = "spark"
"""The address of the catalogs of the Spark session."""
_URL = re.compile(r"https?://[^/\s]+.*")
_ABSENT = 60.0
"""Seconds until a catalog, or the memory of its answers, is asked again for a table that it did not
know."""

_UNKNOWN = 600.0


@dataclass(frozen=True)
class Answer:
    """What a catalog said about one name."""

    table: ExternalTable | None
    at: float
    """In seconds since 1970."""


class Memory(Protocol):
    """Where answers outlive the process."""

    def recall(self, name: str) -> Answer | None: ...

    def keep(self, name: str, answer: Answer) -> None: ...


class ExternalCatalogs:
    """ExternalCatalogs by the first parts of the names of their tables. Threads may share them."""

    def __init__(
        self,
        addresses: Mapping[str, str] | None = None,
        *,
        token: str = "",
        session: Callable[[], SparkSession] | None = None,
        memory: Memory | None = None,
    ) -> None:
        """
        Args:
            addresses: First parts of names (``main``, ``lake.sales``) → the URL of a Unity
                Catalog, or `SPARK`.
            token: For Unity Catalog.
            session: Returns a session of Spark; None if Spark must not be asked.
            memory: Keeps the answers of Spark.

        Raises:
            InvalidDefinition: An address is neither.
        """
        self._memory = memory
        self._answers: dict[str, Answer] = {}
        self._recalled: dict[str, float] = {}
        self._names: dict[str, str] = {}
        """By the location of the table."""
        self._catalogs: dict[tuple[str, ...], ExternalCatalog] = {}
        for prefix, address in (addresses or {}).items():
            if address != SPARK and not _URL.fullmatch(address):
                raise InvalidDefinition(
                    f'the address of the catalog "{prefix}" is "{address}"',
                    fix=f"give the URL of a Unity Catalog, as in https://catalog.internal:8080, or "
                    f'"{SPARK}" for a catalog of the Spark session',
                )
            parts = tuple(prefix.split("."))
            of_session = address == SPARK
            self._catalogs[parts] = (
                SessionCatalog(session) if of_session else UnityCatalog(address, token)
            )

    def __bool__(self) -> bool:
        return bool(self._catalogs)

    def has(self, name: str) -> bool:
        """Whether a name is that of a table in a catalog, existing or not."""
        return self._catalog(name) is not None

    def find(self, name: str) -> ExternalTable | None:
        """The table of a name; None if its catalog does not know it, or must not be asked.

        Raises:
            SourceProblem: It cannot be read; see `ExternalCatalog.find`, also for other errors.
        """
        catalog = self._catalog(name)
        assert catalog is not None
        answer = self._answers.get(name)
        if answer is None or _is_old(answer, catalog):
            answer = self._ask(name, catalog, answer)
        if answer is None:
            return None
        self._answers[name] = answer
        if answer.table is not None:
            self._names[answer.table.location] = name
        return answer.table

    def _ask(self, name: str, catalog: ExternalCatalog, answer: Answer | None) -> Answer | None:
        """The answer of the catalog or, if that is recent or all that there is, of the memory."""
        keeps, now = self._memory if isinstance(catalog, SessionCatalog) else None, time.time()
        if keeps is not None and now > self._recalled.get(name, 0.0) + _ABSENT:
            answer = keeps.recall(name) or answer
            self._recalled[name] = now
        if not catalog.can_be_asked or (answer is not None and not _is_old(answer, catalog)):
            return answer
        answer = Answer(catalog.find(name, answer and answer.table), now)
        if keeps is not None:
            keeps.keep(name, answer)
        return answer

    def is_unknown(self, name: str) -> bool:
        """Whether a name may have a table although `find` has none: only a process that may ask
        Spark finds out, and none did in the last ten minutes."""
        catalog, answer = self._catalog(name), self._answers.get(name)
        if catalog is None or catalog.can_be_asked:
            return False
        return answer is None or (answer.table is None and time.time() > answer.at + _UNKNOWN)

    def storage_options(self, location: str) -> Mapping[str, str]:
        """The credentials that a catalog vended for a table; none for other tables."""
        name = self._names.get(location)
        table = None if name is None else self.find(name)
        return table.storage_options if table is not None else {}

    def name_in_spark(self, location: str) -> str | None:
        """The name by which Spark reads a table; None if it reads the location."""
        name = self._names.get(location)
        return None if name is None else name_in_spark(name)

    def _catalog(self, name: str) -> ExternalCatalog | None:
        """The catalog of a name: the one with the longest prefix, ignoring case."""
        parts = name.split(".")
        fitting = [
            prefix
            for prefix in self._catalogs
            if len(prefix) < len(parts) and all(map(same_but_case, prefix, parts))
        ]
        return self._catalogs[max(fitting, key=len)] if fitting else None


def _is_old(answer: Answer, catalog: ExternalCatalog) -> bool:
    lifetime = catalog.lifetime if answer.table is not None else _ABSENT
    return time.time() > answer.at + lifetime
