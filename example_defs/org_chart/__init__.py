"""The org chart of a company whose tables are in PostgreSQL: replicated, and four levels above."""
