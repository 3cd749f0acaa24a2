"""Telling people: alerts, from the events of the instance."""
