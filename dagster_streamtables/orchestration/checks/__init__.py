"""Asset checks and their schedules."""
