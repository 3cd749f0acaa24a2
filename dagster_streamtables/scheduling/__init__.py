"""What is due, and why not: decided from schedules, logs and publishers, without Dagster."""
