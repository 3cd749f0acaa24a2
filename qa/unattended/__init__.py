"""Histories of operations: what happens to a code location that nobody looks at."""
