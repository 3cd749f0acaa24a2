"""``table.column`` in the text ↔ one flat name in the tree.

Operators know a column by one flat name, unique in its input: the table's alias and the column's
name, joined by a dot. Both may contain dots, so those of the alias are escaped.
"""

from __future__ import annotations

import re
from collections.abc import Set

SAME = "st_same_"
"""The beginning of the names of columns in a subquery that share a name."""


def repeated(name: str) -> str:
    """
    >>> repeated("st_same_2_id"), repeated("id")
    ('id', 'id')
    """
    return re.sub(f"^{SAME}[0-9]+_", "", name)


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


def in_words(table: str, name: str, aliases: Set[str]) -> tuple[str, str]:
    """The table and the name by which an author can write a column; no table if it has no alias.

    Args:
        table: The alias of the table in the tree.
        name: The column.
        aliases: Those in the text, in lower case.

    >>> in_words("b", "x", {"a", "b"}), in_words("_0", "x", {"a", "b"})
    (('b', 'x'), ('', 'x'))
    """
    return (table if table.lower() in aliases else ""), name
