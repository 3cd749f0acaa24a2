"""Normalized syntax tree → operator tree, one module for each part of a query."""

from dagster_streamtables.compiler.lower.lowering import lower

__all__ = ["lower"]
