"""`Plan` → `Refresh`: stream tables on Spark and Delta. It does not know who called it.

lake       everything that can be done with a stream table, without an orchestrator
refresh    one refresh, from what is new to the commit and its report
checks     proofs over a stored table
observe    what people ask: status, history, events
compute    a plan run on Spark
storage    one commit, whichever engine writes it
model      values that everything else hands on
spark      sessions, and the local server
delta      logs and files, read without Spark

Each imports only what stands below it; `observe` and `checks` stand side by side.
"""
