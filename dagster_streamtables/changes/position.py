"""`Position`: how far a subscription was read, and the resume token that says it."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dagster_streamtables.changes.clock.clock import Instant
from dagster_streamtables.changes.relation.relation import SubscriptionRelation
from dagster_streamtables.errors import RefusedOperation
from dagster_streamtables.runtime.delta.delta_log import Snapshot, TableIdentity

_FORMAT = 1
_DIGEST = 8
_LONGEST = 1 << 20
"""No token is longer when it is unpacked; one that somebody made could fill the memory."""


@dataclass(frozen=True)
class Position:
    """All changes up to a timestamp, that one included, were read.

    A reader that stores a position in the transaction that stores the rows, and resumes there,
    loses no row and gets none twice.
    """

    fingerprint: str
    """Of the relation; see `SubscriptionRelation.fingerprint`."""
    clock: str
    timestamp: int
    frontier: Mapping[str, Snapshot]
    """Source → the version that `timestamp` means."""
    snapshot: bool = False
    """Whether the snapshot at `timestamp` is still to be read."""
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    """Source → its columns that are followed: others may have been added since."""

    @classmethod
    def of(
        cls, relation: SubscriptionRelation, clock: str, at: Instant, *, snapshot: bool = False
    ) -> Position:
        versions = {name: log.snapshot for name, log in at.frontier.items()}
        columns = relation.source_columns
        return cls(relation.fingerprint, clock, at.timestamp, versions, snapshot, columns)

    @property
    def token(self) -> str:
        """The position as text of letters, digits, ``-`` and ``_``."""
        seen = {
            name: [each.table.location, each.table.id, each.version, each.commit]
            for name, each in self.frontier.items()
        }
        values = {"f": _FORMAT, "r": self.fingerprint, "c": self.clock, "t": self.timestamp}
        columns = {name: list(each) for name, each in self.columns.items()}
        values |= {"s": int(self.snapshot), "v": seen, "n": columns}
        content = zlib.compress(json.dumps(values, separators=(",", ":")).encode(), 9)
        return _encode(_digest(content) + content)


def position_of(token: str) -> Position:
    """
    Raises:
        RefusedOperation: The text is no token, or was damaged.
    """
    try:
        packed = base64.urlsafe_b64decode(token.encode() + b"=" * (-len(token) % 4))
        content = packed[_DIGEST:]
        # The same bytes have other spellings, which only a damaged token has.
        if packed[:_DIGEST] != _digest(content) or _encode(packed) != token:
            raise ValueError("its parts do not fit together")
        return _from_json(json.loads(zlib.decompressobj().decompress(content, _LONGEST)))
    except (ValueError, KeyError, TypeError, AttributeError, zlib.error) as error:
        raise RefusedOperation(
            "the resume token is damaged",
            why=f"{str(token)[:20]!r} cannot be read: {error}",
            fix="give the token of a subscription unchanged, or begin without one",
        ) from error


def _from_json(values: Mapping[str, Any]) -> Position:
    if values["f"] != _FORMAT:
        raise ValueError(f"it has the format {values['f']}, and {_FORMAT} is known here")
    frontier = {
        name: Snapshot(TableIdentity(place, id_), version, commit)
        for name, (place, id_, version, commit) in values["v"].items()
    }
    snapshot, columns = bool(values["s"]), values["n"]
    return Position(values["r"], values["c"], values["t"], frontier, snapshot, columns)


def require_same_subscription(
    position: Position, relation: SubscriptionRelation, clock: str
) -> None:
    """
    Raises:
        RefusedOperation: The token is of a subscription to something else.
    """
    require_of(position, relation.fingerprint, relation.sources, clock)


def require_of(position: Position, fingerprint: str, sources: Iterable[str], clock: str) -> None:
    """
    Raises:
        RefusedOperation: The token is of a subscription to something else.
    """
    # A token may come from anywhere, and must not have other tables looked at.
    same_sources = position.frontier.keys() == set(sources)
    if position.fingerprint != fingerprint or not same_sources:
        raise RefusedOperation(
            "the resume token is of another subscription",
            why="it was given for another relation, or the relation has other columns now",
            fix="give the token to the subscription that it came from, or begin without one",
        )
    if position.clock != clock:
        raise RefusedOperation(
            f'the resume token counts by the clock "{position.clock}", not by "{clock}"',
            why="a timestamp of one clock means nothing to another",
            fix=f'choose clock="{position.clock}", or begin without the token',
        )


def _encode(packed: bytes) -> str:
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()[:_DIGEST]
