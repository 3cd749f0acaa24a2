"""What people ask: status, history, events, and whether a table may be refreshed."""
