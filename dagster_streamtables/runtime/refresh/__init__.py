"""One refresh, from what is new to the commit and its report."""
