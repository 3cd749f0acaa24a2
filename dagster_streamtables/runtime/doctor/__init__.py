"""What an erased commit leaves behind in a table's log and files, found without Spark."""
