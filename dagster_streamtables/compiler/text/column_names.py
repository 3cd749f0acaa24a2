"""``table.column`` in the text ↔ one flat name in the tree.

Operators know a column by one flat name, unique in its input: the table's alias and the column's
name, joined by a dot. Both may contain dots, so those of the alias are escaped.
"""

from __future__ import annotations

import re
from collections.abc import Set

_SAME, _OF = re.compile("st_same_[0-9]+_"), re.compile("st_of_[0-9]+_")


def distinct_name(number: int, table: str, name: str) -> str:
    """The name of an output that shares its own with others of a subquery.

    Args:
        number: The number of the output.
        table: The table that its author can write before the name, if any.
        name: The shared name.

    >>> distinct_name(2, "o", "id"), distinct_name(3, "", "id")
    ('st_of_2_o.id', 'st_same_3_id')
    """
    return f"st_of_{number}_{flat(table, name)}" if table else f"st_same_{number}_{name}"


def original_name(name: str) -> str:
    """
    >>> original_name("st_same_3_id"), original_name("st_of_2_o.id"), original_name("id")
    ('id', 'id', 'id')
    """
    return unflat(_OF.sub("", name))[1] if _OF.match(name) else _SAME.sub("", name)


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
    """The table, if its alias is in the text, and the name by which an author can write a column.

    >>> in_words("b", "x", {"a", "b"}), in_words("_0", "st_of_2_b.x", {"a", "b"})
    (('b', 'x'), ('b', 'x'))
    """
    if _OF.match(name):
        table, name = unflat(_OF.sub("", name))
    return (table if table.lower() in aliases else ""), name
