"""Several publications of one replication come to one rule for each table."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from dagster_streamtables import Publication, PublicationEntry, PublisherProblem
from dagster_streamtables.replication.lake.shown_table import Rule, rules_of
from dagster_streamtables.replication.model.publisher import Operation

INSERT, UPDATE, DELETE, TRUNCATE = Operation


def of_t(
    name: str, *, operations: Collection[Operation] = frozenset(Operation), **entry: Any
) -> Publication:
    """A publication of the table `s.t`."""
    entries = (PublicationEntry("s.t", **entry),)
    return Publication(name, entries, operations=frozenset(operations))


def rule(*publications: Publication, table: str = "s.t") -> Rule:
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
    found = rule(
        of_t("a", where="x > 1", operations={TRUNCATE}),
        of_t("b", where="x < 0"),
    )

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
