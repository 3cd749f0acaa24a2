"""Asset checks, and when they run."""
