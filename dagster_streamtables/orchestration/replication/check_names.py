"""The names of the checks of replicated tables."""

ORIGIN = "replica_equals_origin"
LAG = "replication_lag"
