"""Errors of the object store and of the machine (disk, permissions, memory, Spark), from messages.

delta-rs, Spark and Python each wrap the same message of the operating system. A store's errors are
in the words of delta-rs or of Spark's connector for S3. If a store does not answer for a moment,
the log of a table is not damaged, and nothing must be deleted or restored.
"""

from __future__ import annotations

import re
from pathlib import Path

from dagster_streamtables.errors import EnvironmentProblem, LostSpark, LostStore
from dagster_streamtables.runtime.errors.error_messages import (
    first_line,
    line_of,
    place_in,
    plain_words,
)

_OF_A_STORE = re.compile(
    r"Generic (S3|GCS|MicrosoftAzure|HTTP) error|NoSuchBucket|"
    r"operation lacked (the necessary privileges|valid authentication credentials) to complete for"
)
_SILENT = re.compile(
    r"error sending request|Connection refused|Connection reset|timed out|dns error|"
    r"\b5\d\d (Internal Server Error|Bad Gateway|Service Unavailable|Gateway Time-?out)|"
    r"\b429 Too Many Requests|SlowDown|ServerBusy",
    re.IGNORECASE,
)
_UNCONDITIONAL = re.compile(r"streamtables\.S3LogStore: (\S+) lets a commit overwrite another: .*")
_NO_LOG_STORE = re.compile(
    r"(ClassNotFoundException|NoClassDefFoundError): "
    r"(streamtables[./]S3LogStore|io[./]delta[./]storage[./]S3SingleDriverLogStore)"
)
_SILENT_TO_SPARK = re.compile(
    r"\b(SdkClientException|AWSClientIOException|AWSServiceThrottledException|"
    r"AWSStatus500Exception)\b|Service: S3, Status Code: (409|429|5\d\d)"
)
_REFUSED_TO_SPARK = re.compile(r"Service: S3, Status Code: 4\d\d|\bUnknownStoreException\b")


def store_problem(error: BaseException) -> EnvironmentProblem | None:
    """The problem of a store that an error reports; None for other errors."""
    message = str(error)
    line = line_of(message, _SILENT_TO_SPARK)
    if line is not None:
        return _silent(line)
    if found := _UNCONDITIONAL.search(message):
        return overwriting_store(found[1], found[0].rpartition(": ")[2])
    if found := _NO_LOG_STORE.search(message):
        return EnvironmentProblem(
            "Spark does not find the log store that its settings name",
            why=found[0],
            fix="give Spark its JAR in the same way as Delta's, both in spark.jars or both on the "
            "class path: see `streamtables spark properties`",
        )
    refused = line_of(message, _REFUSED_TO_SPARK)
    if refused is None and not _OF_A_STORE.search(message):
        return None
    if refused is None and _SILENT.search(message):
        return _silent(first_line(message))
    return EnvironmentProblem(
        "the object store refuses a request",
        why=refused or first_line(message),
        fix="correct the bucket, the region, the credentials or the clock: storage_options are for "
        "delta-rs, fs.s3a.* and the like for Spark",
    )


def overwriting_store(place: str, why: str) -> EnvironmentProblem:
    """A store in which the second of two writers of a commit erases the first one's."""
    return EnvironmentProblem(
        "the object store lets a commit overwrite another",
        where=place,
        why=why,
        fix="use a store that honors If-None-Match, as S3, R2 and recent versions of MinIO do",
    )


def _silent(why: str) -> LostStore:
    return LostStore(
        "the object store does not answer",
        why=why,
        fix="refresh again once it does; the table is unchanged",
    )


_FULL = re.compile(
    r"No space left on device|Disk quota exceeded|File too large|\(os error (27|28|122)\)"
)
_DENIED = re.compile(
    r"Permission denied|Operation not permitted|AccessDenied|"
    r"AccessControlException|DELTA_CANNOT_CREATE_LOG_PATH|Mkdirs failed|\(os error (1|13)\)"
)
_READ_ONLY = re.compile(r"Read-only file system|\(os error 30\)")
_NO_FOLDER = re.compile(
    r"Not a directory|ParentNotDirectoryException|FileAlreadyExistsException|\(os error 20\)"
)
_MEMORY = re.compile(
    r"OutOfMemoryError|Java heap space|GC overhead limit|maxResultSize|RESOURCE_EXHAUSTED|"
    r"\[(OUT_OF_MEMORY|UNABLE_TO_ACQUIRE_MEMORY|NOT_ENOUGH_MEMORY)"
)
_SENT = re.compile(r"Cannot broadcast the table|Not enough memory to build and broadcast")
_ENDED = re.compile(
    r"StatusCode\.UNAVAILABLE|failed to connect to all addresses|Connection refused|Socket closed|"
    r"\[(INVALID_HANDLE\.(SESSION|OPERATION)_\w+|RETRIES_EXCEEDED|NO_ACTIVE_SESSION)\]|"
    r"SparkContext was shut down|SparkContext has been shutdown|stopped SparkContext"
)
_NO_DELTA = re.compile(
    r"\[DATA_SOURCE_NOT_FOUND\].*\bdelta\b|\[DELTA_CONFIGURE_SPARK_SESSION_WITH_EXTENSION_AND_CATALOG"
)
_NO_CONNECTOR = re.compile(
    r"ClassNotFoundException: Class \S*hadoop\S* not found|No FileSystem for scheme"
)
_MARKS = re.compile(r"\x1b\[\d+m|↳")
STAYS = "the table is unchanged"
_LACKS = (
    (_FULL, "the disk is full", f"free some space and refresh again; {STAYS}"),
    (
        _READ_ONLY,
        "the file system is read-only",
        f"mount it so that this process and Spark may write, or name another root; {STAYS}",
    ),
    (
        _DENIED,
        "no permission to read or write a file",
        "grant it to the users of this process and of Spark, and refresh again; " + STAYS,
    ),
    (
        _NO_DELTA,
        "the Spark session is not configured for Delta",
        "start its Spark with Delta's JARs, extension and catalog: the confs that "
        f"delta_settings() returns; {STAYS}",
    ),
    (
        _NO_CONNECTOR,
        "Spark has no connector for the object store",
        "start its Spark with the one that the root needs, such as hadoop-aws of its version of "
        f"Hadoop for s3a; {STAYS}",
    ),
)


class TooLarge(EnvironmentProblem):
    """A side of a join that was expected to be small is not."""


def machine_problem(error: BaseException) -> EnvironmentProblem | None:
    """The problem of the machine or a store that an error reports; None for other errors."""
    message = plain_words(_MARKS.sub("", str(error)))
    store = store_problem(error)
    if store is not None:
        return store
    found = file_problem(place_in(message)) if _NO_FOLDER.search(message) else None
    if found is not None:
        return found
    for pattern, what, fix in _LACKS:
        line = line_of(message, pattern)
        if line is not None:
            return EnvironmentProblem(what, where=place_in(message), why=line, fix=fix)
    line = line_of(message, _SENT)
    if line is not None:
        return TooLarge(
            "a join broadcasts more rows than fit in memory",
            why=line,
            fix=f"raise STREAMTABLES_SPARK_MEMORY and restart Spark; {STAYS}",
        )
    if isinstance(error, MemoryError) or _MEMORY.search(message):
        return EnvironmentProblem(
            "there is not enough memory for the refresh",
            why=line_of(message, _MEMORY) or "this process could not allocate more",
            fix="raise STREAMTABLES_SPARK_MEMORY and restart Spark, or lower driver_rows; " + STAYS,
        )
    line = line_of(message, _ENDED)
    if line is None and type(error).__module__.partition(".")[0] != "grpc":
        return None
    return LostSpark(
        "Spark stopped during the refresh",
        why=line or first_line(message),
        fix="refresh again, which restarts the local server; a cluster must be running. If Spark "
        "stops each time, read its log and give it more memory",
    )


def file_problem(path: str) -> EnvironmentProblem | None:
    """The problem of a path that leads to a file, or through one; None if it does not."""
    here = Path(path)
    found = None if "://" in path else next((p for p in (here, *here.parents) if p.is_file()), None)
    if found is None:
        return None
    return EnvironmentProblem(
        "a file is where a folder should be",
        where=str(found.absolute()),
        why="a table is a folder below the root, as are the schemas above it",
        fix="move the file away, or correct the root (--root, STREAMTABLES_ROOT) or the name of "
        f"the table; {STAYS}",
    )
