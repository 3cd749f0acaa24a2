"""`Plan` → `Refresh`: stream tables on Spark and Delta. It does not know who called it.

lake       everything that can be done with a stream table, without an orchestrator
refresh    one refresh, from new versions to the commit and its report
checks     checks of a stored table
doctor     traces of erased commits in logs and files
observe    monitoring and control: status, history, events, suspension
compute    runs a plan on Spark
storage    writes a commit, with either engine
model      values shared by the rest of the runtime
spark      sessions, and the local server
delta      logs and files, read without Spark
errors     errors of libraries, as errors of this package

Each imports only from those below it; `checks`, `doctor` and `observe` are on one level.
"""
