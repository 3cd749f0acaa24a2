"""What rules of translation are made of, and those that dialects share."""
