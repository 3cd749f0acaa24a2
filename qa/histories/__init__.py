"""Random histories of a Delta table, and every kind of stream table over it.

A history is a table that is made in one way or another, and steps: everything that Spark and
delta-rs can do to a table and to its folder. After each step every stream table is refreshed and
compared with plain Spark, which runs the same queries over the same version.
"""
