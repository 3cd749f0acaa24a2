"""Changes → one Delta commit of each target table, exactly once."""
