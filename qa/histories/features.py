"""Table features that are switched on, used, and taken off again."""

from __future__ import annotations

from random import Random

from qa.histories.kinds import statement, step
from qa.histories.layout import commit
from qa.histories.world import World

_DROPPED = ("rowTracking", "deletionVectors", "typeWidening", "v2Checkpoint", "columnMapping",
            "inCommitTimestamp", "checkConstraints", "clustering", "domainMetadata",
            "vacuumProtocolCheck", "checkpointProtection", "changeDataFeed")  # fmt: skip


def _set(name: str, value: str) -> str:
    return f"ALTER TABLE {{t}} SET TBLPROPERTIES ('{name}' = '{value}')"


def _switch(world: World, name: str) -> None:
    """On, or off if it is on."""
    world.sql(_set(name, "false" if world.settings.get(name) == "true" else "true"))


@step(2.5)
def change_feed(world: World, _: Random) -> None:
    _switch(world, "delta.enableChangeDataFeed")


@step(1)
def delta_rs_change_feed(world: World, random: Random) -> None:
    value = random.choice(("true", "false"))
    world.table().alter.set_table_properties({"delta.enableChangeDataFeed": value})


@step(2)
def deletion_vectors(world: World, _: Random) -> None:
    _switch(world, "delta.enableDeletionVectors")


# Delta adds all live files again, to number their rows.
statement("row-tracking", 1.5, _set("delta.enableRowTracking", "true"))


@step(1)
def row_tracking_off(world: World, _: Random) -> None:
    world.sql(_set("delta.enableRowTracking", "false"))
    world.sql("ALTER TABLE {t} DROP FEATURE rowTracking")


@step(1.5)
def drop_feature(world: World, random: Random) -> None:
    there = [name for name in _DROPPED if name in world.features] or list(_DROPPED)
    history = random.choice(("", " TRUNCATE HISTORY"))
    world.sql(f"ALTER TABLE {{t}} DROP FEATURE {random.choice(there)}{history}")


statement("column-mapping", 0.7, _set("delta.columnMapping.mode", "name"))
# The files are written anew with the columns' own names.
statement("column-mapping-off", 0.7, _set("delta.columnMapping.mode", "none"))
statement(
    "in-commit-timestamps",
    0.7,
    *(_set("delta.enableInCommitTimestamps", value) for value in ("true", "true", "false")),
)
statement("type-widening", 0.7, _set("delta.enableTypeWidening", "true"))
statement("v2-checkpoints", 0.7, *(_set("delta.checkpointPolicy", v) for v in ("v2", "classic")))
statement(
    "clustering", 1, *(f"ALTER TABLE {{t}} CLUSTER BY {c}" for c in ("(id)", "(g, d)", "NONE"))
)
statement("append-only", 0.5, *(_set("delta.appendOnly", v) for v in ("true", "false", "false")))


@step(0.5)
def property_only(world: World, random: Random) -> None:
    value = random.randrange(1000)
    world.sql(
        f"ALTER TABLE {{t}} SET TBLPROPERTIES ('delta.checkpointInterval' = '2', 'a' = '{value}')"
    )


statement(
    "constraint",
    0.5,
    "ALTER TABLE {t} ADD CONSTRAINT small CHECK (g < 100)",
    "ALTER TABLE {t} DROP CONSTRAINT small",
)


@step(0.5)
def delta_rs_constraint(world: World, _: Random) -> None:
    world.table().alter.add_constraint({"some": "g < 1000"})


statement("identity-sync", 0.3, "ALTER TABLE {t} ALTER COLUMN id SYNC IDENTITY")


@step(0.5)
def foreign_commit(world: World, random: Random) -> None:
    """A commit of a writer that nobody knows: with nothing in it, or with what only it needs."""
    actions = random.choice(([], [{"txn": {"appId": "somebody", "version": random.randrange(99)}}]))
    commit(world, "STREAMING UPDATE", actions)
