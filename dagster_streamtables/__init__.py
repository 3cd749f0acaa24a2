"""Stream tables: Delta tables defined by a query, kept up to date by the change of the query.

    text ──▶ compiler ──▶ Plan ──▶ runtime ──▶ Refresh ──▶ orchestration ──▶ Dagster

`compiler` turns a SELECT into a plan of how its result changes when its sources do; it needs
neither Spark nor Dagster. `runtime` runs plans on Spark and commits the result with its frontier;
it does not know who called it. `orchestration` decides when, and tells Dagster what happened;
`components` is the same in YAML.

The names that most programs need are here; `SUBMODULES` have the others. Names are imported when
they are first used, so a program that only refreshes tables never loads Dagster, and a code
location that only defines them never loads Spark.
"""

import importlib
import importlib.util

import lazy_loader

SUBMODULES = (
    "errors",
    "reports",
    "declarations",
    "checks",
    "catalog",
    "replication",
    "metrics",
    "changes",
)
"""The modules whose `__all__` are public, too."""

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    """
    Raises:
        ImportError: A submodule has the name. Not an AttributeError, whose text
            ``from dagster_streamtables import …`` discards.
    """
    if not (name in __all__ or name.startswith("_") or _is_module(name)):
        for module in (f"{__name__}.{each}" for each in SUBMODULES):
            if name in importlib.import_module(module).__all__:
                raise ImportError(f"{name!r} is in a submodule: from {module} import {name}")
    return _load(name)


def _is_module(name: str) -> bool:
    """If so, the name is looked up before the module is imported, which must not load Dagster."""
    return importlib.util.find_spec(f"{__name__}.{name}") is not None
