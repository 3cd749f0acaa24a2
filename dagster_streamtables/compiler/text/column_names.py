"""One name in the tree for ``table.column`` in the text, and the way back.

Below `lower` a column has one plain name, unique in its input. It is the table's alias and the
column's name joined by a dot; either may hold dots of its own, so those of the alias are escaped.
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
