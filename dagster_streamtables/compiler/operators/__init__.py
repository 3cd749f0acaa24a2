"""The operators of the algebra, by the form of their delta rule: schema, rule, SQL, explanation."""

from dagster_streamtables.compiler.operators.algebra import (
    Negation,
    Operator,
    Restriction,
    Sum,
    Typed,
    Union,
)
from dagster_streamtables.compiler.operators.apply import (
    Apply,
    Lateral,
    SubqueryFilter,
    SubqueryOperator,
    place_of,
)
from dagster_streamtables.compiler.operators.join import Join
from dagster_streamtables.compiler.operators.keyed import (
    SET,
    Aggregate,
    Expand,
    Top,
    WindowColumns,
    distinct,
    grouping_id,
)
from dagster_streamtables.compiler.operators.leaves import ONE_ROW, Constant, Scan, relation
from dagster_streamtables.compiler.operators.left_linear import LeftLinear, OuterJoin, SemiJoin
from dagster_streamtables.compiler.operators.linear import Filter, Project, Unfold, column_outputs
from dagster_streamtables.compiler.operators.net import Empty, Net
from dagster_streamtables.compiler.operators.recursion import Recursion, Reference
from dagster_streamtables.compiler.operators.refresh_time import TimeColumn, TimeFilter
from dagster_streamtables.compiler.operators.sql_builders import (
    WEIGHT,
    all_of,
    as_column,
    as_weight,
    column,
    column_names,
    is_null,
    select,
    table,
    type_of,
    typed,
    weight_column,
    within,
)
from dagster_streamtables.compiler.operators.step import Link, Moment, Pair, Schema, Step, weight_of

__all__ = [
    "ONE_ROW",
    "SET",
    "WEIGHT",
    "Aggregate",
    "Apply",
    "Constant",
    "Empty",
    "Expand",
    "Filter",
    "Join",
    "Lateral",
    "LeftLinear",
    "Link",
    "Moment",
    "Negation",
    "Net",
    "Operator",
    "OuterJoin",
    "Pair",
    "Project",
    "Recursion",
    "Reference",
    "Restriction",
    "Scan",
    "Schema",
    "SemiJoin",
    "Step",
    "SubqueryFilter",
    "SubqueryOperator",
    "Sum",
    "TimeColumn",
    "TimeFilter",
    "Top",
    "Typed",
    "Unfold",
    "Union",
    "WindowColumns",
    "all_of",
    "as_column",
    "as_weight",
    "column",
    "column_names",
    "column_outputs",
    "distinct",
    "grouping_id",
    "is_null",
    "place_of",
    "relation",
    "select",
    "table",
    "type_of",
    "typed",
    "weight_column",
    "weight_of",
    "within",
]
