"""Errors of an object store, in the words of delta-rs or of Spark's connector for S3.

A store that does not answer in a moment says nothing about a table: its log is not damaged, and
nothing is to be deleted or restored.
"""

from __future__ import annotations

import re

from dagster_streamtables.errors import EnvironmentProblem, LostStore
from dagster_streamtables.runtime.errors.foreign_words import first_line, line_of

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
    """The problem of a store that an error reports; None if it reports none."""
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
