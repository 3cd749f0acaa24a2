"""`Plan` → `Refresh`: stream tables on Spark and Delta. It does not know who called it.

table, report      the declaration of a table, and what one refresh of it did
lake               everything that can be done with a stream table
names, delta_log   where a table is, and what its log says, read without Spark
state              the frontier, in the commit that it describes
align              one frontier for all sources, where two of them read a third
window, decide     what came to each source, and what a refresh will do about it
capture, sources   changes and versions of sources as the relations that a plan reads
compute            plans run on Spark
storage            one commit: `delta_rs_writer` for small changes, `spark_writer` for the rest
job, refresh       all of it in order
blame              what an error of Spark's means
compare            is a table what its query says
session, server    the Spark session, and the local server that stays warm
"""
