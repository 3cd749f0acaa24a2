"""Files → declarations, and the graph and the schedules that follow from them."""
