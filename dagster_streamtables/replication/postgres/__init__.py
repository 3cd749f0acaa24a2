"""PostgreSQL as a publisher: its publications, its slots, and the messages of pgoutput."""
