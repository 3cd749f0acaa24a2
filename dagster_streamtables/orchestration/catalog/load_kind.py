"""Whether this process loads a code location to show it, or only to run some of its assets."""

from __future__ import annotations

import logging

from dagster_streamtables.dagster_private import DefinitionsLoadContext, DefinitionsLoadType

_shown_here: set[str | None] = set()
"""The code locations that this process has loaded first."""


def is_only_for_runs() -> bool:
    """Whether nobody sees what the assets of this load show.

    Dagster loads a code location anew in the process of each run, by what the first load knew. So
    does a code server if the definitions are a function (`@definitions`), and serves that one: but
    it has made the first load, too.
    """
    if not DefinitionsLoadContext.is_set():
        return False
    context = DefinitionsLoadContext.get()
    if context.load_type is DefinitionsLoadType.INITIALIZATION:
        _shown_here.add(context.code_location_name)
        return False
    return context.code_location_name not in _shown_here


def problem_level() -> int:
    """The level at which a load logs what is wrong with definitions: the first load warns, and none
    of those that Dagster makes after it, in this process or in that of a run."""
    first = (
        not DefinitionsLoadContext.is_set()
        or DefinitionsLoadContext.get().load_type is DefinitionsLoadType.INITIALIZATION
    )
    return logging.WARNING if first else logging.DEBUG


def read_from_first_load(key: str) -> str | None:
    """What the first load of the code location kept; None in the first load itself."""
    context = DefinitionsLoadContext.get()
    if context.load_type is DefinitionsLoadType.INITIALIZATION:
        return None
    return context.reconstruction_metadata.get(key)


def store_for_later_loads(key: str, text: str) -> None:
    """Let later loads of the code location know a text."""
    DefinitionsLoadContext.get().add_to_pending_reconstruction_metadata(key, text)
