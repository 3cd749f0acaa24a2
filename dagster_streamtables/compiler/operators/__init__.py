"""The operators of the algebra, one module each: schema, rule, SQL, explanation."""

from dagster_streamtables.compiler.operators.aggregate import Aggregate, distinct
from dagster_streamtables.compiler.operators.algebra import (
    Moment,
    Negation,
    Operator,
    Restriction,
    Schema,
    Step,
    Sum,
    weight_of,
)
from dagster_streamtables.compiler.operators.anti_join import AntiJoin
from dagster_streamtables.compiler.operators.columns import (
    WEIGHT,
    as_column,
    as_weight,
    column,
    type_of,
    weight_column,
    within,
)
from dagster_streamtables.compiler.operators.filter import Filter
from dagster_streamtables.compiler.operators.join import Join
from dagster_streamtables.compiler.operators.left_linear import LeftLinear
from dagster_streamtables.compiler.operators.outer_join import OuterJoin
from dagster_streamtables.compiler.operators.project import Project
from dagster_streamtables.compiler.operators.scan import Scan, relation
from dagster_streamtables.compiler.operators.union import Typed, Union

__all__ = [
    "WEIGHT",
    "Aggregate",
    "AntiJoin",
    "Filter",
    "Join",
    "LeftLinear",
    "Moment",
    "Negation",
    "Operator",
    "OuterJoin",
    "Project",
    "Restriction",
    "Scan",
    "Schema",
    "Step",
    "Sum",
    "Typed",
    "Union",
    "as_column",
    "as_weight",
    "column",
    "distinct",
    "relation",
    "type_of",
    "weight_column",
    "weight_of",
    "within",
]
