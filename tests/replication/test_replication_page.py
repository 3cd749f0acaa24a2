"""The code of docs/replication.md does what the page says, with a PostgreSQL server."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from pages import DOCS, blocks
from replication.postgres.database import Database

PAGE = (DOCS / "replication.md").read_text()


def test_the_code_of_the_page_prints_what_the_page_says(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SHOP_DATABASE", database.address)
    monkeypatch.setenv("SHOP_PASSWORD", "not needed here")
    database.run("CREATE TABLE orders (id int PRIMARY KEY, note text)")
    database.run("INSERT INTO orders VALUES (1, 'a')", "CREATE PUBLICATION shop FOR TABLE orders")
    names: dict[str, Any] = {}
    printed = ""
    for block in blocks(PAGE):
        if block.language == "python":
            with redirect_stdout(io.StringIO()) as out:
                exec(compile("\n" * (block.line - 1) + block.text, "replication.md", "exec"), names)
            printed = out.getvalue()
        elif (block.language, block.role) == ("text", "output"):
            assert block.text.strip() == printed.strip(), block.line
    assert DeltaTable("lake/raw/orders").to_pyarrow_table().to_pylist() == [{"id": 1, "note": "a"}]


def test_the_statements_of_the_page_are_enough_for_a_role(database: Database) -> None:
    statements = next(block.text for block in blocks(PAGE) if block.language == "sql")
    database.run(
        "DROP ROLE IF EXISTS replicator", "CREATE TABLE orders (id int PRIMARY KEY)",
        *(each for each in statements.split(";") if each.strip()),
    )  # fmt: skip
    query = "SELECT rolreplication FROM pg_roles WHERE rolname = 'replicator'"
    assert database.run(query) == [(True,)]
