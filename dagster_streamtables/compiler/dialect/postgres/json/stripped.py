"""JSON of Postgres without its nulls, at any depth.

Spark has no function that walks through all of a JSON value, so the text is changed that it writes
of one, which has no spaces. Each string in it is matched as a whole, and kept, so that nothing
inside of a string is taken for JSON.
"""

from __future__ import annotations

from sqlglot import exp

from dagster_streamtables.compiler.dialect.postgres.json.compared import json_of
from dagster_streamtables.compiler.dialect.postgres.json.keys import TEXT, canonical
from dagster_streamtables.compiler.dialect.rules.made import from_template, string
from dagster_streamtables.compiler.dialect.rules.query import Query, Rule

_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_MEMBER, _ELEMENT = rf"{_STRING}:null", r"(?<=[\[,])null"
_COMMAS = r"(?<=[{\[]),+|,+(?=[,}\]])"
"""Those beside what was taken away."""


def _strip_nulls(node: exp.Expr, query: Query) -> exp.Expr:
    """``jsonb_strip_nulls(j, in_arrays)``."""
    json, *rest = node.expressions
    if rest and not isinstance(rest[0], exp.Boolean):
        raise query.refusal(node, "whether it strips arrays must be known", "write true or false")
    query.note(TEXT)
    nulls = f"{_MEMBER}|{_ELEMENT}" if rest and rest[0].this else _MEMBER
    found = canonical(json_of(node, json, query))
    for pattern in (nulls, _COMMAS):
        found = from_template("REGEXP_REPLACE(_j, _p, _r)", j=found,
                     p=string(f"(?s){pattern}|({_STRING})"), r=string("$1"))  # fmt: skip
    return found


STRIP_CALLS: dict[str, Rule] = dict.fromkeys(
    ("jsonb_strip_nulls", "json_strip_nulls"), _strip_nulls
)
