"""Timestamps ↔ versions: the persisted timeline of the millisecond clock."""
