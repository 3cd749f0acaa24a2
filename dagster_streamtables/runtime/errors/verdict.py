"""Who is to act on an error, for all of the package.

An error that is not known to pass does not: one of our own defects, tried again for ever, is one
that nobody sees.
"""

from __future__ import annotations

from deltalake.exceptions import DeltaProtocolError, SchemaMismatchError

from dagster_streamtables.errors import (
    ConflictingCommit,
    FailedQuery,
    InvalidDefinition,
    LostSpark,
    LostStore,
    SourceProblem,
    StreamTablesError,
)
from dagster_streamtables.runtime.errors.translate import is_foreign

_PASSING = (ConflictingCommit, LostSpark, LostStore)
_LASTING = (FailedQuery, InvalidDefinition, SourceProblem)
_DETERMINED = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    DeltaProtocolError,
    LookupError,
    NotImplementedError,
    SchemaMismatchError,
    TypeError,
    ValueError,
)
"""Errors that come back where the same is tried again, whoever raised them."""


def may_pass(error: Exception) -> bool:
    """Whether trying again may be enough: a lost race, or a bad moment of what is below."""
    if isinstance(error, StreamTablesError):
        return isinstance(error, _PASSING)
    return is_foreign(error) and not isinstance(error, _DETERMINED)


def is_lasting(error: Exception) -> bool:
    """Whether only a person can mend it, so that it comes back until somebody does.

    What the machine lacks is neither: it does not pass in a moment, and the table is not to blame.
    """
    if isinstance(error, StreamTablesError):
        return isinstance(error, _LASTING)
    return not may_pass(error)
