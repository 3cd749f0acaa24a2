"""Spark's own SQL tests as a judge: each of their queries becomes a stream table.

jar              the JAR with the test files, fetched once
statements       a test file → settings and statements
standard_tables  the tables that the suite gives to every file
relations        the tables and views of a file → Delta tables and views of the product
outputs          names for output columns that Delta cannot store
changes          what happens to a table in the windows
oracle           what answers beside the product
plain            plain Spark: the user's text over the rows of the tables, compared by name
follow           a query as a stream table, a recomputation by its plan, or a subscription
round            the queries that share tables, through all windows
outcome          what came of a query
report           the figures, and the findings as JSON lines
command          the command `python -m qa.spark_corpus`
"""
