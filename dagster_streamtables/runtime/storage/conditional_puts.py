"""Test before the first commit whether an object store lets a commit overwrite another.

delta-rs creates a commit by a conditional put (If-None-Match on S3). A store that ignores the
condition reports success. So, once for each lake, two writers commit the same version of a
throwaway table, and the second must fail.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress

from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from dagster_streamtables.runtime.delta.arrow import pa
from dagster_streamtables.runtime.delta.log_folder import log_at_place
from dagster_streamtables.runtime.delta.table_locations import files_below, is_remote
from dagster_streamtables.runtime.errors.environment_errors import overwriting_store
from dagster_streamtables.runtime.errors.error_translation import translate_root_errors

_FOLDER = "_streamtables/conditional_puts"

_CREATE = """
import json, sys
from deltalake import DeltaTable, Field, Schema
from deltalake.exceptions import CommitFailedError
from deltalake.schema import PrimitiveType

place, options = json.load(sys.stdin)
try:
    schema = Schema([Field("value", PrimitiveType("string"))])
    DeltaTable.create(place, schema, storage_options=options)
except CommitFailedError:
    pass  # its answer was lost, and it met its own commit
except Exception as error:
    sys.exit(str(error))
"""

_known: set[str] = set()
_trying = threading.Lock()


def require_conditional_puts(root: str, storage_options: Mapping[str, str] | None) -> None:
    """Check that the store of a lake never overwrites a commit.

    For a store, each process needs one request, and the first one of a lake some twenty; it leaves
    a table of one commit below ``_streamtables``.

    Raises:
        EnvironmentProblem: It does, or it refuses or does not answer a request.
    """
    if not is_remote(root) or root.startswith("file:") or root in _known:
        return
    place, options = f"{root.rstrip('/')}/{_FOLDER}", dict(storage_options or {})
    with _trying, translate_root_errors(root):
        if log_at_place(place, options).read(0) is None:
            _try(root, options)
            with suppress(CommitFailedError):  # another process has, or this one unheard
                DeltaTable.create(place, _schema(), mode="ignore", storage_options=options)
    _known.add(root)


def _try(root: str, options: dict[str, str]) -> None:
    name = f"{_FOLDER}_{uuid.uuid4().hex}"
    place = f"{root.rstrip('/')}/{name}"
    rows = pa.RecordBatchReader.from_batches(_schema(), _rows_behind_a_commit(place, options))
    try:
        # It looks for the table only before it reads the rows.
        write_deltalake(
            place,
            rows,
            mode="error",
            storage_options=options,
            commit_properties=CommitProperties(max_commit_retries=0),
        )
    except CommitFailedError:
        return
    finally:
        with suppress(OSError):
            files_below(root, options).delete_dir(name)
    raise overwriting_store(root, "it ignores the condition of a conditional put")


def _schema() -> pa.Schema:
    return pa.schema([("value", pa.string())])


def _rows_behind_a_commit(place: str, options: dict[str, str]) -> Iterator[pa.RecordBatch]:
    """A row, before which another writer creates the table."""
    # In another process: in this one, a thread of delta-rs waits for the row, and on one processor
    # there is no second thread.
    command = [sys.executable, "-c", _CREATE]
    told = json.dumps([place, options])
    done = subprocess.run(command, input=told, capture_output=True, text=True)
    if done.returncode:
        raise OSError(done.stderr.strip())
    yield pa.record_batch([pa.array(["1"])], schema=_schema())
