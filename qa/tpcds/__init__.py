"""The 99 queries of TPC-DS as stream tables, over windows of sales, returns and updates.

python -m qa.tpcds --scale 0.01 --windows 4 [--queries 1,3,21]
"""
