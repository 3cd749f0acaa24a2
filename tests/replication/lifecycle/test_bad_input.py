"""What a replication cannot do is an error with what to do; no row and no slot has moved then."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from dagster_streamtables import Lake
from dagster_streamtables.errors import (
    EnvironmentProblem,
    InvalidDefinition,
    RefusedOperation,
    StreamTablesError,
)
from dagster_streamtables.replication.lake.publication import PublicationEntry
from dagster_streamtables.replication.lifecycle.from_lake import FromLake
from dagster_streamtables.replication.lifecycle.from_postgres import FromPostgres
from dagster_streamtables.replication.lifecycle.replication import Replication
from dagster_streamtables.replication.lifecycle.replications import Replications
from dagster_streamtables.replication.model.errors import (
    LostPublisher,
    PublisherProblem,
    ReplicationConflict,
    TargetProblem,
)
from dagster_streamtables.runtime.errors.slots import SlotInUse
from replication.lifecycle.origins import LakeOrigin, Origin, PostgresOrigin, rows
from replication.postgres.database import Database

T = "public.t"
SECRET = "tr0ub4dor&3"


@pytest.fixture
def replications(lake: Lake) -> Replications:
    return Replications(lake)


@pytest.fixture
def shop(database: Database) -> PostgresOrigin:
    origin = PostgresOrigin(database)
    origin.create("t", {"k": "int", "v": "text"}, ["k"])
    origin.insert("t", (1, "a"))
    origin.publish("p", "t")
    return origin


def refused(
    replications: Replications, declared: Replication, kind: type[Exception], match: str
) -> str:
    """It cannot be created, so there is none afterwards; returns the error."""
    with pytest.raises(kind, match=match) as told:
        replications.create(declared)
    assert replications.list() == []
    error = told.value
    assert not isinstance(error, StreamTablesError) or error.fix
    return str(error)


def as_role(shop: PostgresOrigin, role: str) -> str:
    found = conninfo_to_dict(shop.database.address)
    found.pop("password", None)
    return make_conninfo(**{**found, "user": role})


@pytest.fixture
def guarded(shop: PostgresOrigin) -> Iterator[None]:
    with shop.database.guarded(SECRET):
        shop.database.run("GRANT SELECT ON t TO guarded")
        yield


@pytest.mark.usefixtures("guarded")
def test_a_wrong_password(
    shop: PostgresOrigin, replications: Replications, lake: Lake, monkeypatch: Any, tmp_path: Path
) -> None:
    source = FromPostgres(as_role(shop, "guarded"), ["p"], password_env="SHOP_PASSWORD")
    declared = Replication("r", source)
    monkeypatch.delenv("SHOP_PASSWORD", raising=False)
    refused(replications, declared, EnvironmentProblem, "SHOP_PASSWORD is not set")
    monkeypatch.setenv("SHOP_PASSWORD", "wrong")
    said = refused(replications, declared, PublisherProblem, "does not let the replication in")
    assert "wrong" not in said
    monkeypatch.setenv("SHOP_PASSWORD", SECRET)
    assert replications.refresh(declared).action == "COPY"

    shown = repr(replications.read("r")) + json.dumps(declared.to_json())
    files = [each for each in Path(lake.root).rglob("*") if each.is_file()]
    stored = b"".join(each.read_bytes() for each in files)
    assert files and SECRET not in shown and SECRET.encode() not in stored
    (tmp_path / "password").write_text(SECRET + "\n")
    file = replace(source, password_env=None, password_file=str(tmp_path / "password"))
    assert replications.refresh(Replication("r", file)).action == "NO_DATA"
    with pytest.raises(InvalidDefinition, match="has a password") as told:
        FromPostgres(f"postgresql://me:{SECRET}@host/shop", ["p"])
    assert SECRET not in str(told.value)


def test_a_role_without_privileges(shop: PostgresOrigin, replications: Replications) -> None:
    shop.database.run("DROP ROLE IF EXISTS poor", "CREATE ROLE poor LOGIN")
    declared = Replication("r", FromPostgres(as_role(shop, "poor"), ["p"]))
    replications.create(declared)
    with pytest.raises(PublisherProblem, match="does not allow that"):
        replications.refresh("r")
    assert shop.slots() == []


@pytest.mark.parametrize(
    ("statement", "match"),
    [
        ("DROP PUBLICATION p", "publication"),
        ("ALTER TABLE t DROP CONSTRAINT t_pkey", "have no identity"),
        ("ALTER PUBLICATION p SET TABLE t (v)", "t"),
        ("ALTER TABLE t ADD COLUMN w interval", "types without an equal"),
    ],
)
def test_what_cannot_be_published(
    shop: PostgresOrigin, replications: Replications, statement: str, match: str
) -> None:
    shop.database.run(statement)
    refused(replications, Replication("r", shop.declared("p")), PublisherProblem, match)
    assert shop.slots() == []


def test_a_filter_with_a_function_of_ones_own(shop: PostgresOrigin, tmp_path: Path) -> None:
    """PostgreSQL refuses it itself, and so does a publication of a lake."""
    shop.database.run(
        "CREATE FUNCTION mine(int) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT $1 > 1'"
    )
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="User-defined"):
        shop.publish("q", "t", where="mine(k)")
    with pytest.raises(InvalidDefinition, match="mine"):
        PublicationEntry("t", where="mine(k)")


def test_targets_that_do_not_take_what_is_published(
    origin: Origin, lake: Lake, replications: Replications
) -> None:
    origin.create("t", {"k": "int", "v": "text"}, ["k"])
    origin.insert("t", (1, "a"))
    origin.publish("p", "t")
    declared = Replication("r", origin.declared("p"))
    place = Path(lake.location("t"))
    place.mkdir(parents=True)
    (place / "notes.csv").write_text("k,v\n")
    refused(replications, declared, TargetProblem, "is no Delta table")
    (place / "notes.csv").unlink()
    write_deltalake(place, pa.table({"k": pa.array([], pa.int64())}))
    refused(replications, declared, TargetProblem, 'missing replicated column "v"')
    write_deltalake(
        place, pa.table({"k": pa.array([], pa.int64()), "v": pa.array([], pa.list_(pa.int8()))}),
        mode="overwrite", schema_mode="overwrite",
    )  # fmt: skip
    refused(replications, declared, TargetProblem, "cannot take what is published")
    write_deltalake(
        place, pa.table({"k": pa.array([], pa.int8()), "v": pa.array([], pa.string())}),
        mode="overwrite", schema_mode="overwrite",
    )  # fmt: skip
    replications.refresh(declared)
    before, at = rows(lake, "t"), replications.read("r").tables[0].position
    origin.insert("t", (2, "b"))
    origin.insert("t", (1000, "too large"))
    with pytest.raises(TargetProblem, match="does not take the value 1000"):
        replications.refresh("r")
    assert (rows(lake, "t"), replications.read("r").tables[0].position) == (before, at)


def test_a_target_is_another_table_now(
    origin: Origin, lake: Lake, replications: Replications
) -> None:
    origin.create("t", {"k": "int", "v": "text"}, ["k"])
    origin.insert("t", (1, "a"))
    origin.publish("p", "t")
    replications.refresh(Replication("r", origin.declared("p")))
    rows_ = DeltaTable(lake.location("t")).to_pyarrow_table()
    for each in Path(lake.location("t")).rglob("*"):
        each.unlink() if each.is_file() else None
    write_deltalake(lake.location("t"), rows_)
    with pytest.raises(TargetProblem, match="is not the table that was written") as told:
        replications.refresh("r")
    assert "another table was created" in told.value.why
    replications.copy("r", T)
    assert replications.check("r").equal


def test_rows_without_identity_do_not_come_to_others(
    lake: Lake, replications: Replications, tmp_path: Path
) -> None:
    origin = LakeOrigin(tmp_path / "publisher")
    origin.create("t", {"k": "int", "v": "text"}, [])
    origin.insert("t", (1, "a"), (1, "a"))
    origin.publish("p", "t")
    declared = Replication("r", origin.declared("p"))
    replications.refresh(declared)
    replications.drop("r")
    with pytest.raises(ReplicationConflict, match="has rows already"):
        replications.refresh(declared)
    assert rows(lake, "t") == Counter({(1, "a"): 2})
    replications.copy("r")
    assert rows(lake, "t") == Counter({(1, "a"): 2})


def test_a_server_that_goes_away_in_the_middle(
    shop: PostgresOrigin, lake: Lake, replications: Replications
) -> None:
    replications.refresh(Replication("r", shop.declared("p")))
    shop.insert("t", (2, "b"))
    slot = shop.database.position("r")

    def cut(step: str) -> None:
        if step == "confirm":
            address = replace(shop.declared("p"), address="postgresql://127.0.0.1:1/shop")
            # The same publisher, at an address where nobody listens any more.
            work.publisher._server = type(work.publisher._server).at(address.address)

    replications._runs.step = cut
    make = replications._runs._work
    work: Any = None

    def made(mine: Any) -> Any:
        nonlocal work
        work = make(mine)
        return work

    replications._runs._work = made  # type: ignore[method-assign]
    with pytest.raises(LostPublisher, match="cannot be reached"):
        replications.refresh("r")
    assert shop.database.position("r") == slot
    assert rows(lake, "t") == Counter([(1, "a"), (2, "b")])
    again = Replications(lake)
    assert again.refresh("r").action == "NO_DATA"
    assert rows(lake, "t") == Counter([(1, "a"), (2, "b")])
    assert shop.database.position("r") > slot


def test_a_slot_that_another_reads(
    shop: PostgresOrigin, lake: Lake, replications: Replications
) -> None:
    replications.refresh(Replication("r", shop.declared("p")))
    shop.insert("t", (2, "b"))
    slot = shop.database.position("r")
    with shop.database.reading("r"):
        with pytest.raises(SlotInUse, match="has a reader"):
            replications.refresh("r")
        assert rows(lake, "t") == Counter([(1, "a")])
    assert shop.database.position("r") == slot
    assert replications.refresh("r").action == "CHANGES"
    second = Replication("s", shop.declared("p"), slot="r")
    with pytest.raises(RefusedOperation, match='there is a slot "r" at the publisher already'):
        replications.create(second)


def test_a_lake_that_is_not_there(replications: Replications, tmp_path: Path) -> None:
    nowhere = FromLake(str(tmp_path / "nowhere"), ["p"])
    refused(replications, Replication("r", nowhere), EnvironmentProblem, "there is no folder")


def test_tables_of_two_schemas_do_not_go_to_one_target(
    tmp_path: Path, lake: Lake, replications: Replications
) -> None:
    origin = LakeOrigin(tmp_path / "publisher")
    for table in ("a.t", "b.t"):
        origin.create(table, {"k": "int"}, [])
    origin.publish("p", "a.t")
    declared = Replication("r", origin.declared("p"), schema="raw")
    replications.refresh(declared)
    origin.add("p", "b.t")
    origin.insert("b.t", (1,))
    with pytest.raises(InvalidDefinition, match="has two tables for the target"):
        replications.refresh("r")
    assert rows(lake, "raw.t") == Counter()
    replications.refresh(replace(declared, targets={"b.t": "raw.b"}))
    assert rows(lake, "raw.b") == Counter([(1,)])


def test_a_lake_is_not_its_own_subscriber(tmp_path: Path) -> None:
    origin = LakeOrigin(tmp_path / "lake")
    origin.create("t", {"k": "int", "v": "text"}, ["k"])
    origin.publish("p", "t")
    replications = Replications(origin.lake)
    itself = Replication("r", origin.declared("p"))
    refused(replications, itself, InvalidDefinition, "as its own target")
    assert replications.refresh(replace(itself, schema="copies")).action == "COPY"


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Replication("a b", FromLake("/l", ["p"])), "is no name of a replication"),
        (lambda: FromLake("/l", []), "names no publication"),
        (lambda: FromPostgres("host=x"), "names nothing to replicate"),
        (lambda: FromPostgres("host=x", ["p"], tables=["t"]), "both publications and tables"),
        (lambda: FromPostgres("host=x password=y", ["p"]), "has a password"),
        (
            lambda: FromPostgres("host=x", ["p"], password_env="A", password_file="b"),
            "in two places",
        ),
        (
            lambda: Replication("r", FromLake("/l", ["p"]), targets={"a.t": "t", "b.t": "t"}),
            "has two tables for the target",
        ),
        (lambda: Replication("r", FromLake("/l", ["p"]), on_conflict="ignore"), "on_conflict"),  # type: ignore[arg-type]
        (lambda: Replication("r", FromLake("/l", ["p"]), max_rows=0), "max_rows"),
        (lambda: Replication("r", FromLake("/l", ["p"]), targets={"t": "../x"}), "is no name"),
    ],
)
def test_declarations_that_are_wrong(make: Any, match: str) -> None:
    with pytest.raises(InvalidDefinition, match=match):
        make()


def test_a_declaration_survives_its_text() -> None:
    shop = FromPostgres("host=x", tables=["public.t"], types={"interval": "text"})
    for publisher in (shop, FromLake("/l", ["p"], origin="none")):
        declared = Replication("r", publisher, targets={"a.t": "t"}, slot="s", max_rows=7)
        assert Replication.from_json(json.loads(json.dumps(declared.to_json()))) == declared
