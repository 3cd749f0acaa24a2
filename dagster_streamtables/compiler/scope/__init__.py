"""Which columns a FROM clause has, and what stars and names mean over it."""
