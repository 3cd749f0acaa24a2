"""Types in Spark's spelling ↔ sqlglot's types.

A code location converts the types of thousands of columns, but few are distinct: each is parsed
once.
"""

from __future__ import annotations

from functools import lru_cache

from sqlglot import exp
from sqlglot.errors import SqlglotError

from dagster_streamtables.compiler.text.spark import DIALECT

UNKNOWN = "UNKNOWN"
"""The text of a type that is not known."""
_MOST = 4096


def type_from(text: str) -> exp.DataType:
    """A new type for a text such as ``decimal(10,2)``; UNKNOWN if the text is not a type.

    >>> type_from("array<int>").is_type("array")
    True
    """
    return _parse_type_text(text).copy()


def type_text(type_: exp.DataType) -> str:
    """The type in Spark's spelling.

    >>> type_text(type_from("array<int>"))
    'ARRAY<INT>'
    """
    plain = not any(value for name, value in type_.args.items() if name != "this")
    if plain and isinstance(type_.this, exp.DType):
        return _spell_kind(type_.this)
    return type_.sql(DIALECT)


@lru_cache(_MOST)
def _parse_type_text(text: str) -> exp.DataType:
    try:
        return exp.DataType.build(text, dialect=DIALECT)
    except SqlglotError:
        return exp.DataType.build(UNKNOWN)


@lru_cache(_MOST)
def _spell_kind(kind: exp.DType) -> str:
    return exp.DataType(this=kind).sql(DIALECT)
