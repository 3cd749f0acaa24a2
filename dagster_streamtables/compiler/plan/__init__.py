"""A compiled query: its `Plan`, the statements of a refresh, explanation, lineage, invariants."""
