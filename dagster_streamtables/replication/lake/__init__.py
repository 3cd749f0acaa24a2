"""A lake as a publisher: what it publishes, and the changes of that by the logs of its tables."""
