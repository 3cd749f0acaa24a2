"""`ExternalCatalogs`: which names are those of tables in catalogs, and where these tables are."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from dagster_streamtables.compiler import same_but_case
from dagster_streamtables.errors import InvalidDefinition, LostStore
from dagster_streamtables.runtime.catalogs.external_table import (
    SPARE,
    ExternalCatalog,
    ExternalTable,
    comparable_location,
)
from dagster_streamtables.runtime.catalogs.session_catalog import SessionCatalog, name_in_spark
from dagster_streamtables.runtime.catalogs.unity_catalog import UnityCatalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK = "spark"
"""The address of the catalogs of the Spark session."""
_URL = re.compile(r"https?://[^/\s]+.*")
_ABSENT = 60.0
"""Seconds until a catalog is asked again for a table that it did not know."""
_RECALLED = 5.0
"""Seconds until the memory is: each time is a request to an object store."""

_UNKNOWN = 600.0
_FAILED = 15.0
"""Seconds for which the other tables of a catalog that failed are not asked for: each could take
half a minute."""
_CREDENTIALS = re.compile(
    r"(aws_)?(access_key_id|secret_access_key|session_token|token|profile|(iam_)?role_arn|"
    r"skip_signature)|"
    r"((azure|azure_storage)_)?(account_key|access_key|master_key|sas_key|sas_token|token|"
    r"bearer_token|skip_signature|client_id|client_secret|tenant_id|authority_id|use_azure_cli|federated_token_file)",
    re.IGNORECASE,
)
"""Options of delta-rs by which it would sign requests otherwise, in all their spellings."""


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
    """Catalogs by the first parts of the names of their tables. Threads may share them."""

    def __init__(
        self,
        addresses: Mapping[str, str] | None = None,
        *,
        root: str = "",
        token: str = "",
        session: Callable[[], SparkSession] | None = None,
        memory: Memory | None = None,
    ) -> None:
        """
        Args:
            addresses: First parts of names (``main``, ``lake.sales``) → the URL of a Unity
                Catalog, or `SPARK`.
            root: The root of the lake, whose own tables are not read as those of a catalog, also
                if one has them.
            token: For Unity Catalog.
            session: Returns a session of Spark; None if Spark must not be asked.
            memory: Keeps the answers of Spark.

        Raises:
            InvalidDefinition: An address is neither.
        """
        self._root = root
        self._memory = memory
        self._failures: dict[ExternalCatalog, tuple[float, LostStore]] = {}
        """Of each catalog that did not answer, and until when it is not asked."""
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
        if answer.table is not None and not _is_below(answer.table.location, self._root):
            self._names[answer.table.location] = name
        return answer.table

    def forget(self, name: str) -> bool:
        """Forget an answer that proved wrong, unless it is recent, and return whether it was."""
        answer = self._answers.get(name)
        if answer is None or time.time() < answer.at + _ABSENT:
            return False
        self._answers[name] = replace(answer, at=0.0)
        return True

    def _ask(self, name: str, catalog: ExternalCatalog, answer: Answer | None) -> Answer | None:
        """The answer of the catalog or, if that is recent or all that there is, of the memory."""
        keeps, now = self._memory if isinstance(catalog, SessionCatalog) else None, time.time()
        if keeps is not None and now > self._recalled.get(name, 0.0) + _RECALLED:
            answer = keeps.recall(name) or answer
            self._recalled[name] = now
        if not catalog.can_be_asked or (answer is not None and not _is_old(answer, catalog)):
            return answer
        until, failure = self._failures.get(catalog, (0.0, None))
        if failure is not None and now < until:
            raise failure.with_parts()
        try:
            answer = Answer(catalog.find(name, answer and answer.table), now)
        except LostStore as error:
            self._failures[catalog] = time.time() + _FAILED, error
            raise
        if keeps is not None:
            keeps.keep(name, answer)
        return answer

    def is_unknown(self, name: str) -> bool:
        """Whether a name may have a table although none is found: only a process that may ask
        Spark finds out, and none did in the last ten minutes."""
        catalog, answer = self._catalog(name), self._answers.get(name)
        if catalog is None or catalog.can_be_asked:
            return False
        return answer is None or time.time() > answer.at + _UNKNOWN

    def storage_options(
        self, location: str, options: Mapping[str, str] | None
    ) -> Mapping[str, str] | None:
        """The options by which a table is read: those of the lake, or with the credentials that a
        catalog vended instead of the lake's."""
        name = self._names.get(location)
        table = None if name is None else self.find(name)
        if table is None or not table.storage_options:
            return options
        rest = {k: v for k, v in (options or {}).items() if not _CREDENTIALS.fullmatch(k)}
        return {**rest, **table.storage_options}

    def name_in_spark(self, location: str) -> str | None:
        """The name by which Spark reads a table; None if it reads the location."""
        name = self._names.get(location)
        catalog = None if name is None else self._catalog(name)
        if name is None or catalog is None or not catalog.by_name:
            return None
        return name_in_spark(name)

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
    table, now = answer.table, time.time()
    if table is None:
        return now > answer.at + _ABSENT
    ends = table.expires
    if ends is not None and now > ends - min(SPARE, (ends - answer.at) / 2):
        return True
    return now > answer.at + catalog.lifetime


def _is_below(location: str, root: str) -> bool:
    below = f"{comparable_location(root)}/"
    return bool(root) and comparable_location(location).startswith(below)
