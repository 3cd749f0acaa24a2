"""Errors of an object store, in the words of delta-rs or of Spark's connector for S3.

A store that does not answer in a moment says nothing about a table: its log is not damaged, and
nothing is to be deleted or restored.
"""

from __future__ import annotations

import re

from dagster_streamtables.errors import EnvironmentProblem, LostStore
from dagster_streamtables.runtime.errors.foreign_words import first_line, line_of

_OF_A_STORE = re.compile(r"Generic (S3|GCS|MicrosoftAzure|HTTP) error")
_SILENT = re.compile(
    r"error sending request|Connection refused|Connection reset|timed out|dns error|"
    r"\b5\d\d (Internal Server Error|Bad Gateway|Service Unavailable|Gateway Time-?out)|"
    r"\b429 Too Many Requests|SlowDown|ServerBusy",
    re.IGNORECASE,
)
_SILENT_TO_SPARK = re.compile(
    r"\b(SdkClientException|AWSClientIOException|AWSServiceThrottledException|"
    r"AWSStatus500Exception)\b"
)


def store_problem(error: BaseException) -> EnvironmentProblem | None:
    """The problem of a store that an error reports; None if it reports none."""
    message = str(error)
    line = line_of(message, _SILENT_TO_SPARK)
    if line is not None:
        return _silent(line)
    if not _OF_A_STORE.search(message):
        return None
    if _SILENT.search(message):
        return _silent(first_line(message))
    return EnvironmentProblem(
        "the object store refuses a request",
        why=first_line(message),
        fix="correct the bucket, the region or the credentials: storage_options are for delta-rs, "
        "fs.s3a.* and the like for Spark",
    )


def _silent(why: str) -> LostStore:
    return LostStore(
        "the object store does not answer",
        why=why,
        fix="refresh again once it does; the table is unchanged",
    )
