"""The steps of a pipe so far, as one SELECT."""

from __future__ import annotations

from dataclasses import dataclass


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

    def select(self, items: str = "*", group: str = "") -> str:
        parts = [f"SELECT {items} FROM {self.from_}"]
        parts += ["WHERE " + " AND ".join(f"({each})" for each in self.where)] if self.where else []
        parts += [f"GROUP BY {group}"] if group else []
        return "\n".join([*parts, *filter(None, (self.order, self.offset))])

    @property
    def is_plain(self) -> bool:
        return not (self.where or self.order or self.offset)

    def below(self, sql: str, *, ordered: bool = False) -> PipeQuery:
        """The query over the rows of another, which stands for this one and its name."""
        name = f" AS {self.alias}" if self.alias else ""
        return PipeQuery(f"(\n{sql}\n){name}", self.alias, ordered=ordered)

    @property
    def closed(self) -> PipeQuery:
        kept = self.ordered or bool(self.order)
        return self if self.is_plain else self.below(self.select(), ordered=kept)
