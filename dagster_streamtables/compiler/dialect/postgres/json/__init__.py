"""JSON of Postgres, kept in Delta as text: one module for each thing that is done with it."""
