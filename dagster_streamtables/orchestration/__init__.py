"""Stream tables ↔ Dagster: decides when to refresh, and records what happened; not how to refresh.

definitions     `build_definitions`: everything for a code location, in one call
drivers         what starts the refreshes: the sensor's runs, or automation conditions
code_location   finds the stream tables of an existing code location, for the command line
changes         assets whose functions receive the changes of a relation
automation      the sensor, its decisions at each tick, and its events
alerts          alerts from events of the Dagster instance
replication     the assets and checks of replicated tables
assets          assets, and their resource, executor and IO manager
checks          asset checks and their schedules
instance        reads the Dagster instance
catalog         the assets' keys, metadata, descriptions and freshness policies

Each folder imports only from those listed below it.
"""
