"""The table's folder: replaced, restored, copied, cleaned up. Some of it no engine hears of."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from random import Random

import pyarrow.parquet as pq

from qa.histories import creating
from qa.histories.kinds import CREATIONS, step
from qa.histories.rows import some_rows
from qa.histories.world import Refused, World


@step(2)
def restore(world: World, random: Random) -> None:
    world.sql(f"RESTORE TABLE {{t}} TO VERSION AS OF {_earlier(world, random)}")


@step(1)
def delta_rs_restore(world: World, random: Random) -> None:
    world.table().restore(_earlier(world, random))


def _earlier(world: World, random: Random) -> int:
    return random.randrange(max(0, world.version - 4), world.version + 1)


@step(1)
def drop_and_make(world: World, random: Random) -> None:
    """Another table in the same place; its versions soon have the numbers of the old one."""
    world.clear()
    anew(world, random)


def anew(world: World, random: Random) -> None:
    """A table in the empty folder, whatever an engine refuses."""
    [kind] = random.choices(list(CREATIONS.values()), [each.weight for each in CREATIONS.values()])
    try:
        kind.run(world, random)
    except Exception:
        world.clear()
        creating.delta_rs(world, random)


@step(1)
def create_or_replace(world: World, random: Random) -> None:
    """The table stays, and so does its id; schema, properties and rows are others."""
    # Without AS, Delta compares what is said with a table of the same path, and refuses.
    columns = ", ".join(f"CAST(NULL AS {t}) AS {name}" for name, t in creating.COLUMNS.items())
    how = random.choice(("", "PARTITIONED BY (g)", "CLUSTER BY (id)"))
    properties = creating.clause(creating.some_properties(random))
    world.sql(
        f"CREATE OR REPLACE TABLE {{t}} USING delta {how} {properties} "
        f"AS SELECT {columns} WHERE false"
    )
    creating.fill(world, random)


@step(1)
def replace_as_select(world: World, random: Random) -> None:
    """Nearly the same rows, as a table of its own."""
    feed = random.choice(("", "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"))
    where = random.choice(("true", "g = 1 OR g IS NULL", "id > 2"))
    copy = f"{world.aside}/copy"
    world.sql(f"CREATE OR REPLACE TABLE delta.`{copy}` USING delta AS SELECT * FROM {{t}}")
    world.sql(f"CREATE OR REPLACE TABLE {{t}} USING delta {feed} "
              f"AS SELECT * FROM delta.`{copy}` WHERE {where}")  # fmt: skip


@step(1)
def shallow_clone(world: World, random: Random) -> None:
    """The table becomes a clone of what it was, whose files are elsewhere."""
    origin = world.aside / f"origin_{random.randrange(10**9)}"
    if origin.exists():
        raise Refused
    shutil.copytree(world.t, origin)
    if random.random() < 0.5:
        world.clear()
        world.sql(f"CREATE TABLE {{t}} SHALLOW CLONE delta.`{origin}`")
    else:
        _clone_over(world, origin)
    world.sql(f"DELETE FROM delta.`{origin}` WHERE g = 1")


@step(1)
def clone_again(world: World, random: Random) -> None:
    """A clone made again from its origin, which went on."""
    origins = sorted(world.aside.glob("origin_*"))
    if not origins:
        shallow_clone(world, random)
        return
    _clone_over(world, random.choice(origins))


def _clone_over(world: World, origin: Path) -> None:
    """Delta replaces only an empty table by a clone."""
    world.sql("DELETE FROM {t}")
    world.sql(f"CREATE OR REPLACE TABLE {{t}} SHALLOW CLONE delta.`{origin}`")


@step(1.5)
def convert(world: World, random: Random) -> None:
    """A folder of Parquet files, of which those of different partitions have equal names."""
    fields = [f for f in creating._FIELDS if f["name"] != "g"]
    world.clear()
    for g in (0, 1, 2):
        folder = world.t / f"g={g}"
        folder.mkdir()
        for part in range(random.choice((1, 2))):
            pq.write_table(some_rows(random, fields, 4), folder / f"part-{part}.parquet")
    world.sql("CONVERT TO DELTA parquet.`" + str(world.path) + "` PARTITIONED BY (g INT)")
    if random.random() < 0.5:
        world.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")


@step(1)
def swap_folder(world: World, random: Random) -> None:
    """Another table is moved to this place, and this one may come back later."""
    other = world.aside / "other"
    if not other.exists():
        shutil.copytree(world.t, other)
        raise Refused
    between = world.aside / "between"
    world.t.rename(between)
    other.rename(world.t)
    between.rename(other)
    world.moved()


@step(2)
def back_up(world: World, random: Random) -> None:
    """A copy of the folder as it is now."""
    copy = world.aside / f"backup_{random.randrange(3)}"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(world.t, copy, copy_function=random.choice((shutil.copy, shutil.copy2)))


@step(2.5)
def put_back(world: World, random: Random) -> None:
    """The folder as it was copied; other commits overtake those that there were."""
    copies = sorted(world.aside.glob("backup_*"))
    if not copies:
        back_up(world, random)
        return
    behind = world.version
    copy = random.choice(copies)
    world.clear()
    shutil.copytree(copy, world.t, dirs_exist_ok=True, copy_function=shutil.copy2)
    behind -= world.version
    # By as many commits as were lost, by fewer, or by more.
    for _ in range(max(0, behind + random.choice((-1, 0, 0, 1)))):
        _one_commit(world, random)


def _one_commit(world: World, random: Random) -> None:
    try:
        world.append(world.rows(random))
    except Exception:  # a feature that delta-rs does not write
        creating.insert(world, world.rows(random))


@step(2)
def clean_log(world: World, random: Random) -> None:
    """A checkpoint, and the commits before it are gone."""
    if random.random() < 0.5:
        world.table().create_checkpoint()
    log = world.t / "_delta_log"
    # Spark's checksums of local files have hidden names of their own.
    checkpoints = [int(p.name[:20]) for p in log.glob("[0-9]*.checkpoint.*")]
    if not checkpoints:
        raise Refused
    newest = max(checkpoints)
    kept = newest if random.random() < 0.5 else max(0, newest - 1)
    for path in log.iterdir():
        if path.name[:20].isdigit() and int(path.name[:20]) < kept:
            path.unlink()
    world.moved()


@step(0.5)
def no_checksums(world: World, random: Random) -> None:
    """Files that writers may leave out."""
    for path in (world.t / "_delta_log").glob("*.crc"):
        path.unlink()


@step(0.5)
def touched(world: World, _: Random) -> None:
    """The folder was copied by a tool that keeps no times: the commits have other ones now."""
    for path in sorted((world.t / "_delta_log").iterdir()):
        os.utime(path)
