"""Make the answer of a query unique if SQL allows several.

Some queries have more than one right answer. Rows that tie in an ORDER BY may come in any order
under ROW_NUMBER, LAG or LIMIT; COLLECT_LIST may list a group in any order; MAX_BY and MODE may meet
a tie. Any of Spark's answers would be right, but every refresh must get the same one, or it would
delete rows that do not exist.

So the text is made more specific, by insertions:

    ROW_NUMBER, NTILE, LAG, LEAD, FIRST_VALUE, …   ORDER BY …, every column that the query reads
    ROWS frames                                    likewise
    NTH_VALUE, LAST_VALUE, … over RANGE frames     MIN_BY or MAX_BY, by the order and every column
    FIRST_VALUE, COLLECT_LIST, … OVER unordered    ORDER BY …, and a frame of the whole partition
    ORDER BY … LIMIT                               ORDER BY …, every column of the result
    LIMIT and OFFSET without ORDER BY              ORDER BY every column of the result
    COLLECT_LIST, COLLECT_SET, ARRAY_AGG           SORT_ARRAY(…)
    LISTAGG, STRING_AGG                            WITHIN GROUP (ORDER BY …, the value)
    FIRST, ANY_VALUE / LAST                        MIN / MAX
    … of a MAP                                     of the list of its entries, and back
    … of a VARIANT                                 MIN_BY / MAX_BY of it, by its comparable form
    MAX_BY(x, y), MIN_BY                           by y, then by x
    MODE(x)                                        MODE(x, true)

Any answer to the more specific text is also an answer to the user's.

Calls over one named window may need different orders:

    ROW_NUMBER() OVER w, RANK() OVER w … WINDOW w AS (ORDER BY x)

ROW_NUMBER tells rows that tie apart, and RANK must not: with more columns in the ORDER BY of w, no
rows would tie. So a call that needs them gets its own copy of the definition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from dagster_streamtables.compiler.analyze.group_and_order_by import (
    columns_of_order,
    is_of_all,
)
from dagster_streamtables.compiler.analyze.ordered_aggregates import (
    Insertion,
    calls_over_windows,
    chooses_a_row,
    missing_orders,
    needs_order,
    needs_ties,
    require_no_parallel_lists,
    rewrite_as_extreme,
)
from dagster_streamtables.compiler.analyze.tie_numbers import (
    TieColumns,
    TieNumber,
    is_unsortable,
    tie_numbers,
)
from dagster_streamtables.compiler.operators.comparable import comparable, has_form
from dagster_streamtables.compiler.text import spark_functions
from dagster_streamtables.compiler.text.column_names import in_words
from dagster_streamtables.compiler.text.group_by import (
    grouping_keys,
    has_groups,
    has_sets,
    name_of_function,
)
from dagster_streamtables.compiler.text.places import Mistake, Refusal, span
from dagster_streamtables.compiler.text.query_text import Text
from dagster_streamtables.compiler.text.sqlglot_dialects import DIALECT
from dagster_streamtables.compiler.text.strict_parser import end_of_keys, span_of_order
from dagster_streamtables.compiler.text.token_edits import closing, keyword_of, opening_around


def make_deterministic(text: Text, qualified: exp.Query) -> Text:
    """The text with a unique answer.

    Args:
        text: As the user wrote it.
        qualified: Its tree, with the table and type of every column known.

    Raises:
        InvalidDefinition: A window function lacks an order that Spark requires.
        UnsupportedQuery: It depends on an order that the query cannot define.
    """
    try:
        require_no_parallel_lists(qualified)
        found = [*missing_orders(text, qualified)]
        if qualified.find(exp.Window) is not None:
            numbers = tie_numbers(text, qualified)
            found += _ties_of_windows(text, qualified, numbers)
            for number in numbers.values():
                found += number.insertions(_all_columns(number.inner, text, numbers))
        if qualified.find(exp.Limit, exp.Offset) is not None:
            found += _ties_of_limits(text, qualified)
    except Refusal as refusal:
        raise refusal.in_text(text) from None
    return text.with_edits(each.edit for each in sorted(set(found), key=lambda each: each.words))


def _ties_of_windows(
    text: Text, qualified: exp.Query, numbers: Mapping[int, TieNumber]
) -> Iterator[Insertion]:
    for select in qualified.find_all(exp.Select):
        known: list[str] | None = None
        for node, meant in calls_over_windows(select):
            _require_order(node, meant)
            order = meant.args.get("order")
            name = name_of_function(node.this)
            chooses = order is not None and chooses_a_row(node, meant)
            if not chooses and not needs_order(node, meant):
                continue
            known = keys = _all_columns(select, text, numbers) if known is None else known
            if order is not None and chooses:
                yield from rewrite_as_extreme(node, order, name, keys, text)
            else:
                more = _extend_order(node, meant, keys, text)
                shared = meant is not node and _is_shared(meant, select)
                yield from _apart(node, more, text) if shared else more


_DEFINITION = ("partition_by", "order", "spec")


def _is_shared(meant: exp.Expr, select: exp.Select) -> bool:
    """Whether rows that tie are the same to some call of a SELECT over a window with a name."""
    return any(
        not needs_order(call, window)
        and all(window.args.get(part) == meant.args.get(part) for part in _DEFINITION)
        for call, window in calls_over_windows(select)
        if window is not call
    )


def _apart(call: exp.Expr, added: Iterable[Insertion], text: Text) -> Iterator[Insertion]:
    """Replace the name after OVER by the definition of the window and its additions."""
    name, tokens = span(call.args["alias"]), text.tokens
    for each in added if name is not None else ():
        last = max(i for i, token in enumerate(tokens) if token.start < each.at)
        is_empty = tokens[last].token_type is TokenType.L_PAREN
        opening = last if is_empty else opening_around(tokens, last)
        assert name is not None and opening is not None
        before = text.sql[tokens[opening].start : each.at]
        after = text.sql[each.at : tokens[closing(tokens, opening)].end + 1]
        yield Insertion(name[0], f"{before}{each.words}{after}", name[1] + 1)


def _require_order(node: exp.Expr, meant: exp.Expr) -> None:
    if meant.args.get("order") is None and name_of_function(node.this) in spark_functions.WINDOW:
        raise Mistake(
            node,
            f"{name_of_function(node.this).upper()} over unordered rows",
            why="Spark requires an order for it, in mode FULL too",
            fix="add ORDER BY inside OVER (…)",
        )


def remaining_ties(text: Text, qualified: exp.Query) -> tuple[str, ...]:
    """The ORDER BYs of windows below other windows that may take rows that tie in another order."""
    if qualified.find(exp.Window) is None:
        return ()
    found: dict[str, None] = {}
    numbers = tie_numbers(text, qualified).values()
    told_apart = [id(each.inner) for each in numbers]
    for select, lacks in TieColumns(text.aliases).remaining_in(qualified):
        if id(select) in told_apart:
            continue
        differ = f", or differ in {', '.join(lacks)} only" if lacks else ""
        for _, window in calls_over_windows(select):
            order = window.args.get("order")
            if order is not None:
                key = order.expressions[0].this
                what = key.name if isinstance(key, exp.Column) else key.sql(DIALECT)
                found[f"ORDER BY {what}: rows that are equal{differ}"] = None
    return tuple(found)


def _extend_order(
    node: exp.Expr, meant: exp.Expr, words: list[str], text: Text
) -> Iterator[Insertion]:
    order, frame = meant.args.get("order"), meant.args.get("spec")
    if needs_ties(node, meant):
        raise Refusal(
            node,
            f"{name_of_function(node.this).upper()} over a RANGE frame",
            why="in a RANGE frame, rows that tie in ORDER BY have no order",
            fix="write ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW after ORDER BY",
        )
    if order is None:
        at = end_of_keys(meant)
        words = [f" ORDER BY {', '.join(words)}{'' if frame else _WHOLE} "] if words else []
    else:
        known = span_of_order(order)
        at = known[1] if known is not None else None
        words = [f", {word}" for word in words]
    assert at is not None, "the parser notes where each order and window ends"
    if words:
        yield Insertion(at, "".join(words))


_WHOLE = " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
"""The frame of a window without an order: with one, it would end at the current row."""


def _ties_of_limits(text: Text, qualified: exp.Query) -> Iterator[Insertion]:
    for query in qualified.find_all(exp.Query):
        order, limit = (query.args.get(each) for each in ("order", "limit"))
        limit = limit or query.args.get("offset")
        at = None if limit is None else _word_of_limit(limit, text)
        if limit is None or at is None or (order is not None and is_of_all(order)):
            continue
        known = columns_of_order(query)
        numbers = [
            _order_item(output, number)
            for number, output in enumerate(query.selects, start=1)
            if output.alias_or_name not in known and not is_unsortable(output)
        ]
        if order is None:
            _require_sortable(query, limit)
            pipe = " |>" if text.tokens[at - 1].token_type is TokenType.PIPE_GT else ""
            yield Insertion(text.tokens[at].start, f"ORDER BY {', '.join(numbers)}{pipe} ")
        elif numbers and (known := span_of_order(order)) is not None:
            yield Insertion(known[1], "".join(f", {number}" for number in numbers))


def _order_item(output: exp.Expr, number: int) -> str:
    """An item of ORDER BY for a column of the result: its number, or its comparable form."""
    if not has_form(output.unalias().type):
        return str(number)
    own = exp.column(output.alias_or_name, quoted=True)
    return comparable(own, output.unalias().type).sql(DIALECT)


def _require_sortable(query: exp.Query, limit: exp.Expr) -> None:
    """Require rows that can be ordered. A recursion cannot: Spark ends it when a LIMIT has enough
    rows; ordered, it would run to its end, which it may not have."""
    if any(map(is_unsortable, query.selects)):
        raise Refusal(
            limit,
            "LIMIT without ORDER BY over values that cannot be compared",
            why="each run could choose other rows, and no order decides between these",
            fix="add ORDER BY, or extract the entries you need before",
        )
    clauses = (each for each in query.root().find_all(exp.With) if each.recursive)
    named = {cte.alias for each in clauses for cte in each.expressions}
    if any(table.name in named for table in query.find_all(exp.Table)):
        raise Refusal(
            limit,
            "LIMIT without ORDER BY over a recursion",
            why="each run could choose other rows, and to order them it would have to end first",
            fix="add ORDER BY, and a condition that ends the recursion",
        )


def _word_of_limit(limit: exp.Expr, text: Text) -> int | None:
    """The number of the token LIMIT or OFFSET, before which an ORDER BY can be inserted; None if
    it does not matter which rows are taken."""
    known = span(limit)
    around = limit.find_ancestor(exp.Query)
    if known is None or (around is not None and isinstance(around.parent, exp.Exists)):
        return None
    before = sum(each.end < known[0] for each in text.tokens)
    words = reversed(range(before))
    return next(i for i in words if keyword_of(text.tokens[i]) in ("LIMIT", "OFFSET"))


def _all_columns(select: exp.Select, text: Text, numbers: Mapping[int, TieNumber]) -> list[str]:
    """The columns that a SELECT reads, or its group keys: rows that agree on them are the same."""
    group = select.args.get("group")
    if group is not None:
        keys = [key.sql(DIALECT) for key in grouping_keys(group) if not is_unsortable(key)]
        # A key that a set leaves out is NULL, as it is where its column is.
        sets = ["grouping_id()"] if has_sets(group) else []
        return [*dict.fromkeys(keys), *sets]
    if has_groups(select):
        return []
    columns = [
        comparable(_author_column(each.table, each.name, text), each.type).sql(DIALECT)
        for each in TieColumns(text.aliases).of(select)
    ]
    number = numbers.get(id(select))
    return (
        [_author_column(number.table, number.name, text).sql(DIALECT), *columns]
        if number
        else columns
    )


def _author_column(table: str, name: str, text: Text) -> exp.Column:
    table, name = in_words(table, name, text.aliases)
    return exp.column(name, table=table or None, quoted=True)
