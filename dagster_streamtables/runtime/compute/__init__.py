"""Run a plan on Spark: versions and changes of sources in, the change of the stored table out."""
