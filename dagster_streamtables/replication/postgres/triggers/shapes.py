"""Which table a row of a log is of, and which columns it had when the row was written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from dagster_streamtables.replication.postgres.catalog import CatalogColumn, CatalogTable
from dagster_streamtables.replication.postgres.forms import Forms
from dagster_streamtables.replication.postgres.messages import ServerRelation
from dagster_streamtables.replication.postgres.table_form import TableForm
from dagster_streamtables.replication.postgres.triggers.server_objects import function_of

if TYPE_CHECKING:
    from dagster_streamtables.replication.postgres.server import Connection
    from dagster_streamtables.replication.postgres.triggers.captured import CaptureState

SHAPES = """
    SELECT DISTINCT s.relation::int8, s.shape, s.columns FROM streamtables.shapes s
    JOIN streamtables.triggers t USING (relation) WHERE t.slot = %s
"""
# Those of a partition have a parent; those that a foreign key acts by are internal, too.
OTHERS = """
    SELECT DISTINCT t.name FROM streamtables.triggers t JOIN pg_trigger o ON o.tgrelid = t.relation
    WHERE t.slot = %s AND o.tgfoid <> to_regproc(%s) AND o.tgtype & 2 = 0
        AND (NOT o.tgisinternal OR o.tgfoid::regproc::text ~ '_(cascade|setnull|setdefault)_')
"""
NAMES = "SELECT relation::int8, name FROM streamtables.triggers WHERE slot = %s"


@dataclass(frozen=True)
class TriggerColumns:
    columns: tuple[CatalogColumn, ...]
    """As they come in the text of a row."""
    numbers: tuple[int, ...]
    """Theirs, which stay when a column is renamed."""

    @classmethod
    def of(cls, text: str) -> TriggerColumns:
        found = json.loads(text)
        columns = (CatalogColumn(*each) for *each, _ in found)
        return cls(tuple(columns), tuple(number for *_, number in found))


@dataclass
class TriggerShapes:
    forms: Forms
    names: Mapping[int, str]
    """By table or partition, the name that it is published by."""
    shapes: Mapping[tuple[int, int], TriggerColumns]
    others: frozenset[str]
    """Tables that have triggers of others, which fire after their changes."""
    _forms: dict[tuple[int, int], TableForm] = field(default_factory=dict)

    @classmethod
    def load(cls, connection: Connection, capture: CaptureState, forms: Forms) -> TriggerShapes:
        slot = capture.slot
        function = function_of(capture.number).as_string(connection)
        others = {name for (name,) in connection.execute(OTHERS, [slot, function])}
        names = dict(connection.execute(NAMES, [slot]).fetchall())
        now = {table.oid: table.name for table in forms.tables.values()}
        shapes = {
            (relation, shape): TriggerColumns.of(columns)
            for relation, shape, columns in connection.execute(SHAPES, [slot])
        }
        return cls(
            forms,
            {**names, **{oid: now[oid] for oid in names.keys() & now}},
            shapes,
            frozenset(others),
        )

    def fires_others(self, name: str) -> bool:
        return name in self.others

    @cached_property
    def tables(self) -> Mapping[int, CatalogTable]:
        """By table or partition, what is published, if it still is."""
        there = self.forms.tables
        return {oid: there[name] for oid, name in self.names.items() if name in there}

    def form(self, relation: int, shape: int) -> TableForm:
        """The form of the published columns. Partitions have that of their root."""
        key = relation, shape
        if key not in self._forms:
            self._forms[key] = self.forms.then(self._relation(*key))
        return self._forms[key]

    def _relation(self, relation: int, shape: int) -> ServerRelation:
        columns, table = self.shapes[relation, shape].columns, self.tables.get(relation)
        name = self.names[relation]
        if table is None:
            schema, _, plain = name.partition(".")
            return ServerRelation(relation, schema, plain, "f", columns, frozenset())
        listed = table.entries[0].columns
        places = {each.name: i for i, each in enumerate(table.columns)}
        shown = [
            each
            for each in columns
            if (not each.is_generated if listed is None else each.name in listed)
        ]
        # A column that is dropped now was before those that came since.
        order = sorted(
            enumerate(shown), key=lambda it: (places.get(it[1].name, it[0]), it[0])
        ) if relation != table.oid else [*enumerate(shown)]  # fmt: skip
        keys = {"d": table.primary_key, "i": table.identity_index}.get(
            table.setting, table.primary_key
        )
        return ServerRelation(
            table.oid,
            table.schema,
            table.table,
            table.setting,
            tuple(each for _, each in order),
            frozenset(keys or ()),
        )
