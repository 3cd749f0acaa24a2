"""A PostgreSQL server as a publisher: snapshot, then its log or its triggers → changes."""
