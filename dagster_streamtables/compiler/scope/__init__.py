"""Which columns a FROM clause has, what stars and names mean over it, and the fields of structs."""
