"""docs/operators/*.md: examples that run, and what they come to.

A page has examples, each a query with what its sources hold before and the statements that change
them. What comes out, and how it is maintained, is written into the page by

    python -m tests.operator_pages

and a test says if a page is not what this writes.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))

from compiler.database import TABLES, Database, Prepared
from compiler.intermediate import stored_in
from compiler.test_cases import difference, signed
from dagster_streamtables.compiler import Plan, compile_query
from dagster_streamtables.compiler.analyze.bind import parse
from dagster_streamtables.compiler.text.query_text import tokenize_query
from pages import DOCS, blocks, filled

FOLDER = DOCS / "operators"
PAGES = sorted(FOLDER.glob("*.md"))
STEPS = DOCS / "query_to_plan.md"
"""The page that shows what each step of the compiler comes to."""


@dataclass
class Example:
    """The parts of an example, and the places of what is filled in."""

    query: str
    before: str = ""
    change: str = ""
    delta: int | None = None
    plan: int | None = None
    bound: int | None = None
    statement: int | None = None

    @property
    def compiled(self) -> Plan:
        return compile_query(self.query.rstrip().rstrip(";"), TABLES)


def examples(page: str) -> list[Example]:
    found: list[Example] = []
    for place, block in enumerate(blocks(page)):
        match block.language, block.role:
            case "sql", "query":
                found.append(Example(block.text))
            case "sql", "before":
                found[-1].before = block.text
            case "sql", "change":
                found[-1].change = block.text
            case "text", "delta":
                found[-1].delta = place
            case "text", "explain":
                found[-1].plan = place
            case "sql", "bound":
                found[-1].bound = place
            case "sql", "statement":
                found[-1].statement = place
    return found


def written(page: str, database: Database) -> str:
    """The page with what its examples come to."""
    texts: dict[int, str] = {}
    for example in examples(page):
        if example.delta is not None:
            texts[example.delta] = came_out(example, database)
        if example.plan is not None:
            texts[example.plan] = example.compiled.with_intermediates.explain()
        if example.bound is not None:
            tree = parse(tokenize_query(example.query.rstrip().rstrip(";")), TABLES).tree
            texts[example.bound] = tree.sql("spark", pretty=True)
        if example.statement is not None:
            texts[example.statement] = example.compiled.change_sql()
    return filled(page, texts)


def came_out(example: Example, database: Database) -> str:
    """The change of the table: a weight, then the columns."""
    plan = example.compiled
    prepared = Prepared(plan)
    with database.fresh():
        database.write(example.before)
        for table in plan.sources:
            database.keep(f"{table}@before", f"FROM {table}")
        database.write(example.change)
        for table in plan.sources:
            database.keep(f"{table}@after", f"FROM {table}")
            database.keep(f"{table}@change", difference(table, net=True))
        stored = stored_in(database, prepared)
        before = stored.visible
        stored.refresh()
        stored.check()
        return grid([("weight", *plan.schema), *signed(stored.visible, before)])


def grid(rows: list[tuple[str, ...]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        " | ".join(value.ljust(width) for value, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
    return "\n".join(lines)


def main() -> None:
    database = Database()
    for path in (*PAGES, STEPS):
        path.write_text(written(path.read_text(), database))


if __name__ == "__main__":
    main()
