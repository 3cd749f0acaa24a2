"""Random queries and random changes against an oracle: `python -m qa.fuzz`.

switches.py      the constructs, each by its name, and how often it comes
schema.py        the sources and the values of their columns
tree.py, relations.py   the tree of a query and its text in Spark SQL
forms.py         scalar functions and aggregates as typed forms
expressions.py, aggregates.py, windows.py, subqueries.py, sources.py, grammar.py   the generator
changes.py       rows, and the windows of changes that come to them
duck.py, spark.py       the two engines on which a stream table is refreshed and compared
shrink.py        a failure made small
report.py, command.py   a failure as a case of tests/compiler/cases, the summary, the command line
"""
