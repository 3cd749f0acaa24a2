"""Replications: their declarations, their state in a ledger, and what is done to them."""
