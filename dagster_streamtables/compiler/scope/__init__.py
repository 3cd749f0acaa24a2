"""What names mean: the columns and stars of a FROM clause, and the definitions of WITH."""
