"""Stream tables ↔ Dagster: decides when to refresh, and records what happened; not how to refresh.

definitions   `build_definitions`: everything for a code location, in one call
alerts        alerts from events of the Dagster instance
automation    the sensor, and its decisions at each tick
assets        assets, and their resource, executor and IO manager
checks        asset checks and their schedules
instance      reads the Dagster instance
catalog       the assets' keys, metadata, descriptions and freshness policies
declare       files → declarations, graph, schedules
"""
