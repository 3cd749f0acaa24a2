"""Views: named queries, inlined before a query is compiled."""
