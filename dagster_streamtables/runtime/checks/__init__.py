"""Checks of a stored table: is it equal to its query, intact, fresh, and as defined?"""
