"""Stream tables ↔ Dagster: when to refresh, and a record of what happened. Never how to refresh.

definitions   `build_definitions`: everything for a code location, in one call
alerts        telling people
automation    the sensor, and what it decides at each tick
assets        what Dagster runs
checks        asset checks, and when they run
instance      what Dagster's instance remembers
catalog       what Dagster shows of a stream table
declare       files → declarations, graph, schedules
"""
