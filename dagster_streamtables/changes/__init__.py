"""What changed in a relation between two points in time, for readers that follow it."""
