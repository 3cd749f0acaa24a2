"""One commit: rows and frontier, whichever engine writes them, and the commits read back."""
