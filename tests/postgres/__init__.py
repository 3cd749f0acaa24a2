"""`dialect: postgres` against PostgreSQL 18: the same tables, changes and queries in both."""
