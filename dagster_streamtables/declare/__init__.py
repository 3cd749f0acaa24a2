"""Files → declarations, their dependency graph and their schedules."""
