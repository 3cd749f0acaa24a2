"""The columns that a reader is given."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from dagster_streamtables.changes.output.column_types import plain_type
from dagster_streamtables.changes.output.envelope import Envelope
from dagster_streamtables.changes.output.names import Names, check_distinct, leading_names


@dataclass(frozen=True)
class Layout:
    relation: pa.Schema
    """The columns of the relation, in the types in which they are given out."""
    key: tuple[str, ...]
    """Those of the envelope's key."""
    values: tuple[str, ...]
    """The others."""
    moment: pa.Schema
    """The columns that say when."""
    changes: pa.Schema
    """The columns that say what happened, to which row or key."""

    @property
    def whole(self) -> pa.Schema:
        return pa.schema([*self.moment, *self.changes])


def layout_of(
    schema: pa.Schema, envelope: Envelope | None, *, progress: bool, names: str
) -> Layout:
    """The columns for a relation of this schema; refuses those of which two have one name."""
    relation = pa.schema([each.with_type(plain_type(each.type)) for each in schema])
    key = envelope.key_in(relation.names) if envelope else ()
    values = tuple(name for name in relation.names if name not in key) if envelope else ()
    leading = leading_names(names)
    changes = _of_envelope(relation, envelope, key, values) if envelope else list(relation)
    if progress:
        changes = [field.with_nullable(True) for field in changes]
    how = pa.field(leading.state, pa.string()) if envelope else pa.field(leading.diff, pa.int64())
    moment = pa.schema(_moment(leading, progress))
    prefixes = [prefix for prefix, _ in envelope.sides if prefix] if envelope else []
    added = [*moment.names, how.name, *(prefix + name for prefix in prefixes for name in values)]
    check_distinct(names, relation.names, kept=key if prefixes else relation.names, added=added)
    return Layout(relation, key, values, moment, pa.schema([how, *changes]))


def _moment(leading: Names, progress: bool) -> list[pa.Field]:
    timestamp = pa.field(leading.timestamp, pa.int64(), nullable=False)
    progressed = pa.field(leading.progressed, pa.bool_(), nullable=False)
    return [timestamp, progressed] if progress else [timestamp]


def _of_envelope(
    relation: pa.Schema, envelope: Envelope, key: tuple[str, ...], values: tuple[str, ...]
) -> list[pa.Field]:
    fields = [relation.field(name) for name in key]
    for prefix, _ in envelope.sides:
        sided = (relation.field(name).with_name(prefix + name) for name in values)
        fields += [field.with_nullable(True) for field in sided]
    return fields
