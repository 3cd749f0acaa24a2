"""``grouping__id``, the column that Spark has beside grouping sets, as the call that it is.

    SELECT a, grouping__id FROM t GROUP BY ROLLUP (a)
    SELECT a, grouping_id() AS grouping__id FROM t GROUP BY ROLLUP (a)

A column of a source that has the name comes first.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

_NAME = "grouping__id"


def open_grouping_ids(tree: exp.Query, columns: Collection[str]) -> None:
    """
    Args:
        tree: As parsed.
        columns: All columns of all sources.
    """
    if _NAME in {each.lower() for each in columns}:
        return
    for node in list(tree.find_all(exp.Column)):
        select = node.find_ancestor(exp.Query)
        if node.name.lower() != _NAME or node.table or not isinstance(select, exp.Select):
            continue
        clause = select.args.get("group")
        if clause is not None and clause.find(exp.GroupingSets, exp.Cube, exp.Rollup):
            call = exp.Anonymous(this="grouping_id")
            is_output = node.parent is select and node.arg_key == "expressions"
            node.replace(exp.alias_(call, node.name, quoted=True) if is_output else call)
