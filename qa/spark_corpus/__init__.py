"""Spark's own SQL tests as a judge: each of their queries becomes a stream table."""
