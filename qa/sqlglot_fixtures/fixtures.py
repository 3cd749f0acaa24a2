"""sqlglot's fixtures, fetched once into ``$STREAMTABLES_HOME``, as files of SQL like Spark's own.

A file of fixtures has pairs: a query, and what sqlglot's optimizer makes of it, which is left out.
Lines before a query tell its dialect, and the columns of tables that no other query has. Queries in
the dialects of others are left out; sqlglot's own has names in double quotes.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from dagster_streamtables.errors import EnvironmentProblem
from qa.spark_corpus.jar import fetched

_FILES = (
    "eliminate_ctes", "eliminate_joins", "eliminate_subqueries", "merge_subqueries",
    "optimize_joins", "optimizer", "pushdown_cte_alias_columns", "pushdown_predicates",
    "pushdown_projections", "qualify_columns", "qualify_columns__with_invisible",
    "unnest_subqueries",
)  # fmt: skip
_DIALECTS = {"spark", "spark2", "databricks", "hive"}
_TABLES = """
CREATE TEMPORARY VIEW x AS
    SELECT * FROM VALUES (1, 1), (2, 2), (2, 2), (NULL, 3), (4, NULL) AS x(a, b);
CREATE TEMPORARY VIEW y AS
    SELECT * FROM VALUES (1, 1), (2, 5), (3, 5), (NULL, 2), (6, NULL) AS y(b, c);
CREATE TEMPORARY VIEW z AS SELECT * FROM VALUES (1, 2), (2, 2), (3, 7), (NULL, NULL) AS z(b, c);
CREATE TEMPORARY VIEW nn AS SELECT * FROM VALUES (1, 2), (3, 4) AS nn(a, b);
CREATE TEMPORARY VIEW w AS SELECT * FROM VALUES ('a', 'b'), ('c', NULL) AS w(d, e);
CREATE TEMPORARY VIEW temporal AS
    SELECT * FROM VALUES (DATE '2020-01-01', TIMESTAMP '2020-01-01 10:00:00') AS temporal(d, t);
CREATE TEMPORARY VIEW t_bool AS SELECT * FROM VALUES (TRUE, FALSE), (NULL, TRUE) AS t_bool(a, b);
CREATE TEMPORARY VIEW comparisons AS SELECT * FROM VALUES (1, 2, TRUE), (3, 3, NULL) AS c(a, b, c);
CREATE TEMPORARY VIEW unpivotable AS
    SELECT * FROM VALUES (1, 10, 20, 5, 6), (2, NULL, 30, 7, 8) AS u(id, jan, feb, north, south);
CREATE TEMPORARY VIEW pivotable AS
    SELECT * FROM VALUES (1, 'a', 10, 'k', 5), (1, 'b', 20, 'l', 6) AS p(id, cat, val, kind, amt);
"""
_LINE = re.compile(r"^#\s*(\w+):\s*(.*)$")


@dataclass(frozen=True)
class Fixture:
    sql: str
    said: dict[str, str]
    """What the lines before it tell."""

    @property
    def is_of_spark(self) -> bool:
        named = self.said.get("dialect", "").replace(" ", "")
        return not named or bool(_DIALECTS & set(named.split(",")))

    @property
    def text(self) -> str:
        return self.sql if self.said.get("dialect") else self.sql.replace('"', "`")


def fixtures() -> Path:
    """The folder with a file of SQL for each file of fixtures.

    Raises:
        EnvironmentProblem: The source package could not be fetched.
    """
    return fetched("sqlglot-fixtures", version("sqlglot"), _fetch)


def _fetch(released: str, folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".fetching-") as name:
        work = Path(name)
        wanted = [f"sqlglot=={released}", "--no-deps", "--no-binary", "sqlglot"]
        said = subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", *wanted, "--dest", name],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if said.returncode:
            raise EnvironmentProblem(
                f"the source package of sqlglot {released} could not be fetched",
                where=said.stderr[-500:],
                why="its fixtures are not part of this repository, nor of its wheel",
                fix="connect this machine for the first run, or set pip's index",
            )
        with tarfile.open(next(work.glob("*.tar.gz"))) as opened:
            opened.extractall(work / "source", filter="data")
        inputs = work / "inputs"
        inputs.mkdir()
        for file in _FILES:
            [found] = work.glob(f"source/*/tests/fixtures/optimizer/{file}.sql")
            (inputs / f"{file}.sql").write_text(_TABLES + "".join(statements(found.read_text())))
        inputs.rename(folder)


def statements(text: str) -> Iterator[str]:
    """The queries of a file of fixtures, each after the tables that only it has.

    >>> text = '# schema: {"t": {"a": "INT"}}\\nSELECT "a" FROM t;\\nSELECT t.a FROM t;'
    >>> print(*statements(text), sep="")
    CREATE OR REPLACE TEMPORARY VIEW t AS SELECT CAST(NULL AS INT) AS a;
    SELECT `a` FROM t;
    <BLANKLINE>
    """
    for each in _pairs(text):
        if not each.is_of_spark:
            continue
        for table, columns in json.loads(each.said.get("schema", "{}")).items():
            if all(isinstance(kind, str) for kind in columns.values()):
                made = (f"CAST(NULL AS {kind}) AS {name}" for name, kind in columns.items())
                yield f"CREATE OR REPLACE TEMPORARY VIEW {table} AS SELECT {', '.join(made)};\n"
        yield f"{each.text};\n"


def _pairs(text: str) -> Iterator[Fixture]:
    lines = [line for line in text.split("\n") if not line.startswith("--")]
    for sql in "\n".join(lines).split(";")[::2]:
        rows = sql.strip().split("\n")
        told = [found for line in rows if (found := _LINE.match(line))]
        said = {found[1]: found[2].strip() for found in told}
        query = "\n".join(line for line in rows if not line.startswith("#")).strip()
        if query:
            yield Fixture(query, said)
