"""Publications of a lake, and the lake as a publisher: its commits → changes."""
