"""Opening Parquet files so that no thread of Arrow holds a Python object."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def opened_parquet(files: Any, path: str) -> Iterator[Any]:
    """A `pyarrow.parquet.ParquetFile` whose timestamps are microseconds, also those of INT96.

    Files that a store's client in Python hands over are read without a buffer of Arrow's, and must
    be read in the calling thread (`may_use_threads`). Otherwise one of Arrow's threads may drop the
    last reference to a buffer of Python's after the interpreter has begun to end, which aborts the
    process: "terminate called without an active exception", exit code 134.

    Raises:
        OSError: The file cannot be read.
        pyarrow.ArrowException: It is no Parquet file.
    """
    import pyarrow.parquet as pq

    with files.open_input_file(path) as stream:
        yield pq.ParquetFile(
            stream, coerce_int96_timestamp_unit="us", pre_buffer=may_use_threads(files)
        )


def may_use_threads(files: Any) -> bool:
    """Whether Arrow itself reads the files."""
    import pyarrow.fs

    return not isinstance(files, pyarrow.fs.PyFileSystem)
