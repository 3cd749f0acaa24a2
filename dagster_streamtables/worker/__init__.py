"""`streamtables worker`: one long-lived process that refreshes what is due, and reports it."""
