"""Spark sessions, and the local server that they share."""
