"""What names mean: stars and columns over a FROM clause, definitions of WITH, fields of structs."""
