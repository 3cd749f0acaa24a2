"""The changed rows of one timestamp → record batches, or bytes, for a reader."""
