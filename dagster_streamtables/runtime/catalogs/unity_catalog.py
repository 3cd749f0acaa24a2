"""`UnityCatalog`: the tables of a Unity Catalog, by its REST API.

Two requests for a table: where it is, and credentials to read it, as the API documents them
(`GET tables/{full_name}`, `POST temporary-table-credentials`).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from dagster_streamtables.errors import (
    EnvironmentProblem,
    InvalidDefinition,
    LostStore,
    SourceProblem,
)
from dagster_streamtables.runtime.catalogs.external_table import (
    SPARE,
    ExternalTable,
    location_of,
    require_readable,
)

if TYPE_CHECKING:
    import requests

_API = "api/2.1/unity-catalog"
_SECONDS = 30.0


class UnityCatalog:
    """The tables below the root of one server."""

    lifetime = 600.0
    by_name = True
    can_be_asked = True

    def __init__(self, address: str, token: str = "") -> None:
        """
        Args:
            address: The URL of the server.
            token: A bearer token; empty for none. White space around it is not part of it.

        Raises:
            InvalidDefinition: The token has characters that no token has.
        """
        self._address = address.rstrip("/")
        self._token = token.strip()
        if not (self._token.isascii() and (self._token.isprintable() or not self._token)):
            raise InvalidDefinition(
                "the token of the catalog is not a token",
                where=self._address,
                why="it has characters other than printable ASCII",
                fix="give catalog_token as the catalog issued it",
            )

    def find(self, name: str, known: ExternalTable | None) -> ExternalTable | None:
        found = self._ask("GET", f"tables/{quote(name, safe='.')}")
        if found is None:
            return None
        properties: Mapping[str, Any] = found.get("properties") or {}
        require_readable(
            name,
            format=str(found.get("data_source_format") or ""),
            kind=str(found.get("table_type") or ""),
            features=[key for key, value in properties.items() if value == "supported"],
        )
        if not found.get("storage_location"):
            raise SourceProblem(
                f'the catalog does not tell where the table "{name}" is',
                where=self._address,
                fix="read it by its path, or ask the owner of the catalog for the right to read it "
                "from outside",
            )
        table, place = str(found["table_id"]), location_of(name, str(found["storage_location"]))
        if place.startswith("/"):
            return ExternalTable(place, table)
        if known is not None and (known.id, known.location) == (table, place) and _lasts(known):
            return known
        vended = self._ask(
            "POST", "temporary-table-credentials", {"table_id": table, "operation": "READ"}
        )
        options, expires = _storage_options(vended or {})
        return ExternalTable(place, table, options, expires)

    def _ask(self, method: str, path: str, body: Mapping[str, str] | None = None) -> Any:
        """The answer to a request; None if there is no such thing, which the server says in JSON,
        too: another server at the address would not."""
        import requests

        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        where = f"{self._address}/{_API}/{path}"
        try:
            answer = requests.request(method, where, json=body, headers=headers, timeout=_SECONDS)
            _require_answer(where, answer)
            said = answer.json()
            return said if answer.ok else None
        except (requests.exceptions.JSONDecodeError, ValueError) as error:
            raise EnvironmentProblem(
                "what answers at the address of a catalog is no Unity Catalog",
                where=where,
                why=str(error),
                fix="correct the address: the URL of the server without its path",
            ) from error
        except requests.exceptions.RequestException as error:
            raise _silent(where, str(error)) from error


def _require_answer(where: str, answer: requests.Response) -> None:
    """Raises an error unless the server found the thing, or says that there is none."""
    status = answer.status_code
    if answer.ok or status == 404:
        return
    said = f"{status} {answer.reason}: {answer.text[:300]}"
    if status == 429 or status >= 500:
        raise _silent(where, said)
    raise EnvironmentProblem(
        "a catalog refuses a request",
        where=where,
        why=said,
        fix="correct the token of the catalog, or give its user the right to use the schema, to "
        "select from the table, and to read it from outside (EXTERNAL USE SCHEMA)",
    )


def _silent(where: str, why: str) -> LostStore:
    return LostStore(
        "a catalog does not answer",
        where=where,
        why=why,
        fix="refresh again once it does, or correct its address; the table is unchanged",
    )


def _lasts(known: ExternalTable) -> bool:
    """Whether its credentials are not to be replaced yet."""
    return known.expires is None or known.expires > time.time() + SPARE


def _storage_options(vended: Mapping[str, Any]) -> tuple[dict[str, str], float | None]:
    """Vended credentials as options of delta-rs, and when they end, in seconds since 1970.

    Raises:
        EnvironmentProblem: delta-rs has no option for them.
    """
    ends = vended.get("expiration_time")
    expires = None if ends is None else float(ends) / 1000
    if aws := vended.get("aws_temp_credentials"):
        names = {
            "AWS_ACCESS_KEY_ID": "access_key_id",
            "AWS_SECRET_ACCESS_KEY": "secret_access_key",
            "AWS_SESSION_TOKEN": "session_token",
        }
        return {option: str(aws[name]) for option, name in names.items()}, expires
    if azure := vended.get("azure_user_delegation_sas"):
        return {"AZURE_STORAGE_SAS_TOKEN": str(azure["sas_token"])}, expires
    if vended.get("gcp_oauth_token"):
        raise EnvironmentProblem(
            "a catalog vends an OAuth token for GCS",
            why="delta-rs takes the key of a service account, and no token",
            fix="give the key in storage_options, and name the table by its path: delta.`gs://…`",
        )
    return {}, expires
