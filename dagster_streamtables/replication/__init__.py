"""Tables copied from a publisher, another lake or a PostgreSQL server, and kept equal to it."""
