"""What Dagster shows of a stream table: keys, metadata, descriptions, freshness policies."""
