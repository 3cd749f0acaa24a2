"""Replicated tables ↔ Dagster: their assets and checks, and what a refresh of them records."""
