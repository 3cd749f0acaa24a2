"""The 22 queries of TPC-H as stream tables, over windows of its refresh functions.

python -m tests.tpch --scale 0.01 --windows 12 [--queries 1,3,21]
"""
