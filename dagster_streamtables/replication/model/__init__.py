"""Values between a publisher and the tables that its changes are applied to."""
