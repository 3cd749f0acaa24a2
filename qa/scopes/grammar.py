"""Queries whose names are chosen at random: aliases that are columns, structs and tables, lateral
aliases, USING, NATURAL, LATERAL, outputs in GROUP BY, HAVING and ORDER BY, and queries inside."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from qa.scopes.tables import COLUMNS, FIELDS

NAMES = ["a", "b", "c", "d", "k", "x", "s", "t", "q", "y", "e", "n", "m"]
_ALIASES = ["a", "b", "c", "d", "k", "x", "s", "t", "q", "e", "f", "g"]
_JOINS = ("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", ",", "LEFT SEMI JOIN",
          "LEFT ANTI JOIN", "CROSS JOIN")  # fmt: skip
Level = list[tuple[str, list[str]]]
"""The relations of a FROM clause: the alias and the columns of each."""


class Grammar:
    """Queries of one random generator; each is new, and most are refused by Spark."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self._fields: dict[tuple[str, str], str] = {}

    def pick(self, *among: str) -> str:
        return self.random.choice(among)

    def happens(self, chance: float) -> bool:
        return self.random.random() < chance

    def query(self, scopes: Sequence[Level] = (), *, one: bool = False, col: bool = False) -> str:
        """A query inside the FROM clauses of the scopes, from the inside out.

        It returns one value with `one`, and one column with `col`.
        """
        if not scopes:
            self._fields.clear()
        sql, _ = self.select(list(scopes), one=one, col=col)
        if not scopes and self.happens(0.12):
            other, _ = self.select([])
            sql = f"{sql} {self.pick('UNION ALL', 'UNION', 'EXCEPT', 'INTERSECT')} {other}"
            sql += " ORDER BY 1 LIMIT 100" * self.happens(0.2)
        if not scopes and self.happens(0.12):
            defined, _ = self.select([])
            sql = f"WITH {self.pick('a', 'e', 'b')} AS ({defined}) {sql}"
        return sql

    def name(self, scopes: Sequence[Level], outs: Sequence[str] = ()) -> str:
        level = scopes[0] if len(scopes) == 1 or self.happens(0.8) else self.random.choice(scopes)
        if not level or self.happens(0.005):
            return self.pick(*NAMES)
        if outs and self.happens(0.3):
            return self.pick(*outs)
        alias, columns = self.random.choice(level)
        if not columns:
            return "1"
        column = self.pick(*columns)
        every = [each.lower() for _, some in level for each in some]
        qualified = self.happens(0.93 if every.count(column.lower()) > 1 else 0.4)
        name = f"{alias}.{column}" if alias and qualified else column
        fields = self._fields.get((alias, column))
        name += f".{self.pick(*fields)}" if fields else ""
        return name.upper() if self.happens(0.1) else name

    def expression(
        self, scopes: Sequence[Level], outs: Sequence[str] = (), depth: int = 0, *,
        grouped: bool = False,
    ) -> str:  # fmt: skip
        chance, deeper = self.random.random(), depth + 1
        if grouped and self.happens(0.5):
            call = self.pick("SUM", "MAX", "MIN", "COUNT")
            return f"{call}({self.expression(scopes, outs, deeper)})"
        if chance < 0.62 or depth > 2:
            return self.name(scopes, outs)
        if chance < 0.8:
            left = self.expression(scopes, outs, deeper)
            return f"{left} + {self.expression(scopes, outs, deeper)}"
        if chance < 0.85:
            return str(self.random.randint(1, 3))
        if chance < 0.9 and depth < 2 and len(scopes) < 3:
            return f"({self.query(scopes, one=True)})"
        if chance < 0.93:
            return f"named_struct('k', {self.name(scopes, outs)}).k"
        return f"COALESCE({self.name(scopes, outs)}, {self.expression(scopes, outs, deeper)})"

    def condition(
        self, scopes: Sequence[Level], outs: Sequence[str] = (), *, grouped: bool = False
    ) -> str:
        chance = self.random.random()
        if chance < 0.15 and len(scopes) < 3:
            return f"{self.pick('', 'NOT ')}EXISTS ({self.query(scopes)})"
        left = self.expression(scopes, outs, 1, grouped=grouped)
        if chance < 0.22 and len(scopes) < 3:
            return f"{left} IN ({self.query(scopes, col=True)})"
        right = self.expression(scopes, outs, 1, grouped=grouped)
        compared = f"{left} {self.pick('=', '<', '>=')} {right}"
        if self.happens(0.8):
            return compared
        other = self.condition(scopes, outs, grouped=grouped)
        return f"({compared} {self.pick('AND', 'OR')} {other})"

    def relation(
        self, scopes: list[Level], left: Level | None, used: Sequence[str]
    ) -> tuple[str, str, list[str]]:
        """Its text, its alias and its columns."""
        chance, alias = self.random.random(), self.pick(*_ALIASES)
        if chance < 0.62:
            return self._table(alias, used)
        if chance < 0.72 and left:
            sql, columns = self.select([left, *scopes])
            return f"LATERAL ({sql}) AS {alias}", alias, columns
        if chance < 0.77:
            first = self.pick("k", "x")
            return f"(VALUES (1, 2), (2, 1)) AS {alias}({first}, y)", alias, [first, "y"]
        sql, columns = self.select(scopes)
        if columns and self.happens(0.2):
            columns = self.random.sample(NAMES, min(len(columns), len(NAMES)))
            return f"({sql}) AS {alias}({', '.join(columns)})", alias, columns
        alias = "" if self.happens(0.1) else alias
        return f"({sql}){f' AS {alias}' if alias else ''}", alias, columns

    def _table(self, alias: str, used: Sequence[str]) -> tuple[str, str, list[str]]:
        table = self.pick(*COLUMNS)
        bare = table not in used and self.happens(0.5)
        alias, sql = (table, table) if bare else (alias, f"{table} AS {alias}")
        for column in COLUMNS[table]:
            self._fields[alias, column] = FIELDS.get((table, column), "")
        columns = [each for each in COLUMNS[table] if each != "q"]
        if self.happens(0.08):
            columns = self.random.sample(NAMES, len(COLUMNS[table]))
            sql = f"{table} AS {alias}({', '.join(columns)})"
        return sql, alias, columns

    def from_clause(self, scopes: list[Level], *, small: bool = False) -> tuple[str, Level]:
        sql, alias, columns = self.relation(scopes, None, ())
        level = [(alias, columns)]
        for _ in range(0 if small or self.happens(0.45) else self.random.choice((1, 1, 2))):
            more, alias, columns = self.relation(scopes, level, [name for name, _ in level])
            kind = self.pick(*_JOINS)
            if more.startswith("LATERAL"):
                kind = self.pick(",", "JOIN", "LEFT JOIN")
            sql += self.joined(kind, more, level, (alias, columns), scopes)
            if not kind.endswith(("SEMI JOIN", "ANTI JOIN")):
                level = [*level, (alias, columns)]
        if self.happens(0.08):
            rows = self.pick("q", "d.q", "array(1, 2)", "array(x, k)")
            view, made = self.pick("v", "k", "a"), self.pick("x", "k", "e")
            sql += f" LATERAL VIEW explode({rows}) {view} AS {made}"
            level = [*level, (view, [made])]
        return sql, level

    def joined(
        self, kind: str, more: str, level: Level, added: tuple[str, list[str]], scopes: list[Level]
    ) -> str:
        if kind == ",":
            return f", {more}"
        if kind == "CROSS JOIN":
            return f" CROSS JOIN {more}"
        known = {each.lower() for _, columns in level for each in columns}
        if self.happens(0.35) and not more.startswith("LATERAL"):
            if self.happens(0.25):
                return f" NATURAL {kind} {more}"
            common = [each for each in added[1] if each.lower() in known] or ["k"]
            return f" {kind} {more} USING ({self.pick(*common)})"
        return f" {kind} {more} ON {self.condition([[*level, added], *scopes])}"

    def select(
        self, scopes: list[Level], *, one: bool = False, col: bool = False
    ) -> tuple[str, list[str]]:
        """Its text, and the names of its columns as far as they are known."""
        from_, level = self.from_clause(scopes, small=bool(scopes))
        seen, grouped = [level, *scopes], self.happens(0.3) or (one and self.happens(0.7))
        items, columns, outs = list[str](), list[str](), list[str]()
        for _ in range(1 if one or col else self.random.randint(1, 3)):
            if not (grouped or one or col) and self.happens(0.2):
                star, starred = self.star(level)
                items.append(star)
                columns += starred
                continue
            value = self.expression(seen, outs, grouped=grouped and self.happens(0.7))
            items.append(value)
            columns.append(value.rpartition(".")[2])
            if self.happens(0.6) or not value.replace(".", "").isidentifier():
                columns[-1] = self.pick(*NAMES)
                items[-1] += f" AS {columns[-1]}"
                outs.append(columns[-1])
        sql = f"SELECT {'DISTINCT ' * self.happens(0.07)}{', '.join(items)} FROM {from_}"
        if scopes or self.happens(0.45):
            sql += f" WHERE {self.condition(seen, outs if self.happens(0.1) else ())}"
        if grouped and not (one and self.happens(0.6)):
            sql += self._groups(level, seen, outs, len(items))
        if not (one or col) and self.happens(0.12):
            first = self.pick("1", self.name([level], outs), self.expression([level], outs, 2))
            sql += f" ORDER BY {first}{' DESC' * self.happens(0.5)}, 1 LIMIT 1000"
        return sql, columns

    def star(self, level: Level) -> tuple[str, list[str]]:
        alias, columns = self.random.choice(level)
        if alias and self.happens(0.5):
            return f"{alias}.*", columns
        return self.pick("*", "*", "* EXCEPT (k)"), [each for _, some in level for each in some]

    def _groups(self, level: Level, seen: list[Level], outs: list[str], count: int) -> str:
        keys = [
            self.pick(
                str(self.random.randint(1, count)), *outs, *(self.name([level]) for _ in "12")
            )
            for _ in range(self.random.choice((1, 1, 2)))
        ]
        listed = ", ".join(keys)
        group = self.pick(listed, listed, listed, "ALL", f"ROLLUP ({listed})")
        having = f" HAVING {self.condition(seen, outs, grouped=True)}" if self.happens(0.4) else ""
        return f" GROUP BY {group}{having}"
