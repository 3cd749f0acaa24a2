"""Normalized syntax tree → operator tree, clause by clause."""

from dagster_streamtables.compiler.lower.lowering import lower

__all__ = ["lower"]
