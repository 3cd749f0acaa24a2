"""Where in a text the nodes of its tree stand: what a message shows, underlined."""

from __future__ import annotations

from sqlglot import exp

from dagster_streamtables.compiler.text.query_text import Text
from dagster_streamtables.errors import Place


def span(node: exp.Expr) -> tuple[int, int] | None:
    """The first and last character of what is known of the node's place in the text."""
    marked = [each.meta for each in node.walk() if "start" in each.meta]
    if not marked:
        return None
    return min(meta["start"] for meta in marked), max(meta["end"] for meta in marked)


def place(node: exp.Expr, text: Text) -> Place | str:
    """The node's line in the text, underlined; or that of the nearest node that has a place."""
    here: exp.Expr | None = node
    while here is not None:
        found = span(here)
        if found:
            return text.shown(*found)
        here = here.parent
    return text.shown()


def place_of_word(word: str, text: Text) -> Place | str:
    """The first line that holds the word, underlined there; empty where there is none."""
    for token in text.tokens:
        if token.text.lower() == word.lower():
            return text.shown(token.start, token.end)
    return ""
