"""Normalized syntax tree → operator tree, clause by clause."""
