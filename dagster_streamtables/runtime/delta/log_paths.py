"""The location of a table's log, and the names of the files in it."""

from __future__ import annotations

from collections.abc import Collection, Iterable

FOLDER = "_delta_log"
LAST_CHECKPOINT = "_last_checkpoint"
_DIGITS = 20


def log_folder(location: str) -> str:
    return f"{location}/{FOLDER}"


def commit_file(version: int) -> str:
    """The file of a commit, relative to the table.

    >>> commit_file(7)
    '_delta_log/00000000000000000007.json'
    """
    return f"{FOLDER}/{version:0{_DIGITS}d}.json"


def version_of(name: str) -> int | None:
    """The version of a commit's file in the log; None for any other file.

    >>> version_of("00000000000000000007.json"), version_of("00000000000000000007.crc")
    (7, None)
    """
    number, rest = name[:_DIGITS], name[_DIGITS:]
    return int(number) if rest == ".json" and number.isdigit() else None


def checkpoint_of(name: str) -> int | None:
    """The version of a checkpoint, or of a part of one; None for any other file of the log.

    >>> checkpoint_of("00000000000000000007.checkpoint.parquet"), checkpoint_of("_last_checkpoint")
    (7, None)
    """
    number, rest = name[:_DIGITS], name[_DIGITS:]
    return int(number) if rest.startswith(".checkpoint.") and number.isdigit() else None


def is_table(folders: Collection[str]) -> bool:
    """Whether a folder with these subfolders is a Delta table."""
    return FOLDER in folders


def in_order_of_deletion(paths: Iterable[str]) -> list[str]:
    """The files of a table, the log first and its newest commit first.

    So a concurrent reader finds an older version, and later no table.

    >>> in_order_of_deletion(["a.parquet", commit_file(0), commit_file(1)])[-2:]
    ['_delta_log/00000000000000000000.json', 'a.parquet']
    """
    files = list(paths)
    log = {path for path in files if path.lstrip("/").startswith(f"{FOLDER}/")}
    return [*sorted(log, reverse=True), *(path for path in files if path not in log)]
