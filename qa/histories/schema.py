"""Columns that come, go, move, and are called otherwise; fields of structs, too."""

from __future__ import annotations

from random import Random

import pyarrow as pa
from deltalake import Field, write_deltalake
from deltalake.schema import PrimitiveType

from qa.histories.kinds import statement, step
from qa.histories.rows import some_rows
from qa.histories.world import Refused, World, column_list

_TYPES = {"v": "DECIMAL(12,2)", "x": "DOUBLE", "txt": "STRING", "d": "DATE", "g": "INT",
          "c": "STRING", "ts": "TIMESTAMP", "f": "FLOAT"}  # fmt: skip
_WEIRD = ("a b", "ü", "select", "x.y", "{n}", "q`t")


@step(1.5)
def add_column(world: World, random: Random) -> None:
    """Mostly one that the table had before, if one is gone."""
    every = {**_TYPES, "extra": "INT", "more": "STRUCT<p: INT>"}
    absent = [name for name in every if name not in world.names]
    if not absent:
        raise Refused
    name = random.choice(absent)
    place = random.choice(("", "FIRST", "AFTER id"))
    world.sql(f"ALTER TABLE {{t}} ADD COLUMN ({name} {every[name]} {place})")


statement(
    "add-weird-column",
    0.5,
    *(f"ALTER TABLE {{t}} ADD COLUMN ({column_list([name])} INT)" for name in _WEIRD),
)
# One that is called as what Spark knows of the file of a row, as ingestion often keeps it.
statement(
    "add-column-of-spark",
    0.5,
    "ALTER TABLE {t} ADD COLUMN (_metadata STRUCT<file_name: STRING>)",
    "ALTER TABLE {t} ADD COLUMN (_metadata STRUCT<file_name: STRING, file_path: STRING>)",
)


@step(1)
def add_field(world: World, random: Random) -> None:
    [struct] = [f for f in world.fields if f["name"] == "s"]
    there = {f"s.{f['name']}" for f in struct["type"]["fields"]}
    absent = [name for name in ("s.a", "s.b", "s.n", "s.z") if name not in there]
    if not absent:
        raise Refused
    name = random.choice(absent)
    type_ = {"s.a": "INT", "s.b": "STRING", "s.z": "DOUBLE"}.get(name, "DATE")
    world.sql(f"ALTER TABLE {{t}} ADD COLUMN ({name} {type_} {random.choice(('', 'FIRST'))})")


def _mapped(world: World) -> None:
    """To rename and to drop, Delta needs column mapping."""
    if world.settings.get("delta.columnMapping.mode", "none") == "none":
        world.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")


@step(1)
def drop_column(world: World, random: Random) -> None:
    _mapped(world)
    world.sql(f"ALTER TABLE {{t}} DROP COLUMN {random.choice((*_TYPES, 'bin', 'm', 'extra'))}")


@step(2)
def drop_and_add_column(world: World, random: Random) -> None:
    _mapped(world)
    name = random.choice(tuple(_TYPES))
    world.sql(f"ALTER TABLE {{t}} DROP COLUMN {name}")
    world.sql(f"ALTER TABLE {{t}} ADD COLUMN ({name} {_TYPES[name]})")


@step(2)
def drop_and_add_field(world: World, random: Random) -> None:
    _mapped(world)
    name, type_ = random.choice((("s.a", "INT"), ("s.b", "STRING"), ("s.z", "DOUBLE")))
    world.sql(f"ALTER TABLE {{t}} DROP COLUMN {name}")
    world.sql(f"ALTER TABLE {{t}} ADD COLUMN ({name} {type_})")


@step(0.5)
def drop_field(world: World, random: Random) -> None:
    _mapped(world)
    world.sql(f"ALTER TABLE {{t}} DROP COLUMN {random.choice(('s.a', 's.b', 's.n'))}")


@step(1)
def rename_column(world: World, random: Random) -> None:
    _mapped(world)
    name = random.choice(("v", "txt", "bin", "extra", "other", "c"))
    world.sql(f"ALTER TABLE {{t}} RENAME COLUMN {name} TO {random.choice(('other', name + '2'))}")


@step(1.5)
def swap_names(world: World, random: Random) -> None:
    """Two columns of one type take each other's name."""
    _mapped(world)
    one, two = random.choice((("x", "x_"), ("txt", "c"), ("s.a", "s.n")))
    last = two.rpartition(".")[2]
    if two == "x_":
        world.sql("ALTER TABLE {t} ADD COLUMN (x_ DOUBLE)")
    elif two == "s.n":
        world.sql("ALTER TABLE {t} ADD COLUMN (s.n INT)")
    prefix = "s." if "." in one else ""
    world.sql(f"ALTER TABLE {{t}} RENAME COLUMN {one} TO between")
    world.sql(f"ALTER TABLE {{t}} RENAME COLUMN {two} TO {one.rpartition('.')[2]}")
    world.sql(f"ALTER TABLE {{t}} RENAME COLUMN {prefix}between TO {last}")


@step(0.5)
def rename_field(world: World, random: Random) -> None:
    _mapped(world)
    one, two = random.choice((("a", "n"), ("n", "a"), ("b", "b2"), ("b2", "b")))
    world.sql(f"ALTER TABLE {{t}} RENAME COLUMN s.{one} TO {two}")


@step(1)
def move_column(world: World, random: Random) -> None:
    name = random.choice(("v", "id", "txt", "s.b", "s.a", "g"))
    after = "s.z" if "." in name else "AFTER d"
    place = random.choice(("FIRST", after if after.startswith("AFTER") else "AFTER z"))
    world.sql(f"ALTER TABLE {{t}} ALTER COLUMN {name} {place}")


@step(1.5)
def widen_type(world: World, random: Random) -> None:
    if world.settings.get("delta.enableTypeWidening") != "true":
        world.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    name, type_ = random.choice(
        (("small", "INT"), ("small", "BIGINT"), ("g", "BIGINT"), ("f", "DOUBLE"), ("s.a", "BIGINT"),
         ("v", "DECIMAL(20,4)"), ("d", "TIMESTAMP_NTZ"), ("small", "DOUBLE"))
    )  # fmt: skip
    world.sql(f"ALTER TABLE {{t}} ALTER COLUMN {name} TYPE {type_}")


@step(0.5)
def widen_text(world: World, random: Random) -> None:
    type_ = random.choice(("STRING", "VARCHAR(10)", "CHAR(5)"))
    world.sql(f"ALTER TABLE {{t}} ALTER COLUMN {random.choice(('c', 'txt'))} TYPE {type_}")


@step(0.5)
def column_default(world: World, random: Random) -> None:
    name, value = random.choice((("c", "'e'"), ("x", "-0.0D"), ("g", "2"), ("d", "current_date()")))
    how = random.choice((f"SET DEFAULT {value}", "DROP DEFAULT"))
    world.sql(f"ALTER TABLE {{t}} ALTER COLUMN {name} {how}")


@step(0.3)
def column_comment(world: World, random: Random) -> None:
    name = random.choice(("id", "c", "s.a"))
    world.sql(f"ALTER TABLE {{t}} ALTER COLUMN {name} COMMENT 'it''s {random.random()}'")


statement("nullable", 0.5, "ALTER TABLE {t} ALTER COLUMN id DROP NOT NULL")


@step(0.7)
def merge_with_evolution(world: World, random: Random) -> None:
    rows = world.rows(random, 2)
    with world.view(rows) as view:
        world.sql(
            f"MERGE INTO {{t}} AS t USING (SELECT *, 1 AS extra FROM {view}) AS r ON t.id = r.id "
            "WHEN NOT MATCHED THEN INSERT *",
            spark__databricks__delta__schema__autoMerge__enabled="true",
        )


@step(0.7)
def delta_rs_evolution(world: World, random: Random) -> None:
    """An append with a column more, or with fewer."""
    rows = world.rows(random, 2)
    if random.random() < 0.5:
        rows = rows.append_column("extra", pa.array([1] * rows.num_rows, pa.int32()))
    else:
        rows = rows.select([n for n in rows.column_names if n in ("id", "g", "v")])
    world.append(rows, schema_mode="merge")


@step(0.5)
def delta_rs_new_schema(world: World, random: Random) -> None:
    """An overwrite that leaves a column out."""
    gone = random.choice(("f", "bin", "txt"))
    fields = [f for f in world.fields if f["name"] != gone]
    if len(fields) == len(world.fields):
        raise Refused
    rows = some_rows(random, fields, 4)
    write_deltalake(str(world.t), rows, mode="overwrite", schema_mode="overwrite")


@step(0.5)
def delta_rs_add_column(world: World, random: Random) -> None:
    name = random.choice(("extra", "x", "v3"))
    world.table().alter.add_columns([Field(name, PrimitiveType("double"), nullable=True)])
