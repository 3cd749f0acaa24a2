"""Run in the environment that has the extension: the eight tables and 22 texts, into a folder.

python generate.py FOLDER SCALE
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import duckdb

TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")
TEXTS = "queries.json"


def generate(folder: Path, scale: float) -> None:
    """Write ``<table>.parquet`` for each table, and the texts by number as one JSON object."""
    # In memory, scale factor 10 is more than 20 GB.
    config = {"allow_unsigned_extensions": "true", "memory_limit": "4GB"}
    database = folder / "generated.duckdb"
    connection = duckdb.connect(database, config=config)
    connection.execute(f"LOAD '{_extension()}'")
    connection.execute(f"CALL dbgen(sf = {scale})")
    for table in TABLES:
        connection.execute(f"COPY {table} TO '{folder / table}.parquet'")
    texts = connection.execute("SELECT query_nr, query FROM tpch_queries()").fetchall()
    (folder / TEXTS).write_text(json.dumps(dict(texts)))
    connection.close()
    database.unlink()


def _extension() -> Path:
    """The extension's file in the installed package, which has no function that names it."""
    found = importlib.util.find_spec("duckdb_extension_tpch")
    assert found is not None
    assert found.origin is not None
    return next(Path(found.origin).parent.rglob("tpch.duckdb_extension"))


if __name__ == "__main__":
    generate(Path(sys.argv[1]), float(sys.argv[2]))
