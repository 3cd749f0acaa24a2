"""Random queries and random changes against an oracle: `python -m qa.fuzz`."""
