"""SQL text → `Plan`. Pure: it needs sqlglot, and neither Spark nor Dagster.

views       views, inlined into a query's text
compile     the way from a text to its plan
plan        `Plan`: what the runtime is handed
lower       syntax tree → operators
rewrite     equivalences that make a plan cheaper
maintain    how a change enters the stored table
analyze     text → a syntax tree with every name bound, or a refusal
dialect     other dialects → Spark SQL
operators   the algebra, one law a module
text        the user's words

Each imports only what stands below it.
"""

from dagster_streamtables.compiler.compile import compile_query, with_one_answer
from dagster_streamtables.compiler.maintain.bag import row_by_row
from dagster_streamtables.compiler.maintain.strategy import Entry
from dagster_streamtables.compiler.plan import STORED, TOUCHED, Plan
from dagster_streamtables.compiler.rewrite.runtime_filters import Bounds
from dagster_streamtables.compiler.text.query_text import Text, read, sources_of

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
