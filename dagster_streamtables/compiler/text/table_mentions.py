"""The tables, aliases and definitions of WITH that a query names, in its tokens or its tree.

Mode FULL runs all SQL that Spark runs, including clauses that sqlglot cannot parse. It needs only
the table names, which `mentions_in` finds by the tokens. Their grammar is simple: a name follows
FROM, JOIN, a comma between those, or TABLE. A name before a parenthesis is a function, and a name
from WITH is no table. See ``relationPrimary`` and ``queryPrimary`` in Spark's SqlBaseParser.g4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import sqlglot
from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from dagster_streamtables.compiler.text.token_edits import keyword_of
from dagster_streamtables.errors import InvalidDefinition, underline

BEGINNINGS = frozenset({"SELECT", "FROM", "VALUES", "TABLE", "MAP", "REDUCE", "(", "WITH"})
"""The words that a query can begin with."""
SETS = {"UNION", "EXCEPT", "INTERSECT", "MINUS", "SETMINUS"}
_AFTER_TABLES = SETS | {
    "SELECT", "WHERE", "GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT",
    "OFFSET", "QUALIFY", "WINDOW", "MAP", "REDUCE", "|>",
}  # fmt: skip
_NO_ALIAS = _AFTER_TABLES | {
    "ANTI", "CROSS", "FULL", "INNER", "JOIN", "LATERAL", "LEFT", "NATURAL", "ON", "PIVOT", "RIGHT",
    "SEMI", "UNPIVOT", "USING", "INSERT",
}  # fmt: skip
_IN_FRONT_OF_ALIAS = {"TABLESAMPLE", "REPEATABLE", "WITH"}
_ASKS = {
    "ALL", "AND", "ANY", "BY", "CASE", "ELSE", "EXISTS", "EXTEND", "HAVING", "IN", "LATERAL", "NOT",
    "ON", "OR", "QUALIFY", "SELECT", "SOME", "THEN", "WHEN", "WHERE",
}  # fmt: skip
"""The words that stand before a query in parentheses, and are no functions."""
_NAME = re.compile(r"\w+")


@dataclass(frozen=True)
class Definition:
    """A name that WITH gives to a query."""

    name: str
    start: int
    stop: int
    opening: int
    """The number of the token before its query, a parenthesis."""


@dataclass(frozen=True)
class Mention:
    """A place where a query names a table or a definition of WITH."""

    name: str
    last: str
    """The last part of the name, which can qualify columns."""
    start: int
    stop: int
    """The character after the name."""
    alias_at: int | None
    """Where an alias can be added; None if the mention has one, or may have none."""
    before: str
    """The word that follows."""
    definition: Definition | None = None
    """The definition in WITH that the name refers to; None for a table."""
    table_at: int | None = None
    """The position of the word TABLE, if the mention is a query: ``TABLE t``."""


def mentions_in(sql: str, tokens: Sequence[Token]) -> tuple[list[Mention], list[Definition]]:
    """The names in FROM, in order of appearance, and the definitions in WITH."""
    reader = _MentionReader(sql, tokens)
    reader.read(_Group(0, {}), len(tokens))
    return reader.found, reader.defined


def spell_table_name(parts: Sequence[str]) -> str:
    """The name of a table as a query spells it; a path in backticks."""
    if len(parts) == 2 and parts[0].lower() == "delta":
        return f"delta.`{parts[1]}`"
    return ".".join(parts)


@dataclass
class _Group:
    """The text inside a pair of parentheses, or the whole text."""

    begin: int
    """Where a query begins: at the start, after WITH, after UNION."""
    ctes: Mapping[str, Definition]
    called: bool = False
    """The parentheses enclose the arguments of a function."""
    awaits: bool = False
    """A relation comes next."""
    in_from: bool = False
    """A comma introduces another relation."""
    selecting: bool = False
    """The next FROM belongs to a SELECT, unlike that of ``trim(BOTH 'x' FROM y)``."""


class _MentionReader:
    def __init__(self, sql: str, tokens: Sequence[Token]) -> None:
        self._sql = sql
        self._tokens = tokens
        self._words = list(map(keyword_of, tokens))
        self._close = _pairs(self._words)
        self.found: list[Mention] = []
        self.defined: list[Definition] = []

    def read(self, group: _Group, end: int) -> None:
        """Collect the mentions from the beginning of a group to its end."""
        at = group.begin
        if self._word(at) == "WITH":
            at = group.begin = self._definitions(group, at)
        while at < end:
            at = self._step(group, at)

    def _step(self, group: _Group, at: int) -> int:
        """Read one token with what belongs to it; return the position of the next."""
        word = self._word(at)
        if word == "(":
            return self._nested(group, at)
        if self._word(at - 1) == ".":
            return at + 1
        if word == "TABLE" and self._names_table(group, at):
            group.awaits = False
            following = self._mention(group, at + 1 + (self._word(at + 1) == "("), bare=True)
            if at == group.begin and not group.called and self._word(at + 1) != "(":
                self.found[-1] = replace(self.found[-1], table_at=self._tokens[at].start)
            return following
        if group.awaits:
            return self._relation(group, at)
        self._clause(group, at, word)
        return at + 1

    def _relation(self, group: _Group, at: int) -> int:
        word = self._word(at)
        if word == "LATERAL":
            return at + 1
        group.awaits = False
        if word == "VALUES":
            return self._rows(group, at + 1)
        return self._mention(group, at) if self._is_name(at) else at

    def _clause(self, group: _Group, at: int, word: str) -> None:
        if word == "FROM":
            compares = self._word(at - 1) == "DISTINCT" and self._word(at - 2) in ("IS", "NOT")
            begins = at == group.begin or group.selecting
            group.awaits = group.in_from = begins and not compares
        elif word == "JOIN":
            group.awaits = True
        elif word == ",":
            group.awaits = group.in_from
        elif word in SETS and self._word(at - 1) in ("*", "AS"):
            pass  # `SELECT * EXCEPT (column)`, and `SELECT 1 AS minus`
        elif word in _AFTER_TABLES or (word == "LATERAL" and self._word(at + 1) == "VIEW"):
            group.in_from = False
            group.selecting = word == "SELECT" or (group.selecting and word not in SETS)
            if word in SETS:
                group.begin = at + 1 + (self._word(at + 1) in ("ALL", "DISTINCT"))

    def _nested(self, group: _Group, at: int) -> int:
        relations = group.awaits and self._word(at + 1) not in BEGINNINGS - {"("}
        asks = self._word(at - 1) in _ASKS
        called = not group.awaits and self._is_name(at - 1) and not asks
        inside = _Group(at + 1, group.ctes, called, relations, relations)
        group.awaits = False
        self.read(inside, self._close[at])
        return self._close[at] + 1

    def _definitions(self, group: _Group, at: int) -> int:
        """WITH [RECURSIVE] name [(columns)] [MAX RECURSION LEVEL n] [AS] (query), …"""
        recursive = self._word(at + 1) == "RECURSIVE" and self._is_name(at + 2)
        at += 1 + recursive
        while at < len(self._tokens):
            token = self._tokens[at]
            at = self._query_after(at + 1)
            self.defined.append(Definition(token.text, token.start, token.end + 1, at))
            known = {**group.ctes, token.text.lower(): self.defined[-1]}
            within = known if recursive else group.ctes
            end = self._close.get(at, len(self._tokens))
            self.read(_Group(at + 1, within), end)
            group.ctes = known
            at = end + 1
            if self._word(at) != ",":
                break
            at += 1
        return at

    def _query_after(self, at: int) -> int:
        """The parenthesis before the query of a definition."""
        while at < len(self._tokens) and self._word(at) != "AS":
            is_query = self._word(at) == "(" and self._word(at + 1) in BEGINNINGS
            if is_query and self._word(self._close[at] + 1) not in ("AS", "MAX", "("):
                return at
            at = self._close.get(at, at) + 1
        return at + 1

    def _rows(self, group: _Group, at: int) -> int:
        """Skip the rows of VALUES in FROM: the commas between them introduce no relation."""
        while True:
            while at < len(self._tokens) and self._word(at) not in (",", ")", "AS", *_NO_ALIAS):
                at = self._nested(group, at) if self._word(at) == "(" else at + 1
            if self._word(at) != ",":
                return at
            at += 1

    def _names_table(self, group: _Group, at: int) -> bool:
        """Whether TABLE is the keyword; it may also be a column's name."""
        argument = group.called and self._word(at - 1) in (",", "=>")
        begins = at == group.begin or group.awaits or argument
        return begins and self._is_name(at + 1 + (self._word(at + 1) == "("))

    def _mention(self, group: _Group, at: int, *, bare: bool = False) -> int:
        """Read a name after FROM, JOIN, a comma or TABLE; a bare one can have no alias."""
        first = at
        is_clause = self._word(at) == "IDENTIFIER" and self._word(at + 1) == "("
        name, at = self._identifier(at) if is_clause else self._name(at)
        following = self._word(at + 1)
        if following != "(" or bare:  # otherwise it is a function
            place = None if bare else self._alias_at(at)
            start, stop = self._tokens[first].start, self._tokens[at].end + 1
            meant = group.ctes.get(name[0].lower()) if len(name) == 1 else None
            whole = spell_table_name(name)
            self.found.append(Mention(whole, name[-1], start, stop, place, following, meant))
        return at + 1

    def _name(self, at: int) -> tuple[list[str], int]:
        """The parts of a name, and the position of its last token."""
        name = [self._tokens[at].text]
        while self._word(at + 1) == "." and self._is_name(at + 2):
            at += 2
            name.append(self._tokens[at].text)
        return name, at

    def _identifier(self, at: int) -> tuple[list[str], int]:
        """IDENTIFIER('name'), which must be a literal: the name is needed before anything runs."""
        end = self._close[at + 1]
        [*inside] = self._tokens[at + 2 : end]
        if len(inside) != 1 or inside[0].token_type is not TokenType.STRING:
            start, stop = self._tokens[at].start, self._tokens[end - 1].end + 1
            raise InvalidDefinition(
                "the name of a table is computed",
                where=underline(self._sql, start, stop),
                why="a stream table's sources must be known before its query runs",
                fix="write the name itself",
            )
        return [each.text for each in sqlglot.tokenize(inside[0].text, "spark")[::2]], end

    def _alias_at(self, at: int) -> int | None:
        """The position after a name and the clauses that must precede its alias."""
        while self._word(at + 1) in _IN_FRONT_OF_ALIAS and at + 2 in self._close:
            at = self._close[at + 2]
        following = self._word(at + 1)
        named = following == "AS" or (self._is_name(at + 1) and following not in _NO_ALIAS)
        return None if named else self._tokens[at].end + 1

    def _word(self, at: int) -> str:
        return self._words[at] if 0 <= at < len(self._words) else ""

    def _is_name(self, at: int) -> bool:
        if not 0 <= at < len(self._tokens):
            return False
        quoted = self._tokens[at].token_type is TokenType.IDENTIFIER
        number = self._tokens[at].token_type is TokenType.NUMBER
        return quoted or (bool(_NAME.fullmatch(self._words[at])) and not number)


def _pairs(words: Sequence[str]) -> dict[int, int]:
    """Each opening parenthesis → its closing one, or the end of the text."""
    open_, pairs = list[int](), dict[int, int]()
    for at, word in enumerate(words):
        if word == "(":
            open_.append(at)
        elif word == ")" and open_:
            pairs[open_.pop()] = at
    return pairs | dict.fromkeys(open_, len(words))


def own_aliases(query: exp.Select) -> list[str]:
    """The names of the tables and subqueries in a SELECT's own FROM clause."""
    relations = (each for each in relations_in(query) if not is_group(each))
    return [each.alias_or_name for each in relations if each.alias_or_name]


def first_select(query: exp.Expr) -> exp.Expr:
    """The SELECT that names the columns of a query."""
    while isinstance(query, exp.SetOperation | exp.Subquery):
        query = query.this
    return query


def relations_in(query: exp.Select) -> list[exp.Expr]:
    """The relations of a FROM clause, in order; after one in parentheses, those in it."""
    clause = query.args.get("from_")
    todo: list[exp.Expr] = [clause.this] if clause is not None else []
    todo += [*(query.args.get("joins") or []), *(query.args.get("laterals") or [])]
    found = list[exp.Expr]()
    while todo:
        relation = todo.pop(0)
        if isinstance(relation, exp.Join):
            relation = relation.this
        found.append(relation)
        inside = [relation.this] if is_group(relation) else []
        after = (relation.args.get(each) or [] for each in ("joins", "laterals"))
        todo[:0] = [*inside, *chain(*after)]
    return found


def is_group(relation: exp.Expr) -> bool:
    """Whether it is a table or join in parentheses, whose aliases stay visible outside."""
    inner = relation.this if isinstance(relation, exp.Subquery) else None
    derived = isinstance(inner, exp.Subquery) and bool(inner.alias or inner.args.get("joins"))
    return derived or isinstance(inner, exp.Table)


def free_tables(node: exp.Expr) -> set[str]:
    """The tables that an expression or query mentions but does not define."""
    found: set[str] = set()
    todo = [node]
    while todo:
        here = todo.pop()
        if isinstance(here, exp.Column):
            found |= {here.table} - {""}
        if isinstance(here, exp.Select):
            inside = {table for each in here.iter_expressions() for table in free_tables(each)}
            found |= inside - set(own_aliases(here))
        else:
            todo += here.iter_expressions()
    return found


def own_columns(query: exp.Select) -> Iterator[exp.Column]:
    """Every mention of a column of the SELECT's own tables, including mentions in subqueries."""
    own = set(own_aliases(query))
    for each in query.find_all(exp.Column):
        if each.table in own and _brought_by(each) is query:
            yield each


def _brought_by(mention: exp.Column) -> exp.Expr | None:
    """The innermost enclosing SELECT that defines the column's table."""
    here = mention.find_ancestor(exp.Select)
    while here is not None and mention.table not in own_aliases(here):
        here = here.find_ancestor(exp.Select)
    return here


def tables_before_pivot(tree: exp.Expr) -> frozenset[str]:
    """The tables that a PIVOT or UNPIVOT without an alias follows, in lower case.

    They qualify none of the columns that it makes.
    """
    relations = tree.find_all(exp.Table, exp.Subquery)
    pivots = ((each, each.args.get("pivots") or []) for each in relations)
    named = (each for each, found in pivots if found and not found[-1].alias)
    return frozenset(each.alias_or_name.lower() for each in named)


def tables_in(tree: exp.Query) -> list[exp.Table]:
    """Every mention of a table in a tree, in order; those of definitions and functions excluded."""
    mentions = tree.find_all(exp.Table, bfs=False)
    named = (each for each in mentions if isinstance(each.this, exp.Identifier))
    return [each for each in named if definition_of(each) is None]


def table_name(table: exp.Table) -> str:
    """The name of a table as a query spells it; a path in backticks."""
    return spell_table_name([part.name for part in table.parts])


def definition_of(table: exp.Table) -> exp.CTE | None:
    """What WITH defines for the name of a table: in its own query, or in one around it.

    A definition sees those before it in its WITH; after RECURSIVE, also itself.
    """
    around = () if table.db else _definitions_around(table, itself=True)
    return next((each for each in around if each.alias.lower() == table.name.lower()), None)


def definitions_before(node: exp.Expr) -> list[exp.CTE]:
    """The definitions that a node can name, without any that it is in; the nearest last."""
    by_name = dict[str, exp.CTE]()
    for cte in _definitions_around(node, itself=False):
        by_name.setdefault(cte.alias.lower(), cte)
    return list(by_name.values())[::-1]


def _definitions_around(node: exp.Expr, *, itself: bool) -> Iterator[exp.CTE]:
    """The definitions that a node can name, the nearest first; with those that are recursive and
    contain it, if `itself`."""
    within: exp.CTE | None = None
    around: exp.Expr | None = node
    while around is not None:
        within = around if isinstance(around, exp.CTE) else within
        clause = around.args.get("with_")
        if isinstance(clause, exp.With):
            seen = list[exp.CTE](clause.expressions)
            if within is not None and within.parent is clause:
                seen = seen[: (within.index or 0) + (itself and bool(clause.recursive))]
            yield from reversed(seen)
        around = around.parent


def definitions_with_column_aliases(tree: exp.Expr) -> Iterator[exp.Table]:
    """The mentions of definitions whose columns have other names: ``FROM t AS u (a, b)``."""
    for table in tree.find_all(exp.Table):
        if table.alias_column_names and definition_of(table) is not None:
            yield table


def duplicate_definitions(tree: exp.Query) -> Iterator[exp.CTE]:
    """The definitions that are called like one before them in the same WITH."""
    for clause in tree.find_all(exp.With):
        names = [each.alias.lower() for each in clause.expressions]
        yield from (e for i, e in enumerate(clause.expressions) if names[i] in names[:i])


def aliases_in(tree: exp.Expr) -> frozenset[str]:
    """The names that can qualify a column, in lower case."""
    relations = tree.find_all(exp.Table, exp.Subquery, exp.Values, exp.Lateral)
    return frozenset(each.alias_or_name.lower() for each in relations)
