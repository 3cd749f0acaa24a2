"""A refusal raised where only the node is known; the caller adds the text."""

from __future__ import annotations

from sqlglot import exp

from dagster_streamtables.compiler.text.places import place
from dagster_streamtables.compiler.text.query_text import Text
from dagster_streamtables.errors import UnsupportedQuery


class Refusal(Exception):
    def __init__(self, node: exp.Expr, what: str, *, why: str, fix: str) -> None:
        super().__init__(what)
        self.node, self.what, self.why, self.fix = node, what, why, fix

    def in_text(self, text: Text) -> UnsupportedQuery:
        """The user's error, with the position in their text."""
        return UnsupportedQuery(self.what, where=place(self.node, text), why=self.why, fix=self.fix)
