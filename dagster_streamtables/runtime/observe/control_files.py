"""`ControlFiles`: the controls that versions before the ledgers stored, of a file each.

``<root>/_streamtables/<name>.json`` counts until the table's control has a ledger. It stays where
it is then: a process of such a version, during an upgrade, still finds the suspension in it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from deltalake.exceptions import DeltaError

from dagster_streamtables.errors import DamagedTable
from dagster_streamtables.runtime.delta.names import files_below, is_remote, require_root
from dagster_streamtables.runtime.errors.machine import machine_problem
from dagster_streamtables.runtime.errors.translate import root_explained
from dagster_streamtables.runtime.observe.control import Control
from dagster_streamtables.runtime.storage.documents import FOLDER

_JSON = ".json"


class ControlFiles:
    """The control files below one root."""

    def __init__(self, root: str, storage_options: Mapping[str, str] | None = None) -> None:
        """
        Args:
            root: As for `Lake`.
            storage_options: What delta-rs needs to reach an object store.
        """
        self._root = root.rstrip("/")
        self._options = storage_options

    def names(self) -> list[str]:
        """The tables that have a file."""
        from pyarrow.fs import FileSelector

        if not self._exists:
            return []
        with root_explained(self._root):
            found = self._files.get_file_info(FileSelector(FOLDER, allow_not_found=True))
        files = (each.base_name for each in found)
        return [unquote(each.removesuffix(_JSON)) for each in files if each.endswith(_JSON)]

    def find(self, name: str) -> Control | None:
        """The control in the file of a table; None if missing.

        Raises:
            DamagedTable: It cannot be read.
        """
        content = self._read(name)
        try:
            return None if content is None else Control.from_json(json.loads(content))
        except (ValueError, TypeError, KeyError) as error:
            raise unreadable(self._place(name), error) from error

    def exists(self, name: str) -> bool:
        """Whether a table has a file, even one that cannot be read."""
        return self._read(name) is not None

    def delete(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self._files.delete_file(_file(name))

    def _read(self, name: str) -> bytes | None:
        if not self._exists:
            return None
        try:
            with self._files.open_input_file(_file(name)) as stream:
                return stream.read()
        except FileNotFoundError:
            return None
        except (OSError, DeltaError) as error:
            require_root(self._root, self._options)  # its message is better
            raise machine_problem(error) or unreadable(self._place(name), error) from error

    def _place(self, name: str) -> str:
        return f"{self._root}/{_file(name)}"

    @property
    def _exists(self) -> bool:
        return is_remote(self._root) or Path(self._root).exists()

    @cached_property
    def _files(self) -> Any:
        return files_below(self._root, self._options)


def unreadable(place: str, why: object) -> DamagedTable:
    """
    Args:
        place: The file, or the folder of the ledger.
        why: The reason.
    """
    return DamagedTable(
        "what is known of the table's errors cannot be read",
        where=place,
        why=str(why),
        fix="delete that file or folder; if the table was suspended, it is refreshed again",
    )


def _file(name: str) -> str:
    """The file of a table, always in this folder: even `..` is part of a file name.

    >>> _file("mart.revenue"), _file("../x")
    ('_streamtables/mart.revenue.json', '_streamtables/..%2Fx.json')
    """
    return f"{FOLDER}/{quote(name, safe=' ')}{_JSON}"
