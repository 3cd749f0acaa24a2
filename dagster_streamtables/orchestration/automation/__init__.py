"""When to refresh: the sensor, and its decisions at each tick."""
