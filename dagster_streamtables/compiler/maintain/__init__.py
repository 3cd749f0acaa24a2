"""How the change of a query enters the stored table: one strategy a module."""
