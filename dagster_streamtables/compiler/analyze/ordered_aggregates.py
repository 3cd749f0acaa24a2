"""Make calls whose result depends on the order of rows independent of it.

`missing_orders` completes aggregates of groups; `make_deterministic` lists the insertions.

`rewrite_as_extreme` rewrites the first row of a RANGE frame, where several tie, as the least of
them:

    FIRST_VALUE(v) OVER (ORDER BY t RANGE 5 PRECEDING)
    MIN_BY(v, STRUCT(t, every other column)) OVER (ORDER BY t RANGE 5 PRECEDING)

    LAST_VALUE(v)                   MAX_BY; the other way round with ORDER BY t DESC
    FIRST_VALUE(v) IGNORE NULLS     MIN_BY(v, CASE WHEN v IS NOT NULL THEN STRUCT(…) END)
    NTH_VALUE(v, 3)                 GET(MIN_BY(v, STRUCT(…), 3) OVER (…), 2)

Spark takes no further column in the ORDER BY of a frame between values. And rows that tie have one
frame, with all of them in it, as in the usual one, which ends at the current row:

    LAST_VALUE(v) OVER (ORDER BY t)    over t, v = 1, 'a' and 1, 'b': the same value in both rows

Ordered by more columns, each row would end its own frame.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from dagster_streamtables.compiler.operators.comparable import (
    as_maps,
    comparable,
    has_form,
    has_variants,
)
from dagster_streamtables.compiler.text.group_by import (
    function_of,
    name_of_call,
    name_of_function,
    own_calls,
    own_nodes,
    windows_by_name,
)
from dagster_streamtables.compiler.text.places import Refusal
from dagster_streamtables.compiler.text.query_text import Text
from dagster_streamtables.compiler.text.sqlglot_dialects import DIALECT, IN_LOWER_CASE
from dagster_streamtables.compiler.text.token_edits import Edit, closing, keyword_of, outermost


@dataclass(frozen=True)
class Insertion:
    at: int
    words: str
    until: int | None = None
    """The end of the replaced span; None if nothing is replaced."""

    @property
    def edit(self) -> Edit:
        return self.at, self.at if self.until is None else self.until, self.words


_LISTS = {"collect_list", "collect_set", "array_agg"}
STRINGS = {"listagg", "string_agg"}
"""They list texts in an order that is no argument of theirs: WITHIN GROUP (ORDER BY …)."""
EXTREMES = {
    "first": "min",
    "first_value": "min",
    "any_value": "min",
    "last": "max",
    "last_value": "max",
}
_BY = {"max_by", "min_by"}
_ORDERED = _LISTS | STRINGS | set(EXTREMES) | _BY | {"mode"}
_OF_ROWS = {"collect_list", "array_agg"}
_ZIPS = {"arrays_zip", "map_from_arrays", "zip_with"}
_INSENSITIVE = {
    "sort_array",
    "size",
    "array_size",
    "cardinality",
    "array_contains",
    "array_max",
    "array_min",
}


@dataclass(frozen=True)
class Call:
    """A call in the text: its name, the commas and parentheses of its arguments, its clauses."""

    name: Token
    marks: list[Token]
    """The opening parenthesis, the commas between arguments, the closing parenthesis."""
    within: tuple[Token, Token] | None
    end: int
    """The end of the call, including FILTER and its other clauses."""
    inside: str
    """The function whose first argument it is, if any."""
    windowed: bool

    def argument(self, number: int, text: Text) -> str:
        return text.sql[self.marks[number].end + 1 : self.marks[number + 1].start].strip()


def missing_orders(text: Text, qualified: exp.Query) -> Iterator[Insertion]:
    """What to insert into aggregates that depend on an order and have none.

    Raises:
        Refusal: The values of a group are maps, and the place of the call is not known.
    """
    if not text.vocabulary & _ORDERED:
        return
    maps = _types_of_maps(qualified)
    for node in text.tree.find_all(exp.Anonymous):
        call = _call_in_text(node, text) if node.name.lower() in _ORDERED else None
        if call is not None:
            yield from _insert_order(call, text, maps.get(call.name.start))


def require_no_parallel_lists(qualified: exp.Query) -> None:
    """Refuse two lists of a group that a function joins by place: sorted, each by its own values,
    they no longer have the values of one row in one place."""
    for node in qualified.find_all(exp.Func):
        name = name_of_call(node)
        if name not in _ZIPS:
            continue
        arguments = [each.unnest() for each in node.iter_expressions()]
        if sum(name_of_function(each) in _OF_ROWS for each in arguments) > 1:
            raise Refusal(
                node,
                f"{name.upper()} of two lists of a group",
                why="each list is sorted by its own values, so those of a row would not meet",
                fix="collect rows: collect_list(struct(a, b)), or map_from_entries of it",
            )


def orders(call: exp.Expr) -> list[exp.Expr]:
    """The arguments of an aggregate by which the rows of its group would be ordered."""
    name = name_of_function(call)
    given = function_of(call).iter_expressions()
    lists = (each.expressions if isinstance(each, exp.Distinct) else [each] for each in given)
    arguments = [each for some in lists for each in some]
    if name in _BY:
        return arguments[:2]
    ordered = name in EXTREMES or (name in _LISTS and not is_order_insensitive(call))
    return arguments[:1] if ordered else []


def is_order_insensitive(call: exp.Expr) -> bool:
    """Whether the call lists values for a function that takes no notice of their order."""
    around = call.parent
    if not isinstance(around, exp.Func) or next(around.iter_expressions(), None) is not call:
        return False
    # sqlglot calls sort_array so; array_sort is anonymous, and may sort by a function with ties.
    if isinstance(around, exp.ArraySort) or name_of_call(around) in _INSENSITIVE:
        return True
    return name_of_call(around) == "array_sort" and len(around.expressions) == 1


def is_extreme_value(call: exp.Expr) -> bool:
    """Whether an aggregate gives back one of the values that it orders by their comparable form."""
    return name_of_function(call) in (*EXTREMES, *_BY)


def _types_of_maps(qualified: exp.Query) -> dict[int, exp.DataType]:
    """The types of maps that aggregates order, by the positions of the calls."""
    found = dict[int, exp.DataType]()
    for call in (call for each in qualified.find_all(exp.Select) for call in own_calls(each)):
        values, start = orders(call), function_of(call).meta.get("start")
        type_ = values[0].type if values else None
        if type_ is None or not has_form(type_):
            continue
        if start is None:
            raise Refusal(
                call,
                f"{name_of_function(call).upper()} of a MAP",
                why="a group's values are ordered by their entries, and the place of the call "
                "is not found",
                fix="compute the map in a subquery, and aggregate its column",
            )
        found[start] = type_
    return found


_IT = "`__st_it`"


def _argument(call: Call, text: Text, type_: exp.DataType) -> Insertion:
    """The first argument, with lists of entries for its maps."""
    written = call.argument(0, text)
    is_distinct = written.upper().startswith("DISTINCT")
    value = written[len("DISTINCT") :].strip() if is_distinct else written
    compared = _comparable_form(value, type_)
    words = f"DISTINCT {compared}" if is_distinct else compared
    return Insertion(call.marks[0].end + 1, words, call.marks[1].start)


def _comparable_form(value: str, type_: exp.DataType) -> str:
    form = comparable(exp.column(_IT.strip("`"), quoted=True), type_).sql(DIALECT)
    return form.replace(_IT, f"({value})")


def _back(type_: exp.DataType | None) -> tuple[str, str]:
    """What stands before and after a list of entries, or a list of such, to make maps of them."""
    if type_ is None:
        return "", ""
    if type_.this is exp.DType.STRUCT:
        listed = exp.DataType(this=exp.DType.ARRAY, expressions=[type_.copy()])
        before, after = _back(listed)
        return f"{before}ARRAY(", f"){after}[0]"
    made = as_maps(exp.column(_IT.strip("`"), quoted=True), type_).sql(DIALECT)
    before, _, after = made.partition(_IT)
    return before, after


def _insert_order(call: Call, text: Text, maps: exp.DataType | None) -> Iterator[Insertion]:
    name, start = call.name.text.lower(), call.name.start
    if name in _LISTS and not call.windowed and call.inside not in _INSENSITIVE:
        made = None if maps is None else exp.DataType(this=exp.DType.ARRAY, expressions=[maps])
        before, after = _back(made)
        yield Insertion(start, f"{before}SORT_ARRAY(")
        if maps is not None:
            yield _argument(call, text, maps)
        yield Insertion(call.end, f"){after}")
    elif name in STRINGS and not call.windowed:
        value = call.argument(0, text)
        bare = value[len("DISTINCT") :].strip() if value.upper().startswith("DISTINCT") else value
        if call.within is None:
            yield Insertion(call.marks[-1].end + 1, f" WITHIN GROUP (ORDER BY {bare})")
        elif bare == value:
            yield Insertion(call.within[1].start, f", {bare}")
    elif name in EXTREMES and not call.windowed:
        chosen = _by_form if has_variants(maps) else _extreme
        yield from chosen(EXTREMES[name], call, text, maps)
    elif name in _BY and len(call.marks) in (3, 4):
        by = call.argument(1, text)
        value = call.argument(0, text) if maps is None else _argument(call, text, maps).words
        yield Insertion(
            call.marks[1].end + 1,
            f" CASE WHEN ({by}) IS NOT NULL THEN STRUCT({by}, {value}) END",
            call.marks[2].start,
        )
    elif name == "mode" and len(call.marks) == 2 and call.argument(0, text):
        yield Insertion(call.marks[1].start, ", true")
    elif name == "mode" and len(call.marks) == 3:
        yield Insertion(call.marks[1].end + 1, " true", call.marks[2].start)


def _extreme(name: str, call: Call, text: Text, maps: exp.DataType | None) -> Iterator[Insertion]:
    """Write the call as MIN or MAX, over the entries of maps."""
    before, after = _back(maps)
    yield Insertion(call.name.start, f"{before}{name}(", call.marks[0].end + 1)
    if maps is not None:
        yield _argument(call, text, maps)
    yield Insertion(call.marks[1].start, ")", _after_nulls(text, call))
    if after:
        yield Insertion(call.end, after)


def _by_form(name: str, call: Call, text: Text, type_: exp.DataType | None) -> Iterator[Insertion]:
    """Write the call as MIN_BY or MAX_BY: the form of a VARIANT cannot be turned back."""
    assert type_ is not None
    value = call.argument(0, text)
    form = f"CASE WHEN ({value}) IS NOT NULL THEN {_comparable_form(value, type_)} END"
    yield Insertion(call.name.start, f"{name}_by(", call.marks[0].end + 1)
    yield Insertion(call.marks[1].start, f", {form})", _after_nulls(text, call))


def _after_nulls(text: Text, call: Call) -> int:
    """The position after the arguments and IGNORE NULLS or RESPECT NULLS."""
    following = [each for each in text.tokens if each.start > call.marks[-1].start][:2]
    words = " ".join(map(keyword_of, following))
    return (following[1] if words in ("IGNORE NULLS", "RESPECT NULLS") else call.marks[-1]).end + 1


def _call_in_text(node: exp.Expr, text: Text) -> Call | None:
    """The call that a function of a tree has in the text; None if its position is not known."""
    tokens, start = text.tokens, node.meta.get("start")
    i = next((i for i, each in enumerate(tokens) if each.start == start), None)
    if i is None or tokens[i + 1].token_type is not TokenType.L_PAREN:
        return None
    close = closing(tokens, i + 1)
    inside = tokens[i + 2 : close]
    commas = (inside[at] for at in outermost(inside, TokenType.COMMA))
    marks = [tokens[i + 1], *commas, tokens[close]]
    end, within, windowed = close, None, False
    while end + 1 < len(tokens):
        words = [keyword_of(each) for each in tokens[end + 1 : end + 4]]
        if words[:2] in (["IGNORE", "NULLS"], ["RESPECT", "NULLS"]):
            end += 2
        elif words[:2] == ["FILTER", "("] or words == ["WITHIN", "GROUP", "("]:
            opening = end + 1 + words.index("(")
            end = closing(tokens, opening)
            within = (tokens[opening], tokens[end]) if words[0] == "WITHIN" else within
        else:
            windowed = words[:1] == ["OVER"]
            break
    before = tokens[i - 2].text.lower() if i > 1 and tokens[i - 1].text == "(" else ""
    return Call(tokens[i], marks, within, tokens[end].end + 1, before, windowed)


def calls_over_windows(select: exp.Select) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    """The calls of a SELECT over windows, each with the definition of its window."""
    windows = windows_by_name(select)
    for each in own_nodes(select):
        if isinstance(each, exp.Window) and each.args.get("over"):
            yield each, windows.get(each.alias.lower(), each)


def ordered_windows(select: exp.Select) -> list[tuple[exp.Expr, exp.Expr]]:
    """The calls over windows that tell apart rows that tie, and these windows."""
    return [each for each in calls_over_windows(select) if needs_order(*each)]


_FIELD = "st_"
OF_FRAME = {"nth_value", "collect_list", "array_agg", "collect_set", "listagg", "string_agg"}
RANKS = {"rank", "dense_rank", "percent_rank", "cume_dist"}
"""They give rows that tie one number, over any frame."""
_OVER_ROWS = {"row_number", "ntile", "lag", "lead"} | OF_FRAME | set(EXTREMES)


def needs_order(node: exp.Expr, meant: exp.Expr) -> bool:
    """Whether a call over a window tells apart rows that tie."""
    name = "" if is_order_insensitive(node) else name_of_function(node.this)
    frame = meant.args.get("spec")
    if chooses_a_row(node, meant) or name in RANKS:
        return False
    if name in _OVER_ROWS or frame is None:
        return name in _OVER_ROWS
    whole = {frame.args.get("start"), frame.args.get("end")} == {"UNBOUNDED"}
    return frame.args.get("kind") == "ROWS" and not whole


def is_over_values(frame: exp.Expr | None, order: exp.Expr | None) -> bool:
    """Whether a frame ends where the values of its order do, with all rows that tie."""
    return order is not None if frame is None else frame.args.get("kind") != "ROWS"


def chooses_a_row(node: exp.Expr, meant: exp.Expr) -> bool:
    """Whether a call over a window is written as MIN_BY or MAX_BY."""
    order = meant.args.get("order")
    keys = order.expressions if order is not None else []
    one_way = len({bool(each.args.get("desc")) for each in keys}) == 1
    name = name_of_function(node.this)
    chooses = name in EXTREMES or name == "nth_value"
    # The text between the arguments and OVER is replaced, and may have no FILTER.
    return one_way and chooses and not _has(exp.Filter, node) and needs_ties(node, meant)


def needs_ties(node: exp.Expr, meant: exp.Expr) -> bool:
    """Whether a call over a frame of values differs if the frame tells apart rows that tie."""
    name, frame = name_of_function(node.this), meant.args.get("spec")
    if not is_over_values(frame, meant.args.get("order")):
        return False
    if name not in EXTREMES:
        return name in OF_FRAME
    start, end = _ends(frame)
    if _may_ignore_nulls(node):
        return not start == end == "UNBOUNDED"
    return has_bounds(frame) or (start if EXTREMES[name] == "min" else end) != "UNBOUNDED"


def _ends(frame: exp.Expr | None) -> tuple[object, object]:
    if frame is None:
        return "UNBOUNDED", "CURRENT ROW"
    return frame.args.get("start"), frame.args.get("end") or "CURRENT ROW"


def _may_ignore_nulls(node: exp.Expr) -> bool:
    given = [*function_of(node.this).iter_expressions()]
    return len(given) > 1 or _has(exp.IgnoreNulls, node) or _has(exp.Filter, node)


def _has(kind: type[exp.Expr], node: exp.Expr) -> bool:
    """Whether the call of a window has a FILTER, IGNORE NULLS and the like, not one within it."""
    part, function = node.this, function_of(node.this)
    while part is not function and not isinstance(part, kind):
        part = part.this
    return part is not function


def has_other_ties(tree: exp.Expr) -> bool:
    """Whether older versions told rows that tie apart where this one does not, or the reverse: in
    calls that `rewrite_as_extreme` wrote over frames without bounds, in frames in lower case, which
    they did not know, and in ranks over frames of ROWS."""
    for node, meant in (
        each for select in tree.find_all(exp.Select) for each in calls_over_windows(select)
    ):
        name, frame = name_of_function(node.this), meant.args.get("spec")
        is_written = name in _BY and f" AS {_FIELD}0" in node.this.sql(DIALECT)
        is_pair = len([*function_of(node.this).iter_expressions()]) == 2
        if is_written and is_pair and not has_bounds(frame):
            return True
        is_of_rows = frame is not None and frame.args.get("kind") == "ROWS"
        if frame is not None and (IN_LOWER_CASE in frame.meta or (name in RANKS and is_of_rows)):
            return True
    return False


def rewrite_as_extreme(
    node: exp.Expr, order: exp.Expr, name: str, keys: Sequence[str], text: Text
) -> Iterator[Insertion]:
    """The call with its OVER as that of the least or the greatest row; nothing if the text has no
    place for it. The keys tell apart rows that tie in its order."""
    call = _call_in_text(function_of(node.this), text)
    if call is None:
        return
    is_first = EXTREMES.get(name) != "max"
    is_least = is_first is not bool(order.expressions[0].args.get("desc"))
    values = [*(field for each in order.expressions for field in _fields(each)), *keys]
    fields = (f"{each} AS {_FIELD}{place}" for place, each in enumerate(values))
    row = f"STRUCT({', '.join(fields)})"
    if _ignores_nulls(node, name):
        row = f"CASE WHEN ({call.argument(0, text)}) IS NOT NULL THEN {row} END"
    several = ""
    if name == "nth_value":
        several = call.argument(1, text) if len(call.marks) > 2 else "1"
        over = next(i for i, each in enumerate(text.tokens) if each.start >= call.end)
        end = text.tokens[closing(text.tokens, over + 1)].end + 1
        yield Insertion(end, f", {several} - 1)")
    made = "MIN_BY" if is_least else "MAX_BY"
    yield Insertion(call.name.start, f"{'GET(' if several else ''}{made}(", call.marks[0].end + 1)
    yield Insertion(call.marks[1].start, f", {', '.join(filter(None, [row, several]))})", call.end)


def _fields(key: exp.Expr) -> Iterator[str]:
    """A key as the fields of a STRUCT, to which NULL is less than all values."""
    value = key.this.sql(DIALECT)
    if bool(key.args.get("nulls_first")) is bool(key.args.get("desc")):
        yield f"{value} IS NULL"
    yield value


def has_bounds(frame: exp.Expr | None) -> bool:
    """Whether a frame begins or ends at a value, for which Spark takes no further ORDER BY."""
    ends = [] if frame is None else [frame.args.get("start"), frame.args.get("end")]
    return any(isinstance(each, exp.Expr) for each in ends)


def _ignores_nulls(node: exp.Expr, name: str) -> bool:
    given = [*function_of(node.this).iter_expressions()]
    flags = given[2 if name == "nth_value" else 1 :]
    said = any(isinstance(each.unnest(), exp.Boolean) and each.unnest().this for each in flags)
    return said or _has(exp.IgnoreNulls, node)
