"""Table features that are switched on, used, and taken off again."""

from __future__ import annotations

import json
from random import Random

from qa.histories.kinds import step
from qa.histories.layout import commit
from qa.histories.world import World

_DROPPED = ("rowTracking", "deletionVectors", "typeWidening", "v2Checkpoint", "columnMapping",
            "inCommitTimestamp", "checkConstraints", "clustering", "domainMetadata",
            "vacuumProtocolCheck", "checkpointProtection", "changeDataFeed")  # fmt: skip


def _set(world: World, name: str, value: str) -> None:
    world.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('{name}' = '{value}')")


@step(2.5)
def change_feed(world: World, random: Random) -> None:
    del random
    on = world.settings.get("delta.enableChangeDataFeed") == "true"
    _set(world, "delta.enableChangeDataFeed", "false" if on else "true")


@step(1)
def delta_rs_change_feed(world: World, random: Random) -> None:
    value = random.choice(("true", "false"))
    world.table().alter.set_table_properties({"delta.enableChangeDataFeed": value})


@step(2)
def deletion_vectors(world: World, random: Random) -> None:
    del random
    on = world.settings.get("delta.enableDeletionVectors") == "true"
    _set(world, "delta.enableDeletionVectors", "false" if on else "true")


@step(1.5)
def row_tracking(world: World, random: Random) -> None:
    """Delta adds all live files again, to number their rows."""
    del random
    _set(world, "delta.enableRowTracking", "true")


@step(1)
def row_tracking_off(world: World, random: Random) -> None:
    del random
    world.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'false')")
    world.sql("ALTER TABLE {t} DROP FEATURE rowTracking")


@step(1.5)
def drop_feature(world: World, random: Random) -> None:
    there = [name for name in _DROPPED if name in world.features] or list(_DROPPED)
    history = random.choice(("", " TRUNCATE HISTORY"))
    world.sql(f"ALTER TABLE {{t}} DROP FEATURE {random.choice(there)}{history}")


@step(0.7)
def column_mapping(world: World, random: Random) -> None:
    del random
    _set(world, "delta.columnMapping.mode", "name")


@step(0.7)
def column_mapping_off(world: World, random: Random) -> None:
    """The files are written anew with the columns' own names."""
    del random
    _set(world, "delta.columnMapping.mode", "none")


@step(0.7)
def in_commit_timestamps(world: World, random: Random) -> None:
    value = random.choice(("true", "true", "false"))
    _set(world, "delta.enableInCommitTimestamps", value)


@step(0.7)
def type_widening(world: World, random: Random) -> None:
    del random
    _set(world, "delta.enableTypeWidening", "true")


@step(0.7)
def v2_checkpoints(world: World, random: Random) -> None:
    _set(world, "delta.checkpointPolicy", random.choice(("v2", "classic")))


@step(1)
def clustering(world: World, random: Random) -> None:
    columns = random.choice(("(id)", "(g, d)", "NONE"))
    world.sql(f"ALTER TABLE {{t}} CLUSTER BY {columns}")


@step(0.5)
def append_only(world: World, random: Random) -> None:
    value = random.choice(("true", "false", "false"))
    _set(world, "delta.appendOnly", value)


@step(0.5)
def property_only(world: World, random: Random) -> None:
    value = random.randrange(1000)
    world.sql(
        f"ALTER TABLE {{t}} SET TBLPROPERTIES ('delta.checkpointInterval' = '2', 'a' = '{value}')"
    )


@step(0.5)
def constraint(world: World, random: Random) -> None:
    how = random.choice(("ADD CONSTRAINT small CHECK (g < 100)", "DROP CONSTRAINT small"))
    world.sql(f"ALTER TABLE {{t}} {how}")


@step(0.5)
def delta_rs_constraint(world: World, random: Random) -> None:
    del random
    world.table().alter.add_constraint({"some": "g < 1000"})


@step(0.3)
def identity_sync(world: World, random: Random) -> None:
    del random
    world.sql("ALTER TABLE {t} ALTER COLUMN id SYNC IDENTITY")


@step(0.5)
def foreign_commit(world: World, random: Random) -> None:
    """A commit of a writer that nobody knows: with nothing in it, or with what only it needs."""
    actions = random.choice(([], [{"txn": {"appId": "somebody", "version": random.randrange(99)}}]))
    commit(world, "STREAMING UPDATE", json.loads(json.dumps(actions)))
