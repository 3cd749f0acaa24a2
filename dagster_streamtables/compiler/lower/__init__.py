"""Normalized syntax tree → operator tree, one module for each part of a query."""

from dagster_streamtables.compiler.lower.query import lower

__all__ = ["lower"]
