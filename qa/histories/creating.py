"""How the table comes to be: by either engine, with some features from the beginning."""

from __future__ import annotations

import contextlib
from random import Random

import pyarrow as pa
from deltalake import write_deltalake

from qa.histories.kinds import creation
from qa.histories.rows import some_rows
from qa.histories.world import World, column_list

COLUMNS = {
    "id": "BIGINT",
    "g": "INT",
    "v": "DECIMAL(12,2)",
    "x": "DOUBLE",
    "f": "FLOAT",
    "small": "SMALLINT",
    "d": "DATE",
    "ts": "TIMESTAMP",
    "nt": "TIMESTAMP_NTZ",
    "s": "STRUCT<a: INT, b: STRING, z: DOUBLE>",
    "arr": "ARRAY<DOUBLE>",
    "m": "MAP<STRING, INT>",
    "bin": "BINARY",
    "txt": "STRING",
    "c": "STRING",
}
PROPERTIES = {
    "delta.enableChangeDataFeed": ("true", 0.5),
    "delta.enableDeletionVectors": ("true", 0.3),
    "delta.enableRowTracking": ("true", 0.12),
    "delta.columnMapping.mode": ("name", 0.15),
    "delta.enableInCommitTimestamps": ("true", 0.1),
    "delta.enableTypeWidening": ("true", 0.12),
    "delta.checkpointPolicy": ("v2", 0.1),
    "delta.checkpointInterval": ("3", 0.3),
    "delta.dataSkippingNumIndexedCols": ("1", 0.1),
    "delta.enableExpiredLogCleanup": ("false", 0.1),
    "delta.randomizeFilePrefixes": ("true", 0.1),
}
"""What a table may have from the beginning, and how often it does."""
PARTITIONS = ("g", "txt", "d", "c", "ts", "nt", "small")
"""No decimals: delta-rs writes -0.01 as a text that it does not read itself."""


def some_properties(random: Random) -> dict[str, str]:
    """Few at a time, so that delta-rs can write most of the tables, too."""
    return {k: v for k, (v, often) in PROPERTIES.items() if random.random() < often * 0.7}


def clause(properties: dict[str, str]) -> str:
    named = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
    return f"TBLPROPERTIES ({named})" if named else ""


def make(
    world: World,
    random: Random,
    *,
    columns: dict[str, str] | None = None,
    properties: dict[str, str] | None = None,
    how: str = "",
) -> None:
    """Make the table on Spark, and give it some rows by either engine."""
    columns = columns or COLUMNS
    told = some_properties(random) if properties is None else properties
    listed = ", ".join(f"{name} {type_}" for name, type_ in columns.items())
    world.sql(f"CREATE TABLE {{t}} ({listed}) USING delta {how} {clause(told)}")
    fill(world, random)


def fill(world: World, random: Random) -> None:
    rows = world.rows(random, random.randrange(6, 14))
    if random.random() < 0.5:
        with contextlib.suppress(Exception):  # a feature that delta-rs does not write
            world.append(rows)
            return
    insert(world, rows)


def insert(world: World, rows: pa.Table, into: str = "INSERT INTO {t}") -> None:
    with world.view(rows) as view:
        names = column_list(rows.column_names)
        world.sql(f"{into} ({names}) SELECT {names} FROM {view}")


@creation(4)
def spark(world: World, random: Random) -> None:
    make(world, random)


@creation(2)
def spark_partitioned(world: World, random: Random) -> None:
    make(world, random, how=f"PARTITIONED BY ({random.choice(PARTITIONS)})")


@creation(1)
def spark_clustered(world: World, random: Random) -> None:
    make(world, random, how=f"CLUSTER BY ({random.choice(('id', 'g', 'v', 'g, d'))})")


@creation(3)
def delta_rs(world: World, random: Random) -> None:
    _by_delta_rs(world, random, None)


@creation(2)
def delta_rs_partitioned(world: World, random: Random) -> None:
    _by_delta_rs(world, random, [random.choice(PARTITIONS)])


def _by_delta_rs(world: World, random: Random, partitions: list[str] | None) -> None:
    rows = some_rows(random, _FIELDS, random.randrange(6, 14))
    known = ("delta.enableChangeDataFeed", "delta.checkpointInterval")
    told = {k: v for k, v in some_properties(random).items() if k in known}
    write_deltalake(str(world.t), rows, partition_by=partitions, configuration=told)


def _field(name: str, kind: object) -> dict:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}


def _struct(**parts: str) -> dict:
    return {"type": "struct", "fields": [_field(name, kind) for name, kind in parts.items()]}


_FIELDS = [
    _field("id", "long"),
    _field("g", "integer"),
    _field("v", "decimal(12,2)"),
    _field("x", "double"),
    _field("f", "float"),
    _field("small", "short"),
    _field("d", "date"),
    _field("ts", "timestamp"),
    _field("nt", "timestamp_ntz"),
    _field("s", _struct(a="integer", b="string", z="double")),
    _field("arr", {"type": "array", "elementType": "double", "containsNull": True}),
    _field("m", {"type": "map", "keyType": "string", "valueType": "integer"}),
    _field("bin", "binary"),
    _field("txt", "string"),
    _field("c", "string"),
]


@creation(1.5)
def char_and_varchar(world: World, random: Random) -> None:
    make(world, random, columns=COLUMNS | {"c": "CHAR(5)", "txt": "VARCHAR(6)"})


@creation(1)
def identity_columns(world: World, random: Random) -> None:
    always = random.choice(("ALWAYS", "BY DEFAULT"))
    columns = COLUMNS | {"id": f"BIGINT GENERATED {always} AS IDENTITY"}
    make(world, random, columns=columns)


@creation(1)
def generated_columns(world: World, random: Random) -> None:
    columns = COLUMNS | {
        "small": "SMALLINT GENERATED ALWAYS AS (CAST(g AS SMALLINT))",
        "c": "STRING GENERATED ALWAYS AS (upper(txt))",
    }
    how = random.choice(("", "PARTITIONED BY (c)", "PARTITIONED BY (small)"))
    make(world, random, columns=columns, how=how)


@creation(1)
def default_columns(world: World, random: Random) -> None:
    columns = COLUMNS | {"c": "STRING DEFAULT 'd'", "x": "DOUBLE DEFAULT -0.0D"}
    told = some_properties(random) | {"delta.feature.allowColumnDefaults": "supported"}
    make(world, random, columns=columns, properties=told)


@creation(1)
def column_mapping_by_id(world: World, random: Random) -> None:
    make(world, random, properties=some_properties(random) | {"delta.columnMapping.mode": "id"})


@creation(1)
def made_append_only(world: World, random: Random) -> None:
    make(world, random, properties=some_properties(random) | {"delta.appendOnly": "true"})


@creation(1)
def constraints(world: World, random: Random) -> None:
    make(world, random, columns=COLUMNS | {"id": "BIGINT NOT NULL"})
    world.sql("ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id >= 0)")
