"""Errors of replication, by who must act."""

from __future__ import annotations

from dagster_streamtables.errors import EnvironmentProblem, RefusedOperation, SourceProblem


class PublisherProblem(SourceProblem):
    """The publisher refuses, or what it publishes cannot be replicated: its owner must act."""


class LostPublisher(EnvironmentProblem):
    """The publisher cannot be reached; a retry is enough once it is back."""


class ReplicationConflict(RefusedOperation):
    """A change does not fit the rows of its target: change them, or skip it."""


class TargetProblem(RefusedOperation):
    """A target is no Delta table, or its columns do not take what is published."""
