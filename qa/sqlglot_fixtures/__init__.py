"""The queries by which sqlglot tests its optimizer, as stream tables."""
