"""The query as text: tokens, positions, names, and Spark's functions and types."""
