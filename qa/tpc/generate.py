"""Run in the environment that has the extension: tables and texts of a benchmark, into a folder.

python generate.py FOLDER BENCHMARK SCALE
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import duckdb

GENERATORS = {"tpch": "dbgen", "tpcds": "dsdgen"}
TEXTS = "queries.json"


def generate(folder: Path, benchmark: str, scale: float) -> None:
    """Write ``<table>.parquet`` for each table, and the texts by number as one JSON object."""
    # In memory, TPC-H at scale factor 10 is more than 20 GB.
    config: dict[str, Any] = {"allow_unsigned_extensions": "true", "memory_limit": "4GB"}
    database = folder / "generated.duckdb"
    connection = duckdb.connect(database, config=config)
    connection.execute(f"LOAD '{_extension(benchmark)}'")
    connection.execute(f"CALL {GENERATORS[benchmark]}(sf = {scale})")
    for (table,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall():
        connection.execute(f"COPY {table} TO '{folder / table}.parquet'")
    texts = connection.execute(f"SELECT query_nr, query FROM {benchmark}_queries()").fetchall()
    (folder / TEXTS).write_text(json.dumps(dict(texts)))
    connection.close()
    database.unlink()


def _extension(benchmark: str) -> Path:
    """The extension's file in the installed package, which has no function that names it."""
    found = importlib.util.find_spec(f"duckdb_extension_{benchmark}")
    assert found is not None
    assert found.origin is not None
    return next(Path(found.origin).parent.rglob(f"{benchmark}.duckdb_extension"))


if __name__ == "__main__":
    generate(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]))
