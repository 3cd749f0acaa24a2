"""The steps of a pipe so far, as one SELECT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dagster_streamtables.compiler.text.pipes.names import STEP, Names, folded


@dataclass(frozen=True)
class PipeQuery:
    """A query whose steps so far are one SELECT, to which more may be added."""

    from_: str
    alias: str = ""
    """The name of the only table, in its own spelling; empty if there are several."""
    where: tuple[str, ...] = ()
    order: str = ""
    offset: str = ""
    ordered: bool = False
    """Whether a step below put its rows into an order."""
    several: bool = False
    """Whether FROM has several tables, each with its name."""
    loose: bool = False
    """Whether a condition names a column without its table."""
    made: tuple[tuple[str, str], ...] = ()
    """What EXTEND added to the columns of several tables: a name, and an expression over them."""
    kept: tuple[tuple[str, str], ...] = ()
    """The columns of several tables that a step below has chosen: a table's name, a column's."""
    tables: tuple[tuple[str, int], ...] = ()
    """The tables of FROM, each with the number of the last token that names one of its columns."""
    at: int = 0
    """The token where the next step begins."""
    packed: tuple[str, ...] = ()
    """Tables whose columns a step below keeps together, as a struct with the table's name: where
    their rows have become those of a subquery, `t.a` is the field `a` of the column `t`. They are
    the last columns."""

    @property
    def names(self) -> Names:
        """What names of an earlier step stand for."""
        made = {(folded(name),): f"({value})" for name, value in self.made}
        return {
            **{(folded(t), folded(column)): f"{STEP}.{column}" for t, column in self.kept},
            **made,
        }

    @property
    def stars(self) -> str:
        """All columns that the user sees."""
        seen = f"* EXCEPT ({', '.join(self.packed)})" if self.packed else "*"
        return ", ".join([seen, *(f"{value} AS {name}" for name, value in self.made)])

    @property
    def named(self) -> list[str]:
        """The tables of FROM that the next steps name, and would not find in a subquery."""
        return [] if self.alias else [name for name, last in self.tables if last >= self.at]

    def select(self, items: str = "", group: str = "") -> str:
        parts = [f"SELECT {items or self.stars} FROM {self.from_}"]
        parts += ["WHERE " + " AND ".join(f"({each})" for each in self.where)] if self.where else []
        parts += [f"GROUP BY {group}"] if group else []
        return "\n".join([*parts, *filter(None, (self.order, self.offset))])

    @property
    def is_plain(self) -> bool:
        return not (self.where or self.order or self.offset or self.made)

    def below(self, sql: str, *, ordered: bool = False) -> PipeQuery:
        """The query over the rows of another, which stands for this one and its name."""
        named = self.alias or (STEP if self.kept else "")
        from_ = f"(\n{sql}\n) AS {named}" if named else f"(\n{sql}\n)"
        tables = self.tables if self.alias else ()
        return PipeQuery(from_, self.alias, ordered=ordered, kept=self.kept, tables=tables)

    @property
    def closed(self) -> PipeQuery:
        kept = self.ordered or bool(self.order)
        return self if self.is_plain else self.over(self.stars, ordered=kept)

    def over(self, items: str, ordered: bool = False, ends: Sequence[str] = ()) -> PipeQuery:
        """The query over some of its columns, in which a later step finds its tables.

        Args:
            items: What to select of those that the user sees.
            ordered: Whether its rows are put into an order.
            ends: What follows, such as LIMIT.
        """
        structs = (f"STRUCT({name}.*) AS {name}" for name in self.named)
        sql = self.select(", ".join([items, *self.packed, *structs]))
        packed = (*self.packed, *self.named)
        below = self.below("\n".join([sql, *filter(None, ends)]), ordered=ordered)
        return replace(below, packed=packed)

    @property
    def unordered(self) -> PipeQuery:
        """The query for a step after which its order is gone."""
        if self.order and self.several and not self.offset:
            return replace(self, order="", ordered=True)
        return self.closed if self.order or self.offset else self
