"""Write rows and frontier in one commit, with either engine, and read the commits back."""
