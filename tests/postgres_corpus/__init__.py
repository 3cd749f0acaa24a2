"""The harness of PostgreSQL's own SQL tests, on files of its own."""
