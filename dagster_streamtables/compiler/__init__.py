"""SQL text → `Plan`. Pure: it needs sqlglot, and neither Spark nor Dagster."""

from dagster_streamtables.compiler.bag import row_by_row
from dagster_streamtables.compiler.bounds import Bounds
from dagster_streamtables.compiler.compile import compile_query, with_one_answer
from dagster_streamtables.compiler.plan import STORED, TOUCHED, Plan
from dagster_streamtables.compiler.root import Entry
from dagster_streamtables.compiler.text import Text, read, sources_of

__all__ = [
    "STORED",
    "TOUCHED",
    "Bounds",
    "Entry",
    "Plan",
    "Text",
    "compile_query",
    "read",
    "row_by_row",
    "sources_of",
    "with_one_answer",
]
