"""Assets whose functions receive the changes of a relation: decorator, run, sensor, checks."""
