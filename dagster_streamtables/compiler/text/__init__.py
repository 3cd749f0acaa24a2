"""The words of a query: tokens, places, names, and what Spark understands by them."""
