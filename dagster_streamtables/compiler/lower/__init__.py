"""Normalized syntax tree → operator tree."""

from dagster_streamtables.compiler.lower.lowering import lower

__all__ = ["lower"]
