"""Equivalences that make a plan cheaper. None changes what a query means."""
