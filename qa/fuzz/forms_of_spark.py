"""Functions and aggregates that only Spark has, or that DuckDB takes for something else.

Each stands behind a switch of `OF_SPARK`; every form is defined for every value.
"""

from __future__ import annotations

from qa.fuzz import forms
from qa.fuzz.forms import (
    BOOLEAN,
    DATE,
    DECIMAL,
    DOUBLE,
    INT,
    INTS,
    PLACE,
    STRING,
    TIMESTAMP,
    Form,
)
from qa.fuzz.schema import Kind

MAP, VARIANT = Kind.MAP, Kind.VARIANT


def _of(about: str, kind: Kind, takes: tuple[Kind, ...], *templates: str) -> list[Form]:
    return [Form(kind, template, takes, about) for template in templates]


_JSON = "PARSE_JSON(TO_JSON(NAMED_STRUCT('a', {0}, 'b', {1}, 'l', ARRAY({0}, 2))))"

SCALARS: list[Form] = [
    *forms.SCALARS,
    *_of(
        "text", STRING, (STRING,),
        "INITCAP({0})", "REVERSE({0})", "LPAD({0}, 4, '*')", "RPAD({0}, 3)", "REPEAT({0}, 2)",
        "TRANSLATE({0}, 'on', '01')", "REGEXP_REPLACE({0}, '[aeiou]+', '<$0>')",
        "REGEXP_EXTRACT({0}, '(n)(o)?', 2)", "SPLIT_PART({0}, 'o', 1)", "SPLIT({0}, 'o')[0]",
        "SUBSTRING_INDEX({0}, 'o', 1)", "LEFT({0}, 2)", "RIGHT({0}, 1)", "SUBSTR({0}, -2)",
        "OVERLAY({0} PLACING 'XY' FROM 2)", "MD5({0})", "SHA2({0}, 256)", "HEX({0})", "BASE64({0})",
        "FORMAT_STRING('%s|%5s', {0}, 'a')", "CONCAT_WS('-', {0}, 'x', {0})", "SOUNDEX({0})",
        "TRIM(LEADING 'n' FROM {0})", "BTRIM({0}, 'nh')", "QUOTE({0})", "NVL2({0}, 'y', 'n')",
        "DECODE({0}, 'north', 'N', 'south', 'S', 'other')", "ELT(2, 'a', {0})", "TYPEOF({0})",
        "{0} || NULL", "UCASE({0})", "SUBSTRING({0} FROM 2 FOR 2)", "LUHN_CHECK({0}) || ''",
        "URL_ENCODE({0})", "CHAR(LENGTH({0}) + 64)", "MASK({0})", "`REPLACE`({0}, 'o')",
    ),
    *_of(
        "text", INT, (STRING,),
        "CHAR_LENGTH({0})", "OCTET_LENGTH({0})", "ASCII({0})", "INSTR({0}, 'o')",
        "LOCATE('o', {0}, 2)", "POSITION('o' IN {0})", "LEVENSHTEIN({0}, 'nord')", "CRC32({0})",
        "TRY_CAST({0} AS INT)", "HASH({0})", "REGEXP_COUNT({0}, 'o')", "REGEXP_INSTR({0}, 'o')",
        "FIND_IN_SET({0}, 'south,north')", "SIZE(SPLIT({0}, ''))", "LEVENSHTEIN({0}, 'no', 2)",
    ),
    *_of("text", INT, (INT, STRING), "HASH({0}, {1})", "XXHASH64({1}, {0})"),
    *_of(
        "number", INT, (INT,),
        "SIGN({0})", "({0} DIV 2)", "PMOD({0}, 3)", "({0} & 1)", "({0} | 4)", "({0} ^ 1)",
        "(~ {0})",
        "SHIFTLEFT({0}, 2)", "({0} << 1)", "({0} >> 1)", "BIT_COUNT({0})", "CEIL({0} / 2)",
        "FLOOR({0} / 2)", "ROUND({0}, -1)", "ZEROIFNULL({0})", "NULLIFZERO({0})", "IFNULL({0}, 9)",
        "+ {0}", "CAST({0} AS SMALLINT)", "{0}::BIGINT", "NVL({0}, -1)", "TRY_ADD({0}, 1)",
        "FACTORIAL({0} & 3)", "GETBIT({0}, 0)", "WIDTH_BUCKET({0}, 0, 4, 2)", "POSITIVE({0})",
    ),
    *_of(
        "number", DECIMAL, (DECIMAL,),
        "ROUND({0}, 1)", "BROUND({0}, 0)", "FLOOR({0})", "CEIL({0}, 1)", "ABS({0})", "({0} % 1)",
        "CAST({0} AS DECIMAL(12, 1))", "({0} * 1.10)", "({0} / 4)", "NVL({0}, 0.0)",
    ),
    *_of(
        "number", DOUBLE, (DOUBLE,),
        "({0} * 2)", "NANVL({0}, 1)", "({0} + 0.5D)", "ROUND({0}, 1)", "CAST({0} AS FLOAT)",
        "- {0}",
    ),
    *_of("number", DOUBLE, (INT,), "({0} / 2)", "TRY_DIVIDE({0}, 0)", "SQRT(ABS({0}))"),
    *_of(
        "number", STRING, (INT,),
        "BIN({0})", "HEX({0})", "CONV({0}, 10, 2)", "FORMAT_NUMBER({0}, 2)", "TO_CHAR({0}, '999')",
        "SPACE({0} & 1)", "CASE WHEN {0} > 1 THEN 'a' WHEN {0} IS NULL THEN 'b' END",
    ),
    *_of("number", STRING, (DECIMAL,), "CAST({0} AS STRING)", "TO_CHAR({0}, 'S990.00')"),
    *_of(
        "date", DATE, (DATE,),
        "ADD_MONTHS({0}, 1)", "TRUNC({0}, 'MONTH')", "NEXT_DAY({0}, 'MO')", "({0} + 1)",
        "({0} - 1)",
        "({0} + INTERVAL 1 MONTH)", "({0} - INTERVAL '1' YEAR)", "DATEADD(DAY, 2, {0})",
        "CAST(DATE_TRUNC('QUARTER', {0}) AS DATE)", "DATE_SUB({0}, 1)", "LAST_DAY({0}) + 1",
    ),
    *_of(
        "date", INT, (DATE,),
        "WEEKDAY({0})", "DAYOFWEEK({0})", "DAYOFYEAR({0})", "QUARTER({0})", "WEEKOFYEAR({0})",
        "EXTRACT(DAY FROM {0})", "DATE_PART('month', {0})", "UNIX_DATE({0})", "DAY({0})",
        "EXTRACT(DAYOFWEEK_ISO FROM {0})", "EXTRACT(YEAROFWEEK FROM {0})",
        "DATEDIFF(MONTH, DATE '2013-01-01', {0})", "EXTRACT(DAYS FROM {0} - DATE '2013-01-01')",
    ),
    *_of(
        "date", STRING, (DATE,),
        "DATE_FORMAT({0}, 'yyyy/MM')", "DATE_FORMAT({0}, 'EEE d')", "DAYNAME({0})",
        "MONTHNAME({0})",
    ),
    *_of("date", DATE, (STRING,), "TRY_CAST({0} AS DATE)", "TRY_TO_DATE({0}, 'yyyy-MM-dd')"),
    *_of("date", DOUBLE, (DATE, DATE), "MONTHS_BETWEEN({0}, {1})"),
    *_of(
        "instant", TIMESTAMP, (TIMESTAMP,),
        "({0} - INTERVAL '90' MINUTE)", "({0} + INTERVAL 1 MONTH)", "DATE_TRUNC('WEEK', {0})",
        "FROM_UTC_TIMESTAMP({0}, 'America/New_York')", "TIMESTAMPADD(HOUR, 30, {0})",
        "CAST(CAST({0} AS DATE) AS TIMESTAMP)", "({0} + MAKE_DT_INTERVAL(1, 2))",
        "({0} - INTERVAL '1 02:03' DAY TO MINUTE)", "WINDOW({0}, '1 HOUR').start",
    ),
    *_of(
        "instant", INT, (TIMESTAMP,),
        "UNIX_SECONDS({0})", "UNIX_MICROS({0})", "MINUTE({0})", "EXTRACT(HOUR FROM {0})",
        "TIMESTAMPDIFF(MINUTE, TIMESTAMP '2013-01-31 00:00:00', {0})", "UNIX_TIMESTAMP({0})",
        "EXTRACT(HOUR FROM {0} - TIMESTAMP '2013-01-31 00:00:00')",
    ),
    *_of("instant", STRING, (TIMESTAMP,), "DATE_FORMAT({0}, 'HH:mm')", "CAST({0} AS STRING)"),
    *_of("instant", TIMESTAMP, (STRING,), "TRY_TO_TIMESTAMP({0})", "TRY_CAST({0} AS TIMESTAMP)"),
    *_of("instant", TIMESTAMP, (DATE,), "CAST({0} AS TIMESTAMP)", "({0} + INTERVAL 5 HOURS)"),
    *_of(
        "array function", INTS, (INTS,),
        "ARRAY_DISTINCT({0})", "ARRAY_COMPACT({0})", "REVERSE({0})", "SLICE({0}, 1, 1)",
        "ARRAY_APPEND({0}, 7)", "ARRAY_PREPEND({0}, NULL)", "ARRAY_REMOVE({0}, 2)",
        "FLATTEN(ARRAY({0}, {0}))", "SORT_ARRAY({0}, false)", "ARRAY_INSERT({0}, 1, 5)",
        "ZIP_WITH({0}, {0}, (x, y) -> x * 2 + y)", "TRANSFORM({0}, (x, i) -> x + i)",
        "ARRAY_SORT({0}, (l, r) -> CASE WHEN l IS NULL THEN 1 WHEN r IS NULL THEN -1 "
        "WHEN l < r THEN 1 WHEN l > r THEN -1 ELSE 0 END)", "CONCAT({0}, ARRAY(9))",
        "TRANSFORM(ARRAYS_ZIP({0}, {0}), p -> p['0'])", "ARRAY_REPEAT(SIZE({0}), 2)",
    ),
    *_of("array function", INTS, (INTS, INTS), "ARRAY_UNION({0}, {1})", "ARRAY_EXCEPT({0}, {1})",
         "ARRAY_INTERSECT({0}, {1})", "({0} || {1})"),
    *_of("array function", INTS, (INT,), "SEQUENCE(0, {0} & 3)", "ARRAY_REPEAT({0}, 2)"),
    *_of(
        "array function", INT, (INTS,),
        "ARRAY_MIN({0})", "CARDINALITY({0})", "ARRAY_SIZE({0})", "ARRAY_POSITION({0}, 2)",
        "REDUCE({0}, 0, (a, x) -> a + IFNULL(x, 1), a -> a * 2)", "TRY_ELEMENT_AT({0}, -1)",
    ),
    *_of("array function", STRING, (INTS,), "ARRAY_JOIN({0}, ',', '-')", "CAST({0} AS STRING)",
         "TO_JSON({0})"),
    *_of("json", STRING, (INT, STRING), "TO_JSON(NAMED_STRUCT('a', {0}, 'b', {1}))",
         "GET_JSON_OBJECT(TO_JSON(STRUCT({0} AS a, {1} AS b)), '$.b')",
         "TO_CSV(STRUCT({0}, {1}))"),
    *_of("json", INT, (INT, STRING), "FROM_JSON(TO_JSON(STRUCT({0} AS a, {1} AS b)), 'a INT').a",
         "JSON_ARRAY_LENGTH(TO_JSON(ARRAY({0}, LENGTH({1}))))",
         "FROM_CSV(TO_CSV(STRUCT({0}, {1})), 'a INT, b STRING').a"),
    *_of("json", PLACE, (INT, STRING),
         "FROM_JSON(TO_JSON(STRUCT({0} AS x, {1} AS y)), 'x INT, y STRING')"),
    *_of("map", MAP, (MAP,), "MAP_FILTER({0}, (k, v) -> v > 1)",
         "TRANSFORM_VALUES({0}, (k, v) -> v + 1)", "TRANSFORM_KEYS({0}, (k, v) -> k || '_')",
         "MAP_FROM_ENTRIES(MAP_ENTRIES({0}))", "MAP_ZIP_WITH({0}, {0}, (k, a, b) -> a * 2)"),
    *_of("map", MAP, (INT, INT), "MAP('a', {0}, 'b', {1})",
         "MAP_FROM_ARRAYS(ARRAY('a', 'c'), ARRAY({0}, {1}))", "MAP('b', {0}, 'a', {1})"),
    *_of("map", INT, (MAP,), "{0}['a']", "ELEMENT_AT({0}, 'b')", "SIZE({0})",
         "AGGREGATE(MAP_VALUES({0}), 0, (a, x) -> a + COALESCE(x, 0))"),
    *_of("map", STRING, (MAP,), "ARRAY_JOIN(ARRAY_SORT(MAP_KEYS({0})), '')"),
    *_of("map", INTS, (MAP,), "SORT_ARRAY(MAP_VALUES({0}))"),
    *_of("variant", VARIANT, (INT, STRING), _JSON, "TRY_PARSE_JSON({1})"),
    *_of("variant", VARIANT, (INT,), "CAST({0} AS VARIANT)", "TO_VARIANT_OBJECT(ARRAY({0}))"),
    *_of("variant", INT, (VARIANT,), "TRY_VARIANT_GET({0}, '$.a', 'int')",
         "TRY_VARIANT_GET({0}, '$.l[1]', 'bigint')"),
    *_of("variant", STRING, (VARIANT,), "TRY_VARIANT_GET({0}, '$.b', 'string')", "TO_JSON({0})",
         "SCHEMA_OF_VARIANT({0})"),
    *_of("json", INT, (STRING,), "TRY_PARSE_JSON('[' || LENGTH({0}) || ']'):[0]::int"),
]  # fmt: skip

PREDICATES: list[Form] = [
    *forms.PREDICATES,
    *_of(
        "text", BOOLEAN, (STRING,),
        "({0} LIKE ANY ('n%', '%h'))", "({0} LIKE ALL ('%o%', '%t%'))", "({0} ILIKE 'N%')",
        "({0} NOT LIKE ANY ('s%', '1'))", "CONTAINS({0}, 'or')", "STARTSWITH({0}, 'n')",
        "ENDSWITH({0}, 'h')", "({0} REGEXP 'o.t')", "({0} NOT RLIKE 'x')", "ISNULL({0})",
        "({0} LIKE 'n!_%' ESCAPE '!')", "({0} == 'north')", "({0} > 'o' COLLATE UTF8_LCASE)",
    ),
    *_of("number", BOOLEAN, (INT,), "({0} !> 1)", "({0} != 2)", "ISNOTNULL({0})",
         "CAST({0} AS BOOLEAN)", "(NOT {0} <=> 1)"),
    *_of("array function", BOOLEAN, (INTS,), "EXISTS({0}, x -> x = 2)", "FORALL({0}, x -> x > 0)",
         "ARRAYS_OVERLAP({0}, ARRAY(1, 7))", "({0} = ARRAY(1, 2))"),
    *_of("map", BOOLEAN, (MAP,), "MAP_CONTAINS_KEY({0}, 'a')", "({0} IS NULL)"),
    *_of("variant", BOOLEAN, (VARIANT,), "IS_VARIANT_NULL({0})", "({0} IS NOT NULL)"),
    *_of("date", BOOLEAN, (DATE,), "({0} BETWEEN '2013-01-01' AND DATE '2013-01-31')",
         "({0} >= DATE '2013-02-01' - INTERVAL 1 DAY)", "({0} < CURRENT_DATE)"),
    *_of("instant", BOOLEAN, (TIMESTAMP,), "({0} < NOW())", "(CAST({0} AS DATE) = '2013-01-31')"),
]  # fmt: skip

AGGREGATES: list[Form] = [
    *forms.AGGREGATES,
    *_of("more aggregates", INT, (INT,), "TRY_SUM({0})", "(MAX({0}) - MIN({0}))",
         "(SUM({0}) DIV NULLIF(COUNT({0}), 0))", "MAX(NAMED_STRUCT('v', {0})).v", "SUM(- {0})",
         "SIZE(COLLECT_SET({0}))", "APPROX_PERCENTILE({0}, 0.5)", "REGR_COUNT({0}, {0})",
         "COUNT(DISTINCT {0}, {0} % 2)", "SUM(IF({0} > 1, {0}, 0))", "MIN(ARRAY({0}, 1))[0]"),
    *_of("more aggregates", DOUBLE, (INT,), "TRY_AVG({0})", "MEAN({0})", "(SUM({0}) / COUNT(*))",
         "PERCENTILE({0}, ARRAY(0.25, 0.5))[1]", "AVG(DISTINCT {0})"),
    *_of("more aggregates", DECIMAL, (DECIMAL,), "AVG({0})", "TRY_SUM({0})", "SUM(DISTINCT {0})",
         "(SUM({0}) - MIN({0}))"),
    *_of("more aggregates", STRING, (STRING,), "MAX(UPPER({0}))", "MIN({0} COLLATE UTF8_LCASE)",
         "ARRAY_JOIN(SORT_ARRAY(COLLECT_LIST({0})), '+')",
         "LISTAGG({0}) WITHIN GROUP (ORDER BY {0})"),
    *_of("more aggregates", PLACE, (PLACE,), "MAX({0})", "MIN({0})"),
    *_of("more aggregates", INTS, (INTS,), "MAX({0})", "MIN({0})"),
    *_of("more aggregates", STRING, (INT, STRING), "MAX_BY({1}, ({0}, {1}))"),
    *_of("map", MAP, (INT, STRING), "MAP('n', COUNT({0}), 'm', MAX(LENGTH({1})))"),
    *_of("variant", VARIANT, (INT,), "PARSE_JSON(TO_JSON(STRUCT(MAX({0}) AS a, COUNT(*) AS b)))"),
]  # fmt: skip
