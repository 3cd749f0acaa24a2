"""Owners, tags and groups are refused here exactly where Dagster's assets refuse them."""

from __future__ import annotations

import dagster as dg
import pytest

from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.runtime.model.stream_table import StreamTable

OWNERS = ["a@example.com", "team:x", "team: two words", "team:", "x", "a@b.c", "a@x.technology", ""]
KEYS = [
    "a",
    "a/b",
    "dagster/kind/sql",
    "other/kind/sql",
    "a b",
    "",
    "a" * 63,
    "a" * 64,
    "a/",
    "a=b",
]
VALUES = ["", "a.B-c_1", "a b", "a/b", "a" * 63, "a" * 64, "ä"]
GROUPS = ["a", "a_1", "a/b", "/a", "a/", "a//b", "a b", "a-b", "a.b"]
LABELS = [
    *({"owners": (owner,)} for owner in OWNERS),
    *({"tags": {key: "a"}} for key in KEYS),
    *({"tags": {"a": value}} for value in VALUES),
    *({"group": group} for group in GROUPS),
]


@pytest.mark.parametrize("labels", LABELS, ids=str)
def test_a_label_is_refused_where_dagster_refuses_it(labels: dict[str, object]) -> None:
    dagsters = {key.replace("group", "group_name"): value for key, value in labels.items()}
    try:
        dg.AssetSpec("t", **dagsters)  # type: ignore[arg-type]
        refused = False
    except dg.DagsterInvalidDefinitionError:
        refused = True
    try:
        StreamTable("t", "SELECT 1 AS a", **labels)  # type: ignore[arg-type]
        assert not refused
    except InvalidDefinition as error:
        assert refused, error
        assert error.what.startswith('stream table "t": ')
