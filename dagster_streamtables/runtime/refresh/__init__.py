"""One refresh, from the new versions of the sources to the commit and its report."""
