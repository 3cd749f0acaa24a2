"""Targets: the Delta tables that changes are applied to, read and written by either engine."""
