"""The assets of stream tables: keys, metadata, descriptions, freshness policies."""
