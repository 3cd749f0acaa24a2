"""Changes → commits of their target, each of which has the position that it reaches."""
