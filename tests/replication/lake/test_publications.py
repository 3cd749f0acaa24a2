"""Publications are stored values: created, altered, renamed and dropped; wrong ones are refused.
Several of one replication come to one rule for each table."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dagster_streamtables import Publication, PublicationEntry, Publications
from dagster_streamtables.errors import InvalidDefinition, PublisherProblem, RefusedOperation
from dagster_streamtables.replication.lake.publication_rules import PublicationRule, rules_of
from dagster_streamtables.replication.model.replication_model import Operation

INSERT, UPDATE, DELETE, TRUNCATE = Operation


@pytest.fixture
def publications(tmp_path: Path) -> Publications:
    return Publications(str(tmp_path))


def test_a_publication_is_what_was_stored(publications: Publications, tmp_path: Path) -> None:
    entry = PublicationEntry("sales.orders", ("id", "My Column"), "amount > 5 -- all", ("id",))
    entries = entry, PublicationEntry("orders")
    made = Publication("p", entries, operations=frozenset({Operation.INSERT}))
    publications.create(made)
    schemas = publications.create(Publication("schemas", schemas=("eu.sales",)))

    again = Publications(str(tmp_path))
    assert again.read("p") == made
    assert again.read("p").operations == {Operation.INSERT}
    assert [each.table for each in made.tables] == ["sales.orders", "public.orders"]
    assert again.read("schemas") == schemas
    assert again.names() == ["p", "schemas"]


def test_tables_are_added_set_and_removed(publications: Publications) -> None:
    publications.create(Publication("p", (PublicationEntry("a"),)))

    publications.add("p", PublicationEntry("b"), PublicationEntry("s.c", where="x > 1"))
    publications.remove("p", "a", "s.c")
    assert publications.read("p").tables == (PublicationEntry("b"),)
    publications.set("p", PublicationEntry("d"))
    assert publications.read("p").tables == (PublicationEntry("public.d"),)
    publications.publish("p", ["truncate"])
    assert publications.read("p").operations == {Operation.TRUNCATE}
    publications.set("p")
    assert publications.read("p").tables == ()


def test_a_renamed_publication_is_the_same_under_its_new_name(publications: Publications) -> None:
    publications.create(Publication("p", (PublicationEntry("a"),)))
    publications.create(Publication("taken"))

    with pytest.raises(RefusedOperation, match='publication "taken" already exists'):
        publications.rename("p", "taken")
    publications.rename("p", "q")
    assert publications.names() == ["q", "taken"]
    assert publications.read("q").tables == (PublicationEntry("a"),)
    publications.create(Publication("p"))
    publications.drop("q")
    assert publications.names() == ["p", "taken"]


def test_changes_at_once_are_all_kept(tmp_path: Path) -> None:
    Publications(str(tmp_path)).create(Publication("p"))

    def add(n: int) -> None:
        mine = Publications(str(tmp_path))
        for i in range(3):
            mine.add("p", PublicationEntry(f"t{n}_{i}"))

    with ThreadPoolExecutor() as pool:
        list(pool.map(add, range(4)))

    assert len(Publications(str(tmp_path)).read("p").tables) == 12


def test_what_is_not_there_is_told(publications: Publications) -> None:
    publications.create(Publication("p", (PublicationEntry("a"),)))

    for call in (publications.read, publications.drop):
        with pytest.raises(PublisherProblem, match='there is no publication "q"'):
            call("q")
    with pytest.raises(RefusedOperation, match="already"):
        publications.create(Publication("p"))
    with pytest.raises(InvalidDefinition, match=r'does not name the table "public.b"'):
        publications.remove("p", "b")
    with pytest.raises(InvalidDefinition, match=r'names the table "public.a" twice'):
        publications.add("p", PublicationEntry("public.a"))
    for name in ("", "a/b", "..", "ä", "x" * 101):
        with pytest.raises(InvalidDefinition, match="not a valid name of a publication"):
            publications.find(name)
    with pytest.raises(InvalidDefinition, match=r'lists columns of the table "public.c"'):
        Publication("p", (PublicationEntry("c", ("x",)),), all_tables=True)
    with pytest.raises(InvalidDefinition, match='there is no operation "merge"'):
        publications.publish("p", ["merge"])


@pytest.mark.parametrize(
    ("where", "flaw"),
    [
        ("rand() > 0.5", "cannot be maintained"),
        ("id IN (SELECT id FROM other)", "it has a subquery"),
        ("EXISTS (SELECT 1)", "it has a subquery"),
        ("COUNT(*) > 1", "looks at other rows"),
        ("ROW_NUMBER() OVER (ORDER BY id) = 1", "looks at other rows"),
        ("current_date() > day", "asks for the time"),
        ("my_own(id)", "a function of Spark"),
        ("current_user() = name", "cannot be maintained"),
        ("a > 1) OR (b > 1", "not an expression"),
        ("a > 1; DROP TABLE t", "not one expression"),
        ("SELECT a", "not one expression"),
        ("-- nothing", "not one expression"),
    ],
)
def test_a_filter_that_is_no_condition_on_one_row_is_refused(where: str, flaw: str) -> None:
    with pytest.raises(InvalidDefinition, match="row filter") as told:
        PublicationEntry("t", where=where)

    assert flaw in told.value.what


@pytest.mark.parametrize(
    "where",
    ["a > 5 AND c = 'NSW'", "`My Column` IS NULL", "s.x > 1 -- )", "exists(xs, x -> x > 1)", "ok"],
)
def test_a_filter_may_be_any_condition_on_one_row(where: str) -> None:
    assert PublicationEntry("t", where=where).where == where


def test_wrong_entries_are_refused() -> None:
    with pytest.raises(InvalidDefinition, match="is not a valid table name"):
        PublicationEntry("../../etc")
    none = r'the columns of the published table "public.t" are none'
    with pytest.raises(InvalidDefinition, match=none):
        PublicationEntry("t", columns=())
    with pytest.raises(InvalidDefinition, match='name "A" twice'):
        PublicationEntry("t", columns=("A", "a"))


def of_t(
    name: str, *, operations: Collection[Operation] = frozenset(Operation), **entry: Any
) -> Publication:
    entries = (PublicationEntry("s.t", **entry),)
    return Publication(name, entries, operations=frozenset(operations))


def rule(*publications: Publication, table: str = "s.t") -> PublicationRule:
    rules, refused = rules_of(publications, ["s.t", "other.t"])
    for error in refused.values():
        raise error
    return rules[table]


def test_a_filter_holds_for_the_operations_of_its_publication() -> None:
    found = rule(
        of_t("a", where="x > 1", operations={INSERT, UPDATE}),
        of_t("b", where="x < 0", operations={INSERT, TRUNCATE}),
        of_t("c", operations={DELETE}),
    )

    assert found.operations == {INSERT, UPDATE, DELETE, TRUNCATE}
    assert found.filters[INSERT] == "(x > 1\n) OR (x < 0\n)"
    assert found.filters[UPDATE] == "x > 1"
    assert found.filters[DELETE] == ""
    assert found.copy == ""


def test_the_copy_ors_all_filters_whatever_is_published() -> None:
    found = rule(of_t("a", where="x > 1", operations={TRUNCATE}), of_t("b", where="x < 0"))

    assert found.copy == "(x > 1\n) OR (x < 0\n)"
    assert found.filters == {INSERT: "x < 0", UPDATE: "x < 0", DELETE: "x < 0"}


@pytest.mark.parametrize(
    "other", [Publication("all", all_tables=True), Publication("schema", schemas=("s",))]
)
def test_a_schema_or_all_tables_publish_every_row(other: Publication) -> None:
    found = rule(of_t("a", where="x > 1", key=("x",)), other)

    assert found.copy == "" and set(found.filters.values()) == {""}
    assert found.key == ("x",)


def test_a_schema_is_that_schema_only() -> None:
    known = ["s.t", "s.sub.t", "ss.t", "public.t"]

    assert list(rules_of([Publication("p", schemas=("s",))], known)[0]) == ["s.t"]
    assert list(rules_of([Publication("p", schemas=("s.sub",))], known)[0]) == ["s.sub.t"]
    assert len(rules_of([Publication("p", all_tables=True)], known)[0]) == 4
    assert rules_of([Publication("p")], known) == ({}, {})


def test_different_keys_are_refused() -> None:
    with pytest.raises(PublisherProblem, match=r'give the table "s.t" different keys'):
        rule(of_t("a", key=("x",)), of_t("b", key=("y",)))
    assert rule(of_t("a", key=("x",)), of_t("b")).key
