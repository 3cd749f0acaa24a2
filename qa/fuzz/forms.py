"""Scalar functions and aggregates, each as a typed form: what it takes, what it gives, its text.

Every form is defined for every value: no cast that can fail, no division, no index out of bounds.
"""

from __future__ import annotations

from dataclasses import dataclass

from qa.fuzz.schema import Kind

INT, STRING, DECIMAL, DATE = Kind.INT, Kind.STRING, Kind.DECIMAL, Kind.DATE
BOOLEAN, TIMESTAMP, INTS = Kind.BOOLEAN, Kind.TIMESTAMP, Kind.INTS
PLACE, DOUBLE = Kind.PLACE, Kind.DOUBLE
COMPARABLE = (INT, STRING, DECIMAL, DATE, BOOLEAN, TIMESTAMP)


@dataclass(frozen=True)
class Form:
    kind: Kind
    template: str
    takes: tuple[Kind, ...] = ()
    about: str = ""


def _same(*templates: str, kinds: tuple[Kind, ...], about: str = "") -> list[Form]:
    """Forms whose arguments and result are of one kind, for each of the kinds."""
    return [
        Form(kind, template, (kind,) * _arity(template), about)
        for kind in kinds
        for template in templates
    ]


def _each(
    kind: Kind, template: str, takes: tuple[Kind, ...], about: str, *words: str
) -> list[Form]:
    """Forms of one template, with each of the words in it."""
    return [Form(kind, template.replace("WORD", word), takes, about) for word in words]


def _arity(template: str) -> int:
    return sum(f"{{{i}}}" in template for i in range(4))


SCALARS: list[Form] = [
    *_same("COALESCE({0}, {1})", "NULLIF({0}, {1})", kinds=COMPARABLE),
    *_same("GREATEST({0}, {1})", "LEAST({0}, {1})", kinds=(INT, DECIMAL, STRING, DATE)),
    *[
        Form(kind, template, (BOOLEAN, kind, kind), "case")
        for kind in (*COMPARABLE, INTS)
        for template in ("CASE WHEN {0} THEN {1} ELSE {2} END", "IF({0}, {1}, {2})")
    ],
    *[Form(k, "CASE WHEN {0} THEN {1} END", (BOOLEAN, k), "case") for k in COMPARABLE],
    Form(STRING, "CASE {0} WHEN 1 THEN {1} WHEN 2 THEN 'two' END", (INT, STRING), "case"),
    Form(INT, "({0} + {1})", (INT, INT)),
    Form(INT, "({0} - {1})", (INT, INT)),
    Form(INT, "({0} * 2)", (INT,)),
    Form(INT, "({0} % 2)", (INT,)),
    Form(INT, "(- {0})", (INT,)),
    Form(INT, "ABS({0})", (INT,)),
    Form(INT, "LENGTH({0})", (STRING,)),
    Form(INT, "CAST({0} AS INT)", (BOOLEAN,)),
    Form(INT, "YEAR({0})", (DATE,)),
    Form(INT, "MONTH({0})", (DATE,)),
    Form(INT, "DATEDIFF({0}, {1})", (DATE, DATE)),
    Form(INT, "HOUR({0})", (TIMESTAMP,), "timestamp"),
    Form(INT, "SIZE({0})", (INTS,), "array"),
    Form(INT, "ARRAY_MAX({0})", (INTS,), "array"),
    Form(INT, "GET({0}, 0)", (INTS,), "array"),
    Form(INT, "TRY_ELEMENT_AT({0}, 1)", (INTS,), "array"),
    Form(INT, "AGGREGATE({0}, 0, (a, x) -> a + COALESCE(x, 0))", (INTS,), "lambda"),
    Form(INT, "{0}.x", (PLACE,), "struct"),
    Form(STRING, "{0}.y", (PLACE,), "struct"),
    Form(STRING, "UPPER({0})", (STRING,)),
    Form(STRING, "CONCAT({0}, {1})", (STRING, STRING)),
    Form(STRING, "({0} || '-')", (STRING,)),
    Form(STRING, "SUBSTRING({0}, 1, 2)", (STRING,)),
    Form(STRING, "REPLACE({0}, 'n', 'm')", (STRING,)),
    Form(STRING, "TRIM({0})", (STRING,)),
    Form(STRING, "CAST({0} AS STRING)", (INT,)),
    Form(STRING, "CAST({0} AS STRING)", (DATE,)),
    Form(DECIMAL, "({0} + {1})", (DECIMAL, DECIMAL)),
    Form(DECIMAL, "({0} - 0.5)", (DECIMAL,)),
    Form(DECIMAL, "(- {0})", (DECIMAL,)),
    Form(DATE, "DATE_ADD({0}, 1)", (DATE,)),
    Form(DATE, "LAST_DAY({0})", (DATE,)),
    Form(DATE, "CAST({0} AS DATE)", (TIMESTAMP,), "timestamp"),
    Form(TIMESTAMP, "({0} + INTERVAL 1 DAY)", (TIMESTAMP,), "timestamp"),
    Form(TIMESTAMP, "DATE_TRUNC('HOUR', {0})", (TIMESTAMP,), "timestamp"),
    Form(INTS, "ARRAY({0}, {1})", (INT, INT), "array"),
    Form(INTS, "SORT_ARRAY({0})", (INTS,), "array"),
    Form(INTS, "TRANSFORM({0}, x -> x + 1)", (INTS,), "lambda"),
    Form(INTS, "FILTER({0}, x -> x > 1)", (INTS,), "lambda"),
    Form(PLACE, "STRUCT({0} AS x, {1} AS y)", (INT, STRING), "struct"),
    Form(PLACE, "NAMED_STRUCT('x', {0}, 'y', {1})", (INT, STRING), "struct"),
]

PREDICATES: list[Form] = [
    *[
        Form(BOOLEAN, f"({{0}} {op} {{1}})", (k, k))
        for k in COMPARABLE
        for op in ("=", "<>", "<", ">=")
    ],
    *[
        Form(BOOLEAN, template, (kind, kind), "null-safe")
        for kind in (*COMPARABLE, PLACE)
        for template in ("({0} <=> {1})", "({0} IS DISTINCT FROM {1})")
    ],
    *[
        Form(BOOLEAN, template, (kind,))
        for kind in (*COMPARABLE, INTS, DOUBLE)
        for template in ("({0} IS NULL)", "({0} IS NOT NULL)")
    ],
    Form(BOOLEAN, "({0} AND {1})", (BOOLEAN, BOOLEAN)),
    Form(BOOLEAN, "({0} OR {1})", (BOOLEAN, BOOLEAN)),
    Form(BOOLEAN, "(NOT {0})", (BOOLEAN,)),
    *_each(BOOLEAN, "({0} IS WORD)", (BOOLEAN,), "truth", "TRUE", "NOT TRUE", "FALSE", "NOT FALSE"),
    Form(BOOLEAN, "({0} BETWEEN 1 AND 2)", (INT,)),
    Form(BOOLEAN, "({0} NOT BETWEEN {1} AND {2})", (INT, INT, INT)),
    Form(BOOLEAN, "({0} IN (1, 2))", (INT,), "in list"),
    Form(BOOLEAN, "({0} NOT IN (1, 3))", (INT,), "in list"),
    Form(BOOLEAN, "({0} IN ('north', '1'))", (STRING,), "in list"),
    Form(BOOLEAN, "({0} IN ({1}, {2}))", (INT, INT, INT), "in list"),
    Form(BOOLEAN, "({0} LIKE '%o%')", (STRING,), "like"),
    Form(BOOLEAN, "({0} NOT LIKE 's%')", (STRING,), "like"),
    Form(BOOLEAN, "({0} RLIKE '^n')", (STRING,), "like"),
    Form(BOOLEAN, "ARRAY_CONTAINS({0}, 2)", (INTS,), "array"),
    Form(BOOLEAN, "({0} > CURRENT_TIMESTAMP() - INTERVAL 1 DAY)", (TIMESTAMP,), "now"),
    Form(BOOLEAN, "({0} > 0.4)", (DOUBLE,)),
]

LITERALS: dict[Kind, tuple[str, ...]] = {
    INT: ("1", "2", "0"),
    STRING: ("'north'", "'1'"),
    DECIMAL: ("CAST(1.50 AS DECIMAL(10, 2))",),
    DATE: ("DATE '2013-01-31'",),
    BOOLEAN: ("true", "false"),
    TIMESTAMP: ("TIMESTAMP '2013-01-31 10:00:00'",),
    INTS: ("ARRAY(1, 2)",),
    PLACE: ("NAMED_STRUCT('x', 1, 'y', 'north')",),
    DOUBLE: ("CAST(0.5 AS DOUBLE)",),
    Kind.MAP: ("MAP('a', 1)",),
    Kind.VARIANT: ("PARSE_JSON('[1]')",),
}
"""The first of a kind is the one that shrinking ends at."""

AGGREGATES: list[Form] = [
    Form(INT, "COUNT(*)"),
    *[Form(INT, "COUNT({0})", (kind,)) for kind in (INT, STRING, DATE, INTS)],
    Form(INT, "SUM({0})", (INT,)),
    Form(INT, "SUM({0})", (INT,)),
    Form(DECIMAL, "SUM({0})", (DECIMAL,)),
    Form(DOUBLE, "SUM({0})", (DOUBLE,)),
    Form(DOUBLE, "AVG({0})", (INT,)),
    *_same("MIN({0})", "MAX({0})", kinds=(INT, STRING, DECIMAL, DATE, TIMESTAMP, BOOLEAN, DOUBLE)),
    Form(INT, "COUNT(DISTINCT {0})", (INT,), "count distinct"),
    Form(INT, "COUNT(DISTINCT {0})", (STRING,), "count distinct"),
    Form(INT, "COUNT(DISTINCT {0}, {1})", (INT, STRING), "count distinct"),
    Form(INT, "SUM(DISTINCT {0})", (INT,), "sum distinct"),
    *_each(
        BOOLEAN, "WORD({0})", (BOOLEAN,), "bool aggregate",
        "BOOL_AND", "BOOL_OR", "EVERY", "SOME", "ANY",
    ),
    *_each(INT, "WORD({0})", (INT,), "bit aggregate", "BIT_AND", "BIT_OR", "BIT_XOR"),
    # DuckDB counts NULLs alone as NULL, Spark as 0.
    Form(INT, "COUNT_IF(COALESCE({0}, false))", (BOOLEAN,), "count_if"),
    Form(INTS, "SORT_ARRAY(COLLECT_LIST({0}))", (INT,), "collect"),
    Form(INTS, "SORT_ARRAY(COLLECT_SET({0}))", (INT,), "collect"),
    Form(INTS, "SORT_ARRAY(ARRAY_AGG({0}))", (INT,), "collect"),
    Form(STRING, "LISTAGG({0}, ',') WITHIN GROUP (ORDER BY {0})", (STRING,), "listagg"),
    Form(STRING, "STRING_AGG({0}, '') WITHIN GROUP (ORDER BY {0} DESC)", (STRING,), "listagg"),
    Form(STRING, "LISTAGG(DISTINCT {0}, ',') WITHIN GROUP (ORDER BY {0})", (STRING,), "listagg"),
    *_each(
        DOUBLE, "ROUND(WORD({0}), 4)", (INT,), "variance",
        "STDDEV", "STDDEV_POP", "VAR_POP", "VAR_SAMP", "VARIANCE",
    ),
    *_each(
        DOUBLE, "ROUND(WORD({0}, {1}), 4)", (INT, INT), "covariance", "COVAR_POP", "COVAR_SAMP"
    ),
    *_each(
        DOUBLE, "ROUND(WORD({0}, {1}), 4)", (INT, INT), "regression",
        "REGR_AVGX", "REGR_AVGY", "REGR_SXX", "REGR_SYY", "REGR_SXY", "REGR_COUNT",
        "REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2",
    ),
    Form(DOUBLE, "ROUND(CORR({0}, {1}), 4)", (INT, INT), "correlation"),
    Form(DOUBLE, "PERCENTILE({0}, 0.5)", (INT,), "percentile"),
    Form(DOUBLE, "MEDIAN({0})", (INT,), "percentile"),
    Form(DOUBLE, "PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY {0})", (INT,), "percentile"),
    Form(DOUBLE, "PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY {0} DESC)", (INT,), "percentile"),
    Form(INT, "MODE() WITHIN GROUP (ORDER BY {0})", (INT,), "mode"),
    Form(INT, "MODE({0}, true)", (INT,), "mode"),
    Form(INT, "MAX_BY({0}, STRUCT({1}, {0}))", (INT, STRING), "max_by"),
    Form(STRING, "MIN_BY({0}, STRUCT({1}, {0}))", (STRING, INT), "max_by"),
    Form(INT, "APPROX_COUNT_DISTINCT({0})", (INT,), "approximate"),
    Form(DOUBLE, "ROUND(SKEWNESS({0}), 3)", (INT,), "moments"),
    Form(DOUBLE, "ROUND(KURTOSIS({0}), 3)", (INT,), "moments"),
]  # fmt: skip
"""Each gives one value for one multiset of rows: what lists rows sorts them, ties are settled."""

RANKS: list[Form] = [
    Form(INT, "RANK()"),
    Form(INT, "DENSE_RANK()"),
    Form(DOUBLE, "PERCENT_RANK()"),
    Form(DOUBLE, "CUME_DIST()"),
]
"""Rows that tie get the same value: any order will do."""
POSITIONS: list[Form] = [
    Form(INT, "ROW_NUMBER()"),
    Form(INT, "NTILE(2)"),
    *[Form(k, "LAG({0})", (k,)) for k in COMPARABLE],
    *[Form(k, "LEAD({0}, 2)", (k,)) for k in COMPARABLE],
    Form(INT, "LAG({0}, 1, 0)", (INT,)),
    *[Form(k, "FIRST_VALUE({0})", (k,)) for k in COMPARABLE],
    *[Form(k, "LAST_VALUE({0})", (k,)) for k in COMPARABLE],
    Form(INT, "NTH_VALUE({0}, 2)", (INT,)),
]
"""What a row gets depends on its place: only a total order settles it."""
TOTALS: list[Form] = [
    Form(INT, "COUNT(*)"),
    Form(INT, "COUNT({0})", (STRING,)),
    Form(INT, "SUM({0})", (INT,)),
    Form(DECIMAL, "SUM({0})", (DECIMAL,)),
    Form(DOUBLE, "AVG({0})", (INT,)),
    *_same("MIN({0})", "MAX({0})", kinds=(INT, STRING, DATE, DECIMAL)),
]
"""Aggregates over a frame."""
ROWS_FRAMES = (
    "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING",
    "ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING",
)
RANGE_FRAMES = (
    "RANGE BETWEEN 1 PRECEDING AND CURRENT ROW",
    "RANGE BETWEEN CURRENT ROW AND 1 FOLLOWING",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING",
)
