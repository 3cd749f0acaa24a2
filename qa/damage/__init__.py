"""Random damage to valid queries: what Spark refuses, we refuse when the table is defined.

A query that sqlglot forgives and Spark does not is a table whose refresh fails in the night. Each
case of the compiler's tests is damaged at random; where Spark's analyzer refuses the text and the
compiler takes it, there is a finding.
"""
