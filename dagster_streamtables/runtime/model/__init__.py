"""Values shared by the rest of the runtime: declaration, state, report of a refresh."""
