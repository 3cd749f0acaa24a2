"""`python -m qa.postgres_corpus`: PostgreSQL's regression queries as stream tables.

    python -m qa.postgres_corpus --report findings.jsonl
    python -m qa.postgres_corpus --files 'join*'
    python -m qa.postgres_corpus --query select.sql:7

It ends with the outcomes, counted by reason; and with 1 if a table was wrong, was recomputed behind
the user's back, or failed with an error that is none of the product.
"""

from __future__ import annotations

import argparse
import fnmatch
import shutil
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

from dagster_streamtables.runtime.spark.local_server import ensure_server
from postgres.server import connected
from qa.postgres_corpus.files import PostgresFile
from qa.postgres_corpus.oracle import Postgres
from qa.spark_corpus.command import options_of
from qa.spark_corpus.files import FileReport
from qa.spark_corpus.jar import corpus
from qa.spark_corpus.relations import INTERPRETED, own_session
from qa.spark_corpus.report import tell
from qa.spark_corpus.round import Options, Sessions
from qa.spark_corpus.standard_tables import standard_tables
from qa.spark_corpus.statements import read_file

_FOLDER = "postgreSQL"


def main(arguments: Sequence[str] | None = None) -> int:
    given = _options(arguments)
    folder = corpus()
    ensure_server()
    files, _, number = (given.query or given.files).partition(":")
    found = sorted((folder / "sql-tests/inputs" / _FOLDER).glob("*.sql"))
    names = [each.name for each in found if fnmatch.fnmatch(each.name, files)]
    options = Options(given.follow, seconds=given.seconds, windows=given.windows, seed=given.seed)
    with tempfile.TemporaryDirectory(prefix="postgres_corpus_") as work:
        # The server's own user reads the folder.
        Path(work).chmod(0o755)
        done = run_files(folder, names, options, int(number or 0), Path(work))
        return int(tell(done, len(names), given.report).has_defects)


def run_files(
    folder: Path, names: Sequence[str], options: Options, number: int, work: Path
) -> Iterator[FileReport]:
    """The reports of files of the corpus, one after another.

    Only the query of the number is followed, or every one if it is 0.
    """
    sessions = Sessions(own_session({}), own_session(INTERPRETED))
    standard = standard_tables(folder / "test-data/postgresql")
    with connected(work) as connection:
        for name in names:
            oracle = Postgres(connection, options.seconds / 2)
            root = work / "lakes"
            test = read_file(folder / "sql-tests/inputs", f"{_FOLDER}/{name}")
            run = PostgresFile(
                test, standard, sessions, options, root,
                lambda each: number in (0, each.number), oracle,
            )  # fmt: skip
            try:
                run.run()
            except Exception:
                run.report.problem = traceback.format_exc()
            shutil.rmtree(root, ignore_errors=True)
            yield run.report


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = options_of("qa.postgres_corpus", __doc__, least_windows=0)
    parser.add_argument("--follow", choices=("refresh", "plan"), default="refresh")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
