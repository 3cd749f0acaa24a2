"""What PostgreSQL means by its functions, operators and clauses, in Spark SQL."""
