"""Values that everything else hands on: the declaration, the state, the report of a refresh."""
