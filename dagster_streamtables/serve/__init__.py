"""`streamtables serve`: the changes of relations over HTTP, as an ASGI application."""
