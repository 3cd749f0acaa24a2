"""Proofs over a stored table: is it what its query says, whole, fresh, and as defined?"""
