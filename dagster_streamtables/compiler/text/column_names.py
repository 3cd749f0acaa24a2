"""``table.column`` in the text ↔ one flat name in the tree.

Operators know a column by one flat name, unique in its input: the table's alias and the column's
name, joined by a dot. Both may contain dots, so those of the alias are escaped.
"""

from __future__ import annotations


def flat(table: str, column: str) -> str:
    """
    >>> flat("o", "id"), flat("my.table", "a.b")
    ('o.id', 'my%2Etable.a.b')
    """
    return f"{table.replace('%', '%25').replace('.', '%2E')}.{column}"


def unflat(name: str) -> tuple[str, str]:
    """
    >>> unflat("my%2Etable.a.b")
    ('my.table', 'a.b')
    """
    table, _, column = name.partition(".")
    return table.replace("%2E", ".").replace("%25", "%"), column
