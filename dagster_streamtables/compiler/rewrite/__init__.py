"""Rewrites that make a plan cheaper without changing what the query means."""
