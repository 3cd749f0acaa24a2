"""Pipe syntax → ordinary SQL: the steps, and what each knows of those before it."""
