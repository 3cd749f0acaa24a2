"""PostgreSQL's regression queries as a judge of `dialect: postgres`.

The queries are those that Spark took over, in the JAR of its SQL tests. The files' own statements
make the tables in plain Spark, for which they are written. Their rows go into Delta tables and into
a real PostgreSQL 18; it and the product are given the same text of each query.

The product runs on Spark, through `Lake`. DuckDB, which runs compiled plans in the tests of the
compiler, would be faster, and judge something else: what a text of PostgreSQL means is put into
Spark's functions, types and errors (``DIV``, ``DECIMAL(38, 24)``, ``CAST('division by zero' AS
INT)``), which DuckDB has not, or has with other results.
"""
