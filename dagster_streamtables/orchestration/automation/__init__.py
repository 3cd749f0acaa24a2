"""When Dagster refreshes: the sensor's ticks, their events, and automation conditions."""
