"""What is followed: a stored table, or a SELECT that is maintained without being stored."""
