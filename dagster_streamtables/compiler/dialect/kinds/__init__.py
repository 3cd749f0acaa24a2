"""Kinds and digits of the values in a query of another dialect, before it is translated."""
