"""The 22 queries of TPC-H as stream tables, over windows of its refresh functions.

python -m qa.tpch --scale 0.01 --windows 12 [--queries 1,3,21]
"""
