"""Refuse what cannot be maintained, yet or ever, with its position, the reason, and a rewrite.

A construct without a rule is refused when the table is defined, so that it is never computed
wrongly. `_NEVER` is the list to shorten when an operator is added.

`_require_spark_syntax` refuses what sqlglot parses and Spark does not, such as other engines'
windows, aggregates and LATERAL. Spark would refuse it too, but only at the first refresh.
"""

from __future__ import annotations

import difflib

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from dagster_streamtables.compiler.analyze.storable_types import escaping_collations
from dagster_streamtables.compiler.dialect.kinds.function_kinds import BY_CALL
from dagster_streamtables.compiler.text import spark_functions
from dagster_streamtables.compiler.text.current_time import NOW, asks_for_time, with_clock
from dagster_streamtables.compiler.text.group_by import name_of_call
from dagster_streamtables.compiler.text.pipes import is_after_order
from dagster_streamtables.compiler.text.places import Mistake, Refusal, place, place_of_word
from dagster_streamtables.compiler.text.query_text import Text, read
from dagster_streamtables.compiler.text.sqlglot_dialects import DIALECT
from dagster_streamtables.compiler.text.syntax import IN_POSTGRES
from dagster_streamtables.compiler.text.table_mentions import duplicate_definitions
from dagster_streamtables.errors import InvalidDefinition, QueryPosition, UnsupportedQuery

_FULL = "choose mode FULL, which reruns the query whenever a source has changed"
_OR_FULL = f"or {_FULL}"
_NO_RULE_WHY = "no rule computes its change yet, and a wrong table is worse than none"
_NEVER_EQUAL = "a deleted row must be recognized as the row that was inserted"

_SPARK_ONLY = "the query must be Spark SQL, in mode FULL too"
_PARAMETER = (
    "a parameter in a stream table",
    "it has no value when a refresh runs the query later",
    "write its value into the query",
)

# construct: what is wrong, why, what to write instead
_NEVER: dict[type[exp.Expr], tuple[str, str, str]] = {
    exp.Unnest: (
        "a table function is not supported yet", _NO_RULE_WHY,
        f"store one row per element in a source, {_OR_FULL}",
    ),
    exp.Fetch: ("Spark has no FETCH", _SPARK_ONLY, "write LIMIT"),
    exp.SimilarTo: ("Spark has no SIMILAR TO", _SPARK_ONLY, 'write RLIKE, or dialect="postgres"'),
    exp.Lock: (
        "Spark has no locking clause", _SPARK_ONLY,
        "leave it out; a refresh reads fixed versions of its sources",
    ),
    exp.Version: (
        "time travel in a stream table", "a fixed version of a table never changes",
        "name the table alone; a refresh chooses the versions itself",
    ),
    exp.QueryTransform: (
        "TRANSFORM cannot be maintained", "a script may return other rows each time",
        f"run the script upstream, {_OR_FULL}",
    ),
    exp.Parameter: _PARAMETER,
    exp.SessionParameter: _PARAMETER,
    exp.Placeholder: _PARAMETER,
}  # fmt: skip
_SIDES = ("", "INNER", "CROSS", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI", "LEFT SEMI", "LEFT ANTI")
_NATURAL = ("NATURAL", *(f"NATURAL {side}" for side in ("INNER", "LEFT", "RIGHT", "FULL")))
_JOINS = frozenset((*_SIDES, *_NATURAL))


_KNOWN = (
    frozenset({NOW})
    | spark_functions.SCALAR
    | spark_functions.AGGREGATES
    | spark_functions.WINDOW
    | spark_functions.TABLE_VALUED
    | spark_functions.TIME_WINDOWS
)
_OF_POSTGRES = frozenset({"array_to_string", "generate_series", *BY_CALL})
_CALLED = {TokenType.VAR, TokenType.FORMAT}
_CLAUSES = {"extend", "group", "identifier", "nulls", "repeatable"}
"""Words that sqlglot reads as names, and that may stand before a parenthesis."""


def refuse(text: Text) -> None:
    """Refuse what cannot be maintained.

    Raises:
        UnsupportedQuery: It has no rule, yet or ever.
        InvalidDefinition: Spark lacks the syntax.
    """
    _refuse_functions(text)
    try:
        for node in text.tree.walk():
            _require_spark_syntax(node)
            _refuse_construct(node)
            _refuse_clause(node)
            _refuse_unknown_function(node, text)
        for cte in duplicate_definitions(text.tree):
            raise Refusal(
                cte, f'two common table expressions are called "{cte.alias}"',
                why="Spark takes a name once in a WITH, in mode FULL too",
                fix="give each its own name",
            )  # fmt: skip
    except Refusal as refusal:
        raise refusal.in_text(text) from None


def _refuse_construct(node: exp.Expr) -> None:
    if type(node) in _NEVER:
        is_version = isinstance(node.parent, exp.TableAlias)  # orders@v3
        what, why, fix = _NEVER[exp.Version if is_version else type(node)]
        raise Refusal(node, what, why=why, fix=fix)
    if isinstance(node, exp.TableSample):
        raise Refusal(
            node, "TABLESAMPLE cannot be maintained",
            why="each run would sample different rows",
            fix="filter by a hash of a key, for example WHERE pmod(hash(id), 10) = 0",
        )  # fmt: skip
    if isinstance(node, exp.Count) and node.this is None:
        raise Refusal(
            node, "COUNT without an argument",
            why="Spark has it only if a setting brings it back, and then it counts nothing",
            fix="write COUNT(*)",
        )  # fmt: skip
    for kept in escaping_collations(node):
        raise Refusal(
            kept, "COLLATE of a stored value",
            why="rows are told apart by bytes, and a collation takes different bytes for equal: "
            "which of them a group, a window or an output has is undefined",
            fix="keep only comparisons, x COLLATE … = y, or LOWER(x); or choose mode FULL, with "
            "outputs cast to STRING",
        )  # fmt: skip
    if isinstance(node, exp.DataType) and node.is_type(exp.DType.TIME):
        raise Refusal(
            node, "the type TIME",
            why="Spark does not have it unless a preview is switched on, nor has Delta",
            fix="use TIMESTAMP, or a number of seconds",
        )  # fmt: skip


def _refuse_clause(node: exp.Expr) -> None:
    if isinstance(node, exp.Join) and _kind(node) not in _JOINS:
        instead = "write it as a join with ON, or as LATERAL with ORDER BY and LIMIT"
        if node.method == "NATURAL":
            instead = "name the columns with USING"
        raise Refusal(
            node, f"Spark has no {_kind(node)} JOIN", why=_SPARK_ONLY,
            fix=instead,
        )  # fmt: skip
    if _makes_rows_inside(node):
        raise Refusal(
            node, "a table function inside an expression",
            why="it returns rows, and an expression has one value per row",
            fix="write LATERAL VIEW, or make it a column of a subquery",
        )  # fmt: skip
    if isinstance(node, exp.SetOperation) and node.args.get("by_name"):
        raise Refusal(
            node, "a set operation BY NAME",
            why="Spark matches columns by position only",
            fix="list the columns of both sides in one order",
        )  # fmt: skip
    cut = node.args.get("limit") or node.args.get("offset")
    if cut and any(node.args.get(each) for each in ("sort", "cluster", "distribute")):
        raise Refusal(
            cut, "the first rows of SORT BY, CLUSTER BY or DISTRIBUTE BY",
            why="it orders the rows of each partition alone, so they may be others each time",
            fix="write ORDER BY",
        )  # fmt: skip
    if cut and not node.args.get("order") and is_after_order(node):
        raise Refusal(
            cut,
            f"{cut.key.upper()} of rows that an earlier step of a pipe has put into order",
            why="after another step rows have no order, and Spark promises none",
            fix=f"write it right after ORDER BY, {_OR_FULL}",
        )  # fmt: skip
    if isinstance(node, exp.Distinct) and node.args.get("on"):
        raise Refusal(
            node, "Spark has no DISTINCT ON", why=_SPARK_ONLY,
            fix='write QUALIFY ROW_NUMBER() OVER (…) = 1, or dialect="postgres"',
        )  # fmt: skip


def _makes_rows_inside(node: exp.Expr) -> bool:
    """Whether it is a table function where only a single value is allowed."""
    named = isinstance(node, exp.Anonymous) and node.name.lower() in spark_functions.TABLE_VALUED
    if not named and not isinstance(node, exp.Explode | exp.Inline):
        return False
    around = node.parent
    if isinstance(around, exp.Alias | exp.Aliases):
        around = around.parent
    return not isinstance(around, exp.Select | exp.Lateral | exp.Table)


def _kind(join: exp.Join) -> str:
    words = (join.method, join.side, join.kind)
    return " ".join(word for word in words if word and word != "OUTER").strip()


def _refuse_unknown_function(node: exp.Expr, text: Text) -> None:
    """Refuse by the tree: functions in no list, and those that are called without parentheses."""
    word = node.name.lower() if isinstance(node, exp.Anonymous) else ""
    if word and word not in _KNOWN and not word.startswith(spark_functions.USER):
        _refuse_listed_function(word, place(node, text), word)
        raise _unknown(word, place(node, text))
    if isinstance(node, exp.Func):
        word = node.sql_name().lower()
        if word in spark_functions.UNREPEATABLE | spark_functions.CLOCK:
            _refuse_listed_function(word, place_of_word(word, text) or place(node, text), word)


def _refuse_functions(text: Text) -> None:
    """Refuse by the text: sqlglot drops some functions from the tree and renames others, so that
    ARRAY_TO_STRING of another dialect would be taken for Spark's ARRAY_JOIN."""
    names = {alias.name.lower() for alias in text.tree.find_all(exp.TableAlias)}
    for token, following in zip(text.tokens, text.tokens[1:], strict=False):
        word = token.text.lower()
        if following.token_type is TokenType.L_PAREN and word not in names:
            shown = text.locate(token.start, token.end)
            _refuse_listed_function(word, shown, f"{word}()")
            known = word in _KNOWN or word in _CLAUSES or spark_functions.is_of_spark(word)
            own = word.startswith(spark_functions.USER)
            if token.token_type in _CALLED and not (known or own):
                raise _unknown(word, shown)


def _unknown(word: str, where: QueryPosition | str) -> UnsupportedQuery:
    if spark_functions.is_of_spark(word):
        return UnsupportedQuery(
            f"{word}() is not supported yet", where=where, why=_NO_RULE_WHY, fix=_FULL
        )
    near = difflib.get_close_matches(
        word, sorted(_KNOWN | spark_functions.MAINTAINED), n=3, cutoff=0.7
    )
    fix = f"declare a function of your own in the setting functions, {_OR_FULL}"
    if word in _OF_POSTGRES:
        fix = f"{IN_POSTGRES}; otherwise {fix}"
    elif near:
        fix = f"did you mean {' or '.join(near)}? If not, {fix}"
    return UnsupportedQuery(
        f"{word}() is neither a function of Spark nor a declared one",
        where=where,
        why="nothing is known of it, and only what returns the same for a row each time can be "
        "maintained",
        fix=fix,
    )


def _refuse_listed_function(word: str, where: QueryPosition | str, called: str) -> None:
    if word in spark_functions.UNREPEATABLE:
        raise UnsupportedQuery(
            f"{called} cannot be maintained",
            where=where,
            why=f"{_NEVER_EQUAL}, and {called} returns different values for the two",
            fix="store the value in the source table and select that column instead",
        )
    if word in spark_functions.CLOCK:
        raise UnsupportedQuery(
            f"{called} cannot be maintained",
            where=where,
            why=f"{_NEVER_EQUAL}, and {called} may differ in the session of a later refresh",
            fix=f"write the value into the query, {_OR_FULL}",
        )
    if word in spark_functions.OTHERS:
        raise UnsupportedQuery(
            f"{called} is not supported yet", where=where, why=_NO_RULE_WHY, fix=_FULL,
        )  # fmt: skip


_WITHIN_GROUP = {
    "listagg", "mode", "percentile", "percentile_cont", "percentile_disc", "string_agg",
}  # fmt: skip


_UNIT_WORDS = """
    year y years yr yrs yearofweek quarter qtr month mon mons months week w weeks day d days
    dayofweek dow dayofweek_iso dow_iso doy hour h hours hr hrs minute m min mins minutes second s
    sec seconds secs
"""
_UNITS = frozenset(_UNIT_WORDS.split())


def _require_spark_syntax(node: exp.Expr) -> None:
    if isinstance(node, exp.Window):
        _require_window(node)
    elif isinstance(node, exp.WindowSpec):
        _require_frame(node)
    elif isinstance(node, exp.Order | exp.Limit | exp.WithinGroup):
        _require_plain_call(node)
    elif isinstance(node, exp.Lateral):
        _require_view(node)
    elif isinstance(node, exp.Extract):
        _require_unit(node)
    # FROM_UTC_TIMESTAMP(…) is such a node too, but only a call has the position of its name.
    elif isinstance(node, exp.AtTimeZone) and "start" not in node.meta:
        raise Mistake(
            node,
            "Spark has no AT TIME ZONE",
            why="it converts times by functions",
            fix="write convert_timezone('UTC', 'Europe/Berlin', x), or set dialect to postgres",
        )
    elif isinstance(node, exp.JSON):
        raise Mistake(
            node,
            "Spark has no IS JSON",
            why="it has no such condition",
            fix="write try_parse_json(x) IS NOT NULL",
        )
    elif isinstance(node, exp.Between) and node.args.get("symmetric"):
        raise Mistake(
            node,
            "Spark has no BETWEEN SYMMETRIC",
            why="the lower end comes first there",
            fix="write BETWEEN LEAST(a, b) AND GREATEST(a, b)",
        )


def _require_unit(node: exp.Extract) -> None:
    if node.name.lower() not in _UNITS:
        raise Mistake(
            node,
            f"Spark cannot extract {node.name.upper()}",
            why="it has YEAR, YEAROFWEEK, QUARTER, MONTH, WEEK, DAY, DAYOFWEEK, DAYOFWEEK_ISO, "
            "DOY, HOUR, MINUTE and SECOND",
            fix="write UNIX_TIMESTAMP(x)"
            if node.name.lower() == "epoch"
            else "compute it from one of these units",
        )


def _require_window(node: exp.Window) -> None:
    more = any(node.args.get(part) for part in ("partition_by", "order", "spec"))
    if node.alias and more:
        raise Mistake(
            node,
            f'a window that adds to the window "{node.alias}"',
            why="in Spark, a window is either a name or a full definition, in OVER and in WINDOW",
            fix=f"write the definition of {node.alias} in place of its name",
        )


def _require_frame(node: exp.WindowSpec) -> None:
    if node.args.get("kind") == "GROUPS":
        raise Mistake(
            node,
            "Spark has no GROUPS in a window",
            why="Spark's frames count rows (ROWS) or compare values (RANGE)",
            fix="number the groups by DENSE_RANK() in a subquery, and write RANGE over ORDER BY "
            "that number",
        )
    if node.args.get("exclude"):
        raise Mistake(
            node,
            "Spark has no EXCLUDE in a window",
            why="Spark's frames include every row between their ends",
            fix="subtract the row's own value from the result of the whole frame, or combine the "
            "frame before the row with the one after it",
        )


def _require_plain_call(node: exp.Expr) -> None:
    if isinstance(node, exp.WithinGroup):
        called = name_of_call(node.this) or node.this.key
        if called not in _WITHIN_GROUP:
            raise _no_order(called, "WITHIN GROUP", node)
    elif isinstance(node.parent, exp.Func) and not isinstance(node.parent, exp.Query):
        word = "ORDER BY" if isinstance(node, exp.Order) else "LIMIT"
        raise _no_order(name_of_call(node.parent), word, node)


def _no_order(called: str, word: str, node: exp.Expr) -> Mistake:
    string = called in ("listagg", "string_agg", "group_concat")
    if word == "LIMIT" and not string:
        fix = "write SLICE(SORT_ARRAY(COLLECT_LIST(x)), 1, n) for the n least values of x"
    elif string:
        fix = f"write {called.upper()}(x, ',') WITHIN GROUP (ORDER BY y)"
    else:
        fix = (
            "write TRANSFORM(SORT_ARRAY(COLLECT_LIST(STRUCT(y, x))), e -> e.x), which is in the "
            "order of y"
        )
    return Mistake(
        node,
        f"Spark has no {word} in {called.upper()}",
        why="Spark's lists have no order of their own",
        fix=fix,
    )


def _require_view(node: exp.Lateral) -> None:
    name = node.this.name.lower() if isinstance(node.this, exp.Anonymous) else ""
    if node.args.get("view") and name in spark_functions.VARIANT_TABLES:
        raise Mistake(
            node.this,
            f"Spark has no LATERAL VIEW of {name}",
            why="Spark supports that function in FROM only",
            fix=f"write FROM t, LATERAL {name}(…) AS v(pos, key, value)",
        )


_OF_MANY_ROWS = (
    spark_functions.AGGREGATES
    | spark_functions.MAINTAINED
    | spark_functions.WINDOW
    | spark_functions.TABLE_VALUED
)


def flaw_of(condition: str) -> str:
    """Why a text cannot be a condition on one row, with one answer whenever it is asked; empty if
    it can. What its columns are, and whether it is a boolean, is not known here.

    >>> flaw_of("amount > 5 AND region = 'EU'")
    ''
    >>> flaw_of("amount > rand()")
    'rand() cannot be maintained'
    >>> flaw_of("id IN (SELECT id FROM customers)")
    'it has a subquery'
    """
    try:
        trees = sqlglot.parse(condition, dialect=DIALECT)
    except (SqlglotError, RecursionError):
        return "it is not an expression of Spark SQL"
    tree = trees[0] if len(trees) == 1 else None
    if tree is None or isinstance(tree, exp.Query | exp.Alias | exp.Star | exp.Command):
        return "it is not one expression of Spark SQL"
    return _flaw_in(tree) or _refusal(condition)


def _flaw_in(tree: exp.Expr) -> str:
    for node in tree.walk():
        if isinstance(node, exp.Query):
            return "it has a subquery"
        named = node.name.lower() if isinstance(node, exp.Anonymous) else ""
        many = isinstance(node, exp.AggFunc | exp.Window | exp.UDTF) or named in _OF_MANY_ROWS
        if many or isinstance(node, exp.Explode | exp.Inline):
            return "it looks at other rows, or makes some"
    return ""


def _refusal(condition: str) -> str:
    try:
        text = with_clock(read(f"SELECT 1 AS one FROM t WHERE (\n{condition}\n)"))
        refuse(text)
    except InvalidDefinition as error:
        return error.what
    return "it asks for the time" if asks_for_time(text) else ""
