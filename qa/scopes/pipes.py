"""The same queries as pipes: steps over steps, whose columns keep the names of their tables."""

from __future__ import annotations

from collections.abc import Sequence

from qa.scopes.grammar import NAMES, Grammar, Level

Columns = list[tuple[str, str]]
"""The table and the name of each; no table if a step made the column."""


class Pipes(Grammar):
    def query(self, scopes: Sequence[Level] = (), *, one: bool = False, col: bool = False) -> str:
        if self.happens(0.25):
            return super().query(scopes, one=one, col=col)
        from_, level = self.from_clause(list(scopes), small=self.happens(0.5))
        sql = f"FROM {from_}"
        columns = [(alias, name) for alias, some in level for name in some]
        for _ in range(self.random.randint(1, 4)):
            step, columns = self._step(columns, list(scopes))
            sql += f" |> {step}"
        if one:
            sql += f" |> AGGREGATE MAX({self.name([_level(columns)])}) AS m"
        elif col:
            sql += f" |> SELECT {self.name([_level(columns)])}"
        return sql

    def _step(self, columns: Columns, around: list[Level]) -> tuple[str, Columns]:
        seen = [_level(columns), *around]
        match self.pick("where", "select", "extend", "drop", "set", "as", "aggregate", "join",
                        "union", "order"):  # fmt: skip
            case "select":
                items, made = self._items(columns, seen)
                return f"SELECT {self.pick('', '', '', 'DISTINCT ')}{', '.join(items)}", made
            case "extend":
                names = [self.pick(*NAMES) for _ in range(self.random.randint(1, 2))]
                items = [
                    f"{self.expression(seen, names[:i])} AS {name}" for i, name in enumerate(names)
                ]
                return f"EXTEND {', '.join(items)}", [*columns, *(("", name) for name in names)]
            case "drop" if columns:
                table, name = self.random.choice(columns)
                qualified = bool(table) and self.happens(0.4)
                left = [each for each in columns if not _is(each, name, table if qualified else "")]
                return f"DROP {f'{table}.{name}' if qualified else name}", left
            case "set" if columns:
                name = self.random.choice(columns)[1]
                made = [("", each[1]) if _is(each, name) else each for each in columns]
                return f"SET {name} = {self.expression(seen)}", made
            case "as":
                alias = self.pick(*NAMES)
                return f"AS {alias}", [(alias, name) for _, name in columns]
            case "aggregate":
                return self._aggregate(columns, seen)
            case "join":
                return self._join(columns, around)
            case "union":
                row = ", ".join(str(self.random.randint(1, 3)) for _ in columns)
                kind = self.pick("UNION ALL", "UNION", "EXCEPT", "INTERSECT ALL")
                return f"{kind} {self.pick(f'(SELECT {row} FROM b)', 'TABLE b', 'FROM b')}", columns
            case "order":
                limit = self.pick("", " |> LIMIT 1000")
                return f"ORDER BY {self.name(seen[:1])}, 1{limit}", columns
            case _:
                return f"WHERE {self.condition(seen)}", columns

    def _items(self, columns: Columns, seen: list[Level]) -> tuple[list[str], Columns]:
        items, made, outs = list[str](), Columns(), list[str]()
        for _ in range(self.random.randint(1, 3)):
            table = self.random.choice(columns)[0] if columns else ""
            if self.happens(0.25):
                of_table = table and self.happens(0.5)
                items.append(f"{table}.*" if of_table else "*")
                made += [each for each in columns if not of_table or each[0] == table]
                continue
            value = self.expression(seen, outs)
            items.append(value)
            made.append(_meant(value, columns))
            if self.happens(0.5) or not value.replace(".", "").isidentifier():
                outs.append(self.pick(*NAMES))
                items[-1] += f" AS {outs[-1]}"
                made[-1] = ("", outs[-1])
        return items, made

    def _aggregate(self, columns: Columns, seen: list[Level]) -> tuple[str, Columns]:
        keys, made = list[str](), Columns()
        for _ in range(self.random.randint(0, 2)):
            place = self.random.randrange(len(columns)) if columns and self.happens(0.2) else None
            key = self.name(seen[:1]) if place is None else str(place + 1)
            made.append(_meant(key, columns) if place is None else columns[place])
            if place is None and self.happens(0.3):
                made[-1] = ("", self.pick(*NAMES))
                key += f" AS {made[-1][1]}"
            keys.append(key)
        calls = list[str]()
        for _ in range(self.random.randint(0 if keys else 1, 2)):
            made.append(("", self.pick(*NAMES)))
            call = self.pick("SUM", "MAX", "MIN", "COUNT")
            calls.append(f"{call}({self.expression(seen, (), 2)}) AS {made[-1][1]}")
        group = f" GROUP BY {', '.join(keys)}" if keys else ""
        return f"AGGREGATE {', '.join(calls)}{group}", made

    def _join(self, columns: Columns, around: list[Level]) -> tuple[str, Columns]:
        more, alias, names = self.relation(around, None, [table for table, _ in columns])
        kind = self.pick("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN",
                         "LEFT SEMI JOIN", "LEFT ANTI JOIN")  # fmt: skip
        sql = self.joined(kind, more, _level(columns), (alias, names), around).strip()
        half = kind.endswith(("SEMI JOIN", "ANTI JOIN"))
        return sql, columns if half else [*columns, *((alias, name) for name in names)]


def _level(columns: Columns) -> Level:
    found = dict[str, list[str]]()
    for table, name in columns:
        found.setdefault(table, []).append(name)
    return list(found.items())


def _is(column: tuple[str, str], name: str, table: str = "") -> bool:
    return column[1].lower() == name.lower() and table in ("", column[0])


def _meant(value: str, columns: Columns) -> tuple[str, str]:
    """The column that an expression is; one without a table if it is none."""
    table, _, name = value.rpartition(".")
    found = [each for each in columns if _is(each, name, table.lower())]
    return found[0] if found else ("", name)
