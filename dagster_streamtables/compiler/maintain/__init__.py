"""Strategies for applying a query's change to the stored table."""
