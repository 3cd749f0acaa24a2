"""When to refresh: the sensor, and what it decides at each tick."""
