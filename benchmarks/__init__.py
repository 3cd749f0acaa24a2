"""What a refresh costs, measured: see `python -m benchmarks.refresh --help`."""
