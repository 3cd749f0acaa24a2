"""When Dagster refreshes: the sensor, its ticks, and the events that these report."""
