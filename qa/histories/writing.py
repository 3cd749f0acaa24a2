"""Rows that come, go, and change, by either engine."""

from __future__ import annotations

import contextlib
import threading
from random import Random

import pyarrow as pa
from deltalake import CommitProperties, WriterProperties, write_deltalake

from qa.histories.creating import insert
from qa.histories.kinds import statement, step
from qa.histories.roots import change_other
from qa.histories.rows import some_rows
from qa.histories.world import INT96, MICROS, Refused, World, column_list

_WHERE = ("g = 1", "g = 2", "id = 3", "id < 3", "g IS NULL", "id IS NULL", "d = DATE'9999-12-31'",
          "txt = 'a'", "isnan(x)", "x = 0", "id > 100", "v > 0", "true")  # fmt: skip
_RS_WHERE = ("g = 1", "g = 2", "id = 3", "id < 3", "g IS NULL", "id IS NULL", "txt = 'a'",
             "id > 100", "v > 0", "id >= 0")  # fmt: skip
_SET = ("id = id + 1", "g = g + 1", "v = v + 1", "x = -0.0D", "x = -x", "txt = concat(txt, 'a')",
        "d = DATE'0001-01-01'", "ts = TIMESTAMP'9999-12-31 23:59:59'", "s.a = 7", "s.z = -0.0D",
        "s = NULL", "c = 'b'", "v = v", "arr = array(-0.0D, NULL)", "g = NULL",
        "nt = TIMESTAMP_NTZ'1600-01-01 00:00:00'")  # fmt: skip
_RS_SET = ({"id": "id + 1"}, {"g": "g + 1"}, {"v": "v + 1"}, {"x": "-0.0"}, {"txt": "'b'"},
           {"g": "NULL"}, {"v": "v"}, {"c": "'b'"})  # fmt: skip


@step(2.5)
def insert_rows(world: World, random: Random) -> None:
    insert(world, world.rows(random))


@step(1)
def insert_some_columns(world: World, random: Random) -> None:
    rows = world.rows(random)
    few = [n for n in rows.column_names if n in ("id", "g", "v") or random.random() < 0.5]
    insert(world, rows.select(few))


@step(1)
def insert_other_timestamps(world: World, random: Random) -> None:
    """From here on Spark writes timestamps in another form."""
    world.spark_writes = random.choice((INT96, MICROS, "TIMESTAMP_MILLIS"))
    insert(world, world.rows(random))


@step(0.5)
def insert_by_other_calendar(world: World, random: Random) -> None:
    """From here on Spark writes the days of old in the other calendar."""
    world.old_calendar = not world.old_calendar
    insert(world, world.rows(random))


statement("delete-rows", 2, *(f"DELETE FROM {{t}} WHERE {where}" for where in _WHERE))


@step(2)
def update_rows(world: World, random: Random) -> None:
    chosen = random.sample(_SET, random.choice((1, 1, 2)))
    if len({each.split()[0].split(".")[0] for each in chosen}) < len(chosen):
        chosen = chosen[:1]
    world.sql(f"UPDATE {{t}} SET {', '.join(chosen)} WHERE {random.choice(_WHERE)}")


@step(2)
def merge_rows(world: World, random: Random) -> None:
    rows = world.rows(random)
    names = rows.column_names
    with world.view(rows) as view:
        on = random.choice(("t.id = r.id", "t.id <=> r.id AND t.g <=> r.g", "t.id = r.id + 1"))
        listed = ", ".join(f"r.`{name}`" for name in names)
        same = "t.v = r.v" if "v" in names else "t.id = r.id"
        matched = random.choice(("DELETE", f"UPDATE SET t.g = r.g, {same}"))
        clauses = [f"WHEN MATCHED THEN {matched}"] if random.random() < 0.8 else []
        if not clauses or random.random() < 0.7:
            clauses.append(f"WHEN NOT MATCHED THEN INSERT ({column_list(names)}) VALUES ({listed})")
        if random.random() < 0.3:
            clauses.append("WHEN NOT MATCHED BY SOURCE AND t.g = 1 THEN DELETE")
        one = f"SELECT * FROM {view} QUALIFY row_number() OVER (PARTITION BY id ORDER BY g) = 1"
        world.sql(f"MERGE INTO {{t}} AS t USING ({one}) AS r ON {on} {' '.join(clauses)}")


@step(1)
def insert_overwrite(world: World, random: Random) -> None:
    insert(world, world.rows(random, random.randrange(0, 8)), "INSERT OVERWRITE {t}")


# All files are new, hardly any row is.
statement(
    "overwrite-with-itself",
    1,
    "INSERT OVERWRITE {t} SELECT * FROM {t}",
    "INSERT OVERWRITE {t} SELECT * FROM {t} WHERE id <> 3",
)


@step(1)
def replace_where(world: World, random: Random) -> None:
    rows = world.rows(random, 3)
    with world.view(rows) as view:
        names = column_list(rows.column_names)
        world.sql(f"INSERT INTO {{t}} BY NAME REPLACE WHERE g = 1 "
                  f"SELECT {names} FROM {view} WHERE g = 1")  # fmt: skip


@step(1)
def overwrite_partitions(world: World, random: Random) -> None:
    if not world.partitions:
        raise Refused
    rows = world.rows(random)
    names = column_list(rows.column_names)
    with world.view(rows) as view:
        world.sql(
            f"INSERT OVERWRITE {{t}} ({names}) SELECT {names} FROM {view}",
            spark__sql__sources__partitionOverwriteMode="dynamic",
        )


statement("truncate", 0.5, "TRUNCATE TABLE {t}", "DELETE FROM {t}")


@step(6)
def delta_rs_append(world: World, random: Random) -> None:
    world.append(world.rows(random))


@step(1)
def delta_rs_small_groups(world: World, random: Random) -> None:
    """Several files, each of several row groups."""
    rows = world.rows(random, 6)
    world.append(rows, target_file_size=1, writer_properties=WriterProperties(
        max_row_group_size=2, write_batch_size=2))  # fmt: skip


@step(4)
def delta_rs_delete(world: World, random: Random) -> None:
    world.table().delete(random.choice((*_RS_WHERE, None)))


@step(4)
def delta_rs_update(world: World, random: Random) -> None:
    world.table().update(updates=random.choice(_RS_SET), predicate=random.choice(_RS_WHERE))


@step(4)
def delta_rs_merge(world: World, random: Random) -> None:
    rows = world.rows(random)
    on = random.choice(("t.id = r.id", "(t.id IS NOT DISTINCT FROM r.id) AND (t.g = r.g)"))
    merging = world.table().merge(rows, on, source_alias="r", target_alias="t")
    matched = random.randrange(3)
    if matched == 0:
        merging = merging.when_matched_update({"g": "r.g"})
    elif matched == 1:
        merging = merging.when_matched_delete()
    if matched == 2 or random.random() < 0.7:
        merging = merging.when_not_matched_insert_all()
    merging.execute()


@step(1)
def delta_rs_overwrite(world: World, random: Random) -> None:
    rows = world.rows(random, random.randrange(1, 8))
    write_deltalake(str(world.t), rows, mode="overwrite")


@step(1)
def delta_rs_replace_where(world: World, random: Random) -> None:
    rows = some_rows(random, [f for f in world.fields if f["name"] != "g"], 3)
    rows = rows.append_column("g", pa.array([1] * rows.num_rows, pa.int32()))
    rows = rows.select(world.names)
    write_deltalake(str(world.t), rows, mode="overwrite", predicate="g = 1")


@step(0.5)
def delta_rs_empty_append(world: World, random: Random) -> None:
    write_deltalake(str(world.t), world.rows(random, 0), mode="append",
                    commit_properties=CommitProperties(custom_metadata={"a": "b"}))  # fmt: skip


@step(1)
def both_at_once(world: World, random: Random) -> None:
    """A commit of each engine, at the same time."""
    here, there = world.rows(random), world.rows(random)

    def append() -> None:
        with contextlib.suppress(Exception):  # the other one was first, or a feature
            world.append(here)

    thread = threading.Thread(target=append)
    thread.start()
    try:
        insert(world, there)
    finally:
        thread.join()


@step(2)
def other_source(world: World, random: Random) -> None:
    """The source that the table is joined with changes, too."""
    change_other(world, random)
