"""A year of flights out of New York, replayed: the example that shows what stream tables do."""
