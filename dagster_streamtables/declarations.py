"""Public names: definitions in text and files, one step at a time. Without Spark and Dagster."""

from __future__ import annotations

from dagster_streamtables.declare.alter import alter_table
from dagster_streamtables.declare.analysis import Problem, expected_tables, find_problems
from dagster_streamtables.declare.sql_files import BrokenTable, declare, read_folder

__all__ = [
    "BrokenTable",
    "Problem",
    "alter_table",
    "declare",
    "expected_tables",
    "find_problems",
    "read_folder",
]
