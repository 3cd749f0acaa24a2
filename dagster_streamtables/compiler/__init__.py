"""SQL text → `Plan`. Pure: it needs sqlglot, and neither Spark nor Dagster.

views       views, inlined into a query's text
plan        `Plan`: a compiled query, and the statements of a refresh
lower       syntax tree → operators
rewrite     rewrites that make a plan cheaper
analyze     text → a syntax tree with every name bound, or a refusal
maintain    strategies for applying a change to the stored table
dialect     other dialects → Spark SQL
operators   the algebra: each operator with its columns, delta rule and SQL
scope       what stars and names mean over a FROM clause
text        the query as text

Each imports only from those listed below it. This package exports all names that other layers use;
they import nothing from inside it.
"""

from dagster_streamtables.compiler.analyze.output_names import (
    is_storable,
    place_of_output,
    require_storable,
    storable,
    unstorable,
)
from dagster_streamtables.compiler.analyze.refuse import flaw_of
from dagster_streamtables.compiler.dialect import UnknownType, check_dialect, place_of_table
from dagster_streamtables.compiler.maintain.fold import partial_column, stored_column
from dagster_streamtables.compiler.maintain.strategy import STORED, TOUCHED, StrategyKind
from dagster_streamtables.compiler.operators.algebra import Moment
from dagster_streamtables.compiler.operators.comparable import (
    comparable_columns,
    json_columns,
    zero_marks,
)
from dagster_streamtables.compiler.operators.leaves import relation
from dagster_streamtables.compiler.operators.sql_builders import WEIGHT, is_reserved_name
from dagster_streamtables.compiler.plan.compile import (
    compile_query,
    require_maintainable,
    with_one_answer,
)
from dagster_streamtables.compiler.plan.maintenance import (
    BagMaintenance,
    FoldMaintenance,
    GroupMaintenance,
    Statement,
    all_rows,
    maintenance_of,
    unstored_change,
)
from dagster_streamtables.compiler.plan.optimizer import Statistics
from dagster_streamtables.compiler.plan.plan import Plan, QueryPlan
from dagster_streamtables.compiler.plan.plan_description import OperatorLine
from dagster_streamtables.compiler.plan.table_invariants import Invariants, RowInvariant
from dagster_streamtables.compiler.rewrite.fixpoint import RecursionLimits
from dagster_streamtables.compiler.rewrite.runtime_filters import Bounds
from dagster_streamtables.compiler.text.current_time import (
    asks_for_time,
    at_time,
    unrepeatable_word,
)
from dagster_streamtables.compiler.text.places import span
from dagster_streamtables.compiler.text.query_text import Text, read, tokenize_query
from dagster_streamtables.compiler.text.recursive_tables import RecursiveTable, recursive_table
from dagster_streamtables.compiler.text.spark_functions import USER, is_of_spark
from dagster_streamtables.compiler.text.sqlglot_dialects import UNKNOWN, type_text
from dagster_streamtables.compiler.views.views import (
    View,
    blame_view,
    over_another,
    respell_tables,
    same_but_case,
    sources_through,
    text_of,
    views_of,
)

__all__ = [
    "STORED",
    "TOUCHED",
    "UNKNOWN",
    "USER",
    "WEIGHT",
    "BagMaintenance",
    "Bounds",
    "FoldMaintenance",
    "GroupMaintenance",
    "Invariants",
    "Moment",
    "OperatorLine",
    "Plan",
    "QueryPlan",
    "RecursionLimits",
    "RecursiveTable",
    "RowInvariant",
    "Statement",
    "Statistics",
    "StrategyKind",
    "Text",
    "UnknownType",
    "View",
    "all_rows",
    "asks_for_time",
    "at_time",
    "blame_view",
    "check_dialect",
    "comparable_columns",
    "compile_query",
    "flaw_of",
    "is_of_spark",
    "is_reserved_name",
    "is_storable",
    "json_columns",
    "maintenance_of",
    "over_another",
    "partial_column",
    "place_of_output",
    "place_of_table",
    "read",
    "recursive_table",
    "relation",
    "require_maintainable",
    "require_storable",
    "respell_tables",
    "same_but_case",
    "sources_through",
    "span",
    "storable",
    "stored_column",
    "text_of",
    "tokenize_query",
    "type_text",
    "unrepeatable_word",
    "unstorable",
    "unstored_change",
    "views_of",
    "with_one_answer",
    "zero_marks",
]
