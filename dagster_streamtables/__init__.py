"""Stream tables: Delta tables defined by a query, kept up to date by the change of the query.

    text ──▶ compiler ──▶ Plan ──▶ runtime ──▶ Refresh ──▶ orchestration ──▶ Dagster

`compiler` turns a SELECT into a plan of how its result changes when its sources do; it needs
neither Spark nor Dagster. `runtime` runs plans on Spark and commits the result with its frontier;
it does not know who called it. `orchestration` decides when, and tells Dagster what happened;
`components` is the same in YAML.

Names are imported when they are first used, so a program that only refreshes tables never loads
Dagster, and a code location that only defines them never loads Spark.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
