"""Tables that a catalog names: Unity Catalog, or any catalog of the Spark session."""
