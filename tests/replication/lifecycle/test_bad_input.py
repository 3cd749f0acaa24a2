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
from deltalake import write_deltalake
from psycopg.conninfo import make_conninfo

from dagster_streamtables import (
    FromLake,
    FromPostgres,
    PublicationEntry,
    Replication,
    StreamTablesError,
)
from dagster_streamtables.errors import (
    EnvironmentProblem,
    InvalidDefinition,
    LostPublisher,
    PublisherProblem,
    RefusedOperation,
    ReplicationConflict,
    TargetProblem,
)
from dagster_streamtables.runtime.errors.slot_errors import SlotInUse
from replication.lifecycle.origins import LakeOrigin, Origin, PostgresOrigin, Subscriber, published
from replication.postgres.database import Database

T = "public.t"
SECRET = "tr0ub4dor&3"


@pytest.fixture
def served(database: Database) -> PostgresOrigin:
    return published(PostgresOrigin(database))


def refused(here: Subscriber, declared: Replication, kind: type[Exception], match: str) -> str:
    """It cannot be created, so there is none afterwards; returns the error."""
    with pytest.raises(kind, match=match) as told:
        here.create(declared)
    assert here.list() == []
    error = told.value
    assert not isinstance(error, StreamTablesError) or error.fix
    return str(error)


def as_role(served: PostgresOrigin, role: str) -> str:
    return make_conninfo(served.database.address, user=role, password=None)


@pytest.fixture
def guarded(served: PostgresOrigin) -> Iterator[None]:
    with served.database.guarded(SECRET):
        served.database.run("GRANT SELECT ON t TO guarded")
        yield


@pytest.mark.usefixtures("guarded")
def test_a_wrong_password(
    served: PostgresOrigin, here: Subscriber, monkeypatch: Any, tmp_path: Path
) -> None:
    source = FromPostgres(as_role(served, "guarded"), ["p"], password_env="SHOP_PASSWORD")
    declared = Replication("r", source)
    monkeypatch.delenv("SHOP_PASSWORD", raising=False)
    refused(here, declared, EnvironmentProblem, "SHOP_PASSWORD is not set")
    monkeypatch.setenv("SHOP_PASSWORD", "wrong")
    said = refused(here, declared, PublisherProblem, "refuses the login of the replication")
    assert "wrong" not in said
    monkeypatch.setenv("SHOP_PASSWORD", SECRET)
    assert here.refresh(declared).action == "COPY"

    shown = repr(here.read("r")) + json.dumps(declared.to_json())
    files = [each for each in Path(here.lake.root).rglob("*") if each.is_file()]
    stored = b"".join(each.read_bytes() for each in files)
    assert files and SECRET not in shown and SECRET.encode() not in stored
    (tmp_path / "password").write_text(SECRET + "\n")
    file = replace(source, password_env=None, password_file=str(tmp_path / "password"))
    assert here.refresh(Replication("r", file)).action == "NO_DATA"
    with pytest.raises(InvalidDefinition, match="has a password") as told:
        FromPostgres(f"postgresql://me:{SECRET}@host/shop", ["p"])
    assert SECRET not in str(told.value)


def test_a_role_without_privileges(served: PostgresOrigin, here: Subscriber) -> None:
    served.database.run("DROP ROLE IF EXISTS poor", "CREATE ROLE poor LOGIN")
    here.create(Replication("r", FromPostgres(as_role(served, "poor"), ["p"])))
    with pytest.raises(PublisherProblem, match="does not allow that"):
        here.refresh("r")
    assert served.slots() == []


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
    served: PostgresOrigin, here: Subscriber, statement: str, match: str
) -> None:
    served.database.run(statement)
    refused(here, Replication("r", served.declared("p")), PublisherProblem, match)
    assert served.slots() == []


def test_a_filter_with_a_function_of_ones_own(served: PostgresOrigin) -> None:
    """PostgreSQL refuses it itself, and so does a publication of a lake."""
    body = "IMMUTABLE LANGUAGE sql AS 'SELECT $1 > 1'"
    served.database.run(f"CREATE FUNCTION mine(int) RETURNS boolean {body}")
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="User-defined"):
        served.publish("q", "t", where="mine(k)")
    with pytest.raises(InvalidDefinition, match="mine"):
        PublicationEntry("t", where="mine(k)")


def test_targets_that_do_not_take_what_is_published(origin: Origin, here: Subscriber) -> None:
    def overwrite(k: pa.DataType, v: pa.DataType) -> None:
        columns = pa.schema({"k": k, "v": v}).empty_table()
        write_deltalake(place, columns, mode="overwrite", schema_mode="overwrite")

    declared = Replication("r", published(origin).declared("p"))
    place = Path(here.lake.location("t"))
    place.mkdir(parents=True)
    (place / "notes.csv").write_text("k,v\n")
    refused(here, declared, TargetProblem, "is not a Delta table")
    (place / "notes.csv").unlink()
    write_deltalake(place, pa.table({"k": pa.array([], pa.int64())}))
    refused(here, declared, TargetProblem, 'missing replicated column "v"')
    overwrite(pa.int64(), pa.list_(pa.int8()))
    refused(here, declared, TargetProblem, "cannot store published values")
    overwrite(pa.int8(), pa.string())
    here.refresh(declared)
    before, at = here.rows("t"), here.read("r").tables[0].position
    origin.insert("t", (3, "c"))
    origin.insert("t", (1000, "too large"))
    with pytest.raises(TargetProblem, match="does not take the value 1000"):
        here.refresh("r")
    assert (here.rows("t"), here.read("r").tables[0].position) == (before, at)


def test_a_target_is_another_table_now(origin: Origin, here: Subscriber) -> None:
    here.refresh(Replication("r", published(origin).declared("p")))
    there = here.target("t").to_pyarrow_table()
    for each in Path(here.lake.location("t")).rglob("*"):
        each.unlink() if each.is_file() else None
    write_deltalake(here.lake.location("t"), there)
    with pytest.raises(TargetProblem, match="is not the table that was written") as told:
        here.refresh("r")
    assert "another table was created" in told.value.why
    here.copy("r", T)
    assert here.check("r").equal


def test_rows_without_identity_do_not_come_to_others(here: Subscriber, shop: LakeOrigin) -> None:
    shop.create("t", key=[])
    shop.insert("t", (1, "a"), (1, "a"))
    shop.publish("p", "t")
    declared = Replication("r", shop.declared("p"))
    here.refresh(declared)
    here.drop("r")
    with pytest.raises(ReplicationConflict, match="already has rows"):
        here.refresh(declared)
    assert here.rows("t") == Counter({(1, "a"): 2})
    here.copy("r")
    assert here.rows("t") == Counter({(1, "a"): 2})


def test_a_server_that_goes_away_in_the_middle(served: PostgresOrigin, here: Subscriber) -> None:
    here.refresh(Replication("r", served.declared("p")))
    served.insert("t", (3, "c"))
    slot = served.database.position("r")

    def cut(step: str) -> None:
        if step == "confirm":
            address = replace(served.declared("p"), address="postgresql://127.0.0.1:1/shop")
            # The same publisher, at an address where nobody listens any more.
            work.publisher._server = type(work.publisher._server).at(address.address)

    here._runs.step = cut
    make = here._runs._work
    work: Any = None

    def made(mine: Any) -> Any:
        nonlocal work
        work = make(mine)
        return work

    here._runs._work = made  # type: ignore[method-assign]
    with pytest.raises(LostPublisher, match="cannot be reached"):
        here.refresh("r")
    assert served.database.position("r") == slot
    assert here.rows("t") == Counter([(1, "a"), (2, "b"), (3, "c")])
    assert here.again().refresh("r").action == "NO_DATA"
    assert here.rows("t") == Counter([(1, "a"), (2, "b"), (3, "c")])
    assert served.database.position("r") > slot


def test_a_slot_that_another_reads(served: PostgresOrigin, here: Subscriber) -> None:
    here.refresh(Replication("r", served.declared("p")))
    served.insert("t", (3, "c"))
    slot = served.database.position("r")
    with served.database.reading("r"):
        with pytest.raises(SlotInUse, match="has a reader"):
            here.refresh("r")
        assert here.rows("t") == Counter([(1, "a"), (2, "b")])
    assert served.database.position("r") == slot
    assert here.refresh("r").action == "CHANGES"
    second = Replication("s", served.declared("p"), slot="r")
    with pytest.raises(RefusedOperation, match='slot "r" already exists at the publisher'):
        here.create(second)


def test_a_lake_that_is_not_there(here: Subscriber, tmp_path: Path) -> None:
    nowhere = FromLake(str(tmp_path / "nowhere"), ["p"])
    refused(here, Replication("r", nowhere), EnvironmentProblem, "there is no folder")


def test_tables_of_two_schemas_do_not_go_to_one_target(shop: LakeOrigin, here: Subscriber) -> None:
    for table in ("a.t", "b.t"):
        shop.create(table, {"k": "int"}, [])
    shop.publish("p", "a.t")
    declared = Replication("r", shop.declared("p"), schema="raw")
    here.refresh(declared)
    shop.add("p", "b.t")
    shop.insert("b.t", (1,))
    with pytest.raises(InvalidDefinition, match="has two tables for the target"):
        here.refresh("r")
    assert here.rows("raw.t") == Counter()
    here.refresh(replace(declared, targets={"b.t": "raw.b"}))
    assert here.rows("raw.b") == Counter([(1,)])


def test_a_lake_is_not_its_own_subscriber(shop: LakeOrigin) -> None:
    itself, here = Replication("r", published(shop).declared("p")), Subscriber(shop.lake)
    refused(here, itself, InvalidDefinition, "as its own target")
    assert here.refresh(replace(itself, schema="copies")).action == "COPY"


def of_a_lake(name: str = "r", **settings: Any) -> Replication:
    return Replication(name, FromLake("/l", ["p"]), **settings)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: of_a_lake("a b"), "is not a valid replication name"),
        (lambda: FromLake("/l", []), "names no publication"),
        (lambda: FromPostgres("host=x"), "names nothing to replicate"),
        (lambda: FromPostgres("host=x", ["p"], tables=["t"]), "both publications and tables"),
        (lambda: FromPostgres("host=x password=y", ["p"]), "has a password"),
        (lambda: FromPostgres("host=x", ["p"], password_env="A", password_file="b"), "two places"),
        (lambda: of_a_lake(targets={"a.t": "t", "b.t": "t"}), "has two tables for the target"),
        (lambda: of_a_lake(on_conflict="ignore"), "on_conflict"),
        (lambda: of_a_lake(max_rows=0), "max_rows"),
        (lambda: of_a_lake(targets={"t": "../x"}), "is not a valid"),
    ],
)
def test_declarations_that_are_wrong(make: Any, match: str) -> None:
    with pytest.raises(InvalidDefinition, match=match):
        make()


def test_a_declaration_survives_its_text() -> None:
    served = FromPostgres(
        "host=x", tables=["public.t"], types={"interval": "text"}, password_file="./secret"
    )
    for publisher in (served, FromLake("/l", ["p"], origin="none")):
        declared = Replication("r", publisher, targets={"a.t": "t"}, slot="s", max_rows=7)
        assert Replication.from_json(json.loads(json.dumps(declared.to_json()))) == declared
