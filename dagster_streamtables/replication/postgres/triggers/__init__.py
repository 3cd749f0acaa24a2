"""Changes of a server's tables by triggers, for a server that does not decode its log.

Statement triggers write each changed row, as the server writes a row as text, to a log of the slot
in a schema of the server. The text names no column, so no change of a table makes its writers fail.
"""
