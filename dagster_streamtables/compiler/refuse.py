"""What cannot be maintained yet, or ever: each with its place, its reason, and its rewrite.

A construct without a rule is refused when the table is defined, so that none is ever computed
wrongly. `_NO_RULE` is the list to shorten when an operator is added.
"""

from __future__ import annotations

from sqlglot import exp

from dagster_streamtables.compiler.text import DIALECT, Text, span
from dagster_streamtables.errors import UnsupportedQuery, underline

_FULL = "or choose mode FULL, which runs the query again whenever a source moved"
_NO_RULE_WHY = "its change has no rule yet, and a table that is wrong is worse than none"

# construct: how a message calls it, and what to write instead
_NO_RULE: dict[type[exp.Expr], tuple[str, str]] = {
    exp.Window: ("a window function", f"aggregate in a subquery and join it, {_FULL}"),
    exp.Lateral: ("LATERAL", f"join a subquery instead, {_FULL}"),
    exp.Unnest: ("a table function", f"store one row per element in a source, {_FULL}"),
    exp.Explode: ("explode", f"store one row per element in a source, {_FULL}"),
    exp.Posexplode: ("posexplode", f"store one row per element in a source, {_FULL}"),
    exp.Inline: ("inline", f"store one row per element in a source, {_FULL}"),
    exp.Exists: ("EXISTS", f"join SELECT DISTINCT of the keys instead, {_FULL}"),
    exp.Any: ("ANY", f"join the subquery instead, {_FULL}"),
    exp.All: ("ALL", f"join the subquery instead, {_FULL}"),
    exp.Qualify: ("QUALIFY", _FULL.removeprefix("or ")),
    exp.Limit: ("LIMIT", _FULL.removeprefix("or ")),
    exp.Fetch: ("FETCH", _FULL.removeprefix("or ")),
    exp.Offset: ("OFFSET", _FULL.removeprefix("or ")),
    exp.Intersect: ("INTERSECT", f"join SELECT DISTINCT of both sides, {_FULL}"),
    exp.Except: ("EXCEPT", f"LEFT JOIN the other side and keep IS NULL, {_FULL}"),
    exp.Pivot: ("PIVOT", f"write SUM(CASE WHEN … END) for each column, {_FULL}"),
    exp.Values: ("VALUES", f"write the rows into a source table, {_FULL}"),
    exp.GroupingSets: ("GROUPING SETS", f"write a UNION ALL of the groupings, {_FULL}"),
    exp.Cube: ("CUBE", f"write a UNION ALL of the groupings, {_FULL}"),
    exp.Rollup: ("ROLLUP", f"write a UNION ALL of the groupings, {_FULL}"),
    exp.WithinGroup: ("WITHIN GROUP", _FULL.removeprefix("or ")),
    exp.Lambda: ("a lambda", _FULL.removeprefix("or ")),
    exp.Version: ("time travel", "name the table alone; a refresh chooses the versions itself"),
}

_NEVER_EQUAL = "a row that goes must be recognized as the row that came"
_UNREPEATABLE: tuple[type[exp.Expr], ...] = (exp.Rand, exp.Randn, exp.Uuid)
_UNREPEATABLE_NAMES = frozenset(
    "rand randn random uuid shuffle uniform randstr monotonically_increasing_id "
    "spark_partition_id input_file_name java_method reflect".split()
)
_CLOCK: tuple[type[exp.Expr], ...] = (
    exp.CurrentTimestamp,
    exp.CurrentDate,
    exp.CurrentTime,
    exp.CurrentUser,
)
_CLOCK_NAMES = frozenset(
    "now current_timestamp current_date curdate localtimestamp current_time current_user user "
    "session_user current_database current_schema current_catalog current_timezone".split()
)
_AGGREGATES: tuple[type[exp.Expr], ...] = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max)
_SET_RETURNING = frozenset("explode_outer posexplode_outer inline_outer stack json_tuple".split())

# Functions that sqlglot prints under another name that means the same.
_SAME = frozenset(
    {
        ("NVL", "COALESCE"),
        ("IFNULL", "COALESCE"),
        ("SUBSTR", "SUBSTRING"),
        ("MEAN", "AVG"),
        ("LCASE", "LOWER"),
        ("UCASE", "UPPER"),
        ("CHAR_LENGTH", "LENGTH"),
        ("CHARACTER_LENGTH", "LENGTH"),
        ("LEN", "LENGTH"),
        ("POW", "POWER"),
        ("CEILING", "CEIL"),
        ("SIGNUM", "SIGN"),
        ("DAY", "DAYOFMONTH"),
        ("TO_TIMESTAMP", "CAST"),
        ("DATE", "CAST"),
        ("TIMESTAMP", "CAST"),
        ("TIMESTAMPADD", "DATE_ADD"),
        ("ISNULL", "ISNULL"),
        ("IF", "CASE"),
        ("IIF", "IF"),
        ("NVL2", "IF"),
        ("REGEXP_LIKE", "RLIKE"),
    }
)


def refuse(text: Text) -> None:
    """Say no to what cannot be maintained.

    Raises:
        UnsupportedQuery: With the place in the user's text, the reason, and the rewrite.
    """
    for node in text.tree.walk():
        _refuse_construct(node, text)
        _refuse_subquery(node, text)
        _refuse_function(node, text)
    _refuse_shadowing(text)


def _refuse_construct(node: exp.Expr, text: Text) -> None:
    if type(node) in _NO_RULE:
        called, fix = _NO_RULE[type(node)]
        raise _no_rule(node, text, called, fix)
    if isinstance(node, exp.TableSample):
        raise _at(
            node, text, "TABLESAMPLE cannot be maintained",
            why="which rows it takes is decided anew by each run",
            fix="filter by a hash of a key, for example WHERE pmod(hash(id), 10) = 0",
        )  # fmt: skip
    if isinstance(node, exp.With) and node.args.get("recursive"):
        raise _no_rule(node, text, "WITH RECURSIVE", _FULL.removeprefix("or "))
    if isinstance(node, exp.Join) and _kind(node) not in _JOINS:
        raise _no_rule(node, text, f"{_kind(node)} JOIN", _FULL.removeprefix("or "))
    if isinstance(node, exp.Group) and node.args.get("all"):
        raise _no_rule(node, text, "GROUP BY ALL", "list the columns")
    if isinstance(node, exp.Select) and (node.args.get("laterals") or node.args.get("distinct")):
        if node.args.get("laterals"):
            raise _no_rule(node, text, "LATERAL VIEW", _NO_RULE[exp.Explode][1])
        if node.args["distinct"].args.get("on"):
            raise _no_rule(node, text, "DISTINCT ON", _FULL.removeprefix("or "))
    if isinstance(node, exp.SetOperation) and node.args.get("by_name"):
        raise _no_rule(node, text, "UNION BY NAME", "list the columns of both sides in one order")


_JOINS = frozenset({"", "INNER", "CROSS", "LEFT", "RIGHT", "FULL"})


def _kind(join: exp.Join) -> str:
    words = (join.method, join.side, join.kind)
    return " ".join(word for word in words if word and word != "OUTER").strip()


def _refuse_subquery(node: exp.Expr, text: Text) -> None:
    if not isinstance(node, exp.Subquery | exp.Query):
        return
    parent = node.parent
    if isinstance(node, exp.Query) and isinstance(parent, exp.In):
        raise _no_rule(node, text, "IN (SELECT …)", f"join SELECT DISTINCT of the keys, {_FULL}")
    inside = (exp.From, exp.Join, exp.CTE, exp.SetOperation, exp.Subquery, exp.Insert)
    if parent is not None and not isinstance(parent, inside):
        raise _no_rule(node, text, "a scalar subquery", f"join the subquery instead, {_FULL}")


def _refuse_function(node: exp.Expr, text: Text) -> None:
    if not isinstance(node, exp.Func):
        return
    name = _written_name(node, text)
    if isinstance(node, _UNREPEATABLE) or name.lower() in _UNREPEATABLE_NAMES:
        called = f"{name.lower()}()"
        raise _at(
            node, text, f"{called} cannot be maintained",
            why=f"{_NEVER_EQUAL}, and {called} gives the two different values",
            fix="store the value in the source table and select that column instead",
        )  # fmt: skip
    if isinstance(node, _CLOCK) or name.lower() in _CLOCK_NAMES:
        raise _at(
            node, text, f"{name.lower()} cannot be maintained yet",
            why=f"{_NEVER_EQUAL}, and by then {name.lower()} has another value",
            fix=f"store the value in the source table and select that column instead, {_FULL}",
        )  # fmt: skip
    if name.lower() in _SET_RETURNING:
        raise _no_rule(node, text, name.lower(), _NO_RULE[exp.Explode][1])
    if isinstance(node, exp.AggFunc) and not isinstance(node, _AGGREGATES):
        raise _no_rule(node, text, f"{name.lower()}()", _FULL.removeprefix("or "))
    printed = node.sql(DIALECT).split("(")[0].upper()
    if name and node.meta.get("start") is not None and printed != name.upper():
        known_aggregate = isinstance(node, _AGGREGATES)
        if (name.upper(), printed) not in _SAME and not known_aggregate:
            raise _no_rule(node, text, f"{name.lower()}()", _FULL.removeprefix("or "))


def _refuse_shadowing(text: Text) -> None:
    seen: set[str] = set()
    for cte in text.tree.find_all(exp.CTE):
        if cte.alias.lower() in seen:
            raise _at(
                cte, text, f'two common table expressions are called "{cte.alias}"',
                why="which of them a name means would depend on where it stands",
                fix="give each its own name",
            )  # fmt: skip
        seen.add(cte.alias.lower())


def _written_name(node: exp.Func, text: Text) -> str:
    start, end = node.meta.get("start"), node.meta.get("end")
    if start is None or end is None:
        return node.name if isinstance(node, exp.Anonymous) else node.key
    return text.sql[start : end + 1].strip("`")


def _no_rule(node: exp.Expr, text: Text, called: str, fix: str) -> UnsupportedQuery:
    return _at(node, text, f"{called} is not supported yet", why=_NO_RULE_WHY, fix=fix)


def _at(node: exp.Expr, text: Text, what: str, *, why: str, fix: str) -> UnsupportedQuery:
    where = span(node)
    shown = underline(text.sql, *where) if where else node.sql(DIALECT)
    return UnsupportedQuery(what, where=shown, why=why, fix=fix)
