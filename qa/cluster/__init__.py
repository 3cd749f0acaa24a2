"""A Spark cluster on one machine: what refreshes cost there, and what kills do to them."""
