"""The example of PostgreSQL's documentation, and its row filters, step by step."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from dagster_streamtables import Lake, Replication, Replications
from dagster_streamtables.errors import ReplicationConflict
from replication.lifecycle.origins import LakeOrigin, Origin, PostgresOrigin, rows
from replication.postgres.database import Database

SUBSCRIPTIONS = {"sub1": ["pub1"], "sub2": ["pub2"], "sub3": ["pub3a", "pub3b"]}


@pytest.fixture(
    params=[
        pytest.param("lake", marks=[pytest.mark.spark, pytest.mark.long]),
        pytest.param("postgres", marks=pytest.mark.smoke("replication from PostgreSQL")),
    ]
)
def filtering(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Origin, Lake]:
    """A publisher with row filters, which Spark decides for a lake, and a subscriber."""
    if request.param == "lake":
        spark = request.getfixturevalue("spark")
        return LakeOrigin(tmp_path / "publisher"), Lake(tmp_path / "subscriber", spark=spark)
    database: Database = request.getfixturevalue("database")
    return PostgresOrigin(database), Lake(tmp_path / "subscriber")


def has(lake: Lake, **tables: dict[int, str]) -> None:
    for name, wanted in tables.items():
        assert rows(lake, name) == Counter(wanted.items()), name


def test_the_example_of_the_documentation(filtering: tuple[Origin, Lake]) -> None:
    origin, lake = filtering
    for table, key, value in (("t1", "a", "b"), ("t2", "c", "d"), ("t3", "e", "f")):
        origin.create(table, {key: "int", value: "text"}, [key])
    origin.insert("t1", (1, "one"), (2, "two"), (3, "three"))
    origin.insert("t2", (1, "A"), (2, "B"), (3, "C"))
    origin.insert("t3", (1, "i"), (2, "ii"), (3, "iii"))
    origin.publish("pub1", "t1")
    origin.publish("pub2", "t2", operations=["truncate"])
    origin.publish("pub3a", "t3", operations=["truncate"])
    origin.publish("pub3b", "t3", where="e > 5")
    replications = Replications(lake)
    for name, publications in SUBSCRIPTIONS.items():
        replications.create(Replication(name, origin.declared(*publications)))

    def refresh() -> None:
        for name in SUBSCRIPTIONS:
            replications.refresh(name)

    refresh()
    t2 = {1: "A", 2: "B", 3: "C"}
    has(lake, t1={1: "one", 2: "two", 3: "three"}, t2=t2, t3={1: "i", 2: "ii", 3: "iii"})

    origin.insert("t1", (4, "four"), (5, "five"), (6, "six"))
    origin.insert("t2", (4, "D"), (5, "E"), (6, "F"))
    origin.insert("t3", (4, "iv"), (5, "v"), (6, "vi"))
    refresh()
    t1 = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five", 6: "six"}
    has(lake, t1=t1, t2=t2, t3={1: "i", 2: "ii", 3: "iii", 6: "vi"})

    origin.update("t1", "a = 1", b="'ONE'")
    origin.delete("t1", "a = 2")
    origin.update("t2", "c = 1", d="'AA'")
    origin.delete("t2", "c = 2")
    origin.update("t3", "e = 6", f="'VI'")
    origin.update("t3", "e = 1", e="50")
    origin.update("t3", "e = 6", e="0", f="'zero'")
    origin.update("t3", "e = 3", f="'II'")
    origin.delete("t3", "e = 3")
    refresh()
    t1 = {1: "ONE", 3: "three", 4: "four", 5: "five", 6: "six"}
    has(lake, t1=t1, t2=t2, t3={1: "i", 2: "ii", 3: "iii", 50: "i"})

    origin.truncate("t1", "t2", "t3")
    refresh()
    has(lake, t1={}, t2={}, t3={})

    origin.insert("t1", (1, "x"))
    replications.refresh("sub1")
    replications.drop("sub1")
    assert origin.slots() == ["sub2", "sub3"]
    origin.insert("t1", (2, "y"))
    replications.create(Replication("sub1", origin.declared("pub1")))
    with pytest.raises(ReplicationConflict, match="a row that the target already has"):
        replications.refresh("sub1")
    has(lake, t1={1: "x"})
    [table] = replications.read("sub1").tables
    assert table.state == "new" and "already has" in table.error
    DeltaTable(lake.location("t1")).delete()
    replications.refresh("sub1")
    has(lake, t1={1: "x", 2: "y"})
    assert replications.read("sub1").errors == 0


def test_the_row_filters_of_the_documentation(filtering: tuple[Origin, Lake]) -> None:
    origin, lake = filtering
    origin.create("t1", {"a": "int", "b": "int", "c": "text"}, ["a", "c"])
    states = ("NSW", "QLD", "VIC", "ACT", "NSW", "NT", "QLD", "NSW")
    origin.insert("t1", *((a, 100 + a, state) for a, state in enumerate(states, start=2)))
    origin.publish("p1", "t1", where="a > 5 AND c = 'NSW'")
    replications = Replications(lake)
    replications.create(Replication("s1", origin.declared("p1")))

    def shows(*wanted: tuple[Any, ...]) -> None:
        replications.refresh("s1")
        assert rows(lake, "t1") == Counter(wanted)

    shows((6, 106, "NSW"), (9, 109, "NSW"))
    origin.update("t1", "a = 6", b="999")
    shows((6, 999, "NSW"), (9, 109, "NSW"))
    origin.update("t1", "a = 2", a="555")
    shows((6, 999, "NSW"), (9, 109, "NSW"), (555, 102, "NSW"))
    origin.update("t1", "a = 9", c="'VIC'")
    shows((6, 999, "NSW"), (555, 102, "NSW"))
    assert replications.check("s1").equal
