"""Spark's functions, grouped by how they can be maintained, and their numbers of arguments.

A change evaluates a function when a row is inserted and again when it is deleted, so the result
may depend on nothing but the row. `SCALAR` lists such functions of Spark 4.2 that sqlglot prints
without changing their meaning: each was run on the examples of Spark's documentation, as written
and as printed. A name in no list is a user-defined function, about which nothing is known.

`require_arguments` refuses calls with a wrong number of arguments: sqlglot crashes on some of them,
and drops superfluous arguments of others.
"""

from __future__ import annotations

from sqlglot.tokenizer_core import Token, TokenType

from dagster_streamtables.compiler.text.token_edits import closing, depths, outermost
from dagster_streamtables.errors import InvalidDefinition, underline

_SCALAR = """
    abs acos acosh add_months array array_append array_compact array_contains array_distinct
    array_except array_insert array_intersect array_join array_max array_min array_position
    array_prepend array_remove array_repeat array_size array_union arrays_overlap arrays_zip
    ascii asin asinh atan atan2 atanh base64 bigint bin bit_count bit_get bit_length boolean
    bround btrim cardinality cast cbrt ceil ceiling char char_length character_length chr
    coalesce collate concat concat_ws contains conv convert_timezone cos cosh cot crc32 csc date
    date_add date_diff date_from_unix_date date_part date_trunc dateadd datediff datepart day
    dayname dayofmonth dayofweek dayofyear decimal decode degrees double e element_at elt encode
    endswith equal_null exp expm1 extract factorial find_in_set flatten float floor
    format_number format_string from_utc_timestamp get get_json_object getbit greatest hash hex
    hour hypot if ifnull ilike initcap instr int isnan isnotnull isnull json_array_length
    json_object_keys last_day lcase least left len length like ln locate log log10 log1p log2
    lower lpad ltrim luhn_check make_date map_contains_key map_keys map_values mask md5 minute
    mod month monthname months_between named_struct nanvl negative next_day nullif nullifzero
    nvl nvl2 octet_length overlay parse_url pi pmod position positive pow power printf quarter
    radians regexp regexp_count regexp_extract regexp_extract_all regexp_instr regexp_like
    regexp_replace regexp_substr repeat replace reverse right rint rlike round rpad rtrim sec
    second sequence sha sha1 sha2 shiftleft shiftright sign signum sin sinh size slice smallint
    sort_array soundex space split split_part sqrt startswith string struct substr substring
    substring_index tan tanh timestamp timestamp_micros timestamp_millis timestamp_seconds
    timestampadd timestampdiff tinyint to_binary to_json to_number to_timestamp_ltz
    to_timestamp_ntz to_utc_timestamp translate trim trunc try_add try_cast try_divide
    try_element_at try_mod try_multiply try_subtract try_to_binary try_to_number try_to_timestamp
    try_url_decode ucase unbase64 unhex unix_micros unix_millis unix_seconds upper url_decode
    url_encode weekday weekofyear width_bucket xxhash64 year zeroifnull
"""
_AGGREGATES = """
    any any_value approx_count_distinct approx_percentile approx_top_k approx_top_k_accumulate
    approx_top_k_combine array_agg bit_and bit_or bit_xor bitmap_and_agg bitmap_construct_agg
    bitmap_or_agg bool_and bool_or collect_list collect_set corr count_if count_min_sketch covar_pop
    covar_samp every first first_value grouping grouping_id hll_sketch_agg hll_union_agg kurtosis
    last last_value listagg max_by mean measure median min_by mode percentile percentile_approx
    percentile_cont percentile_disc regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope
    regr_sxx regr_sxy regr_syy schema_of_variant_agg skewness some std stddev stddev_pop stddev_samp
    string_agg theta_intersection_agg theta_sketch_agg theta_union_agg try_avg try_sum
    tuple_intersection_agg_double tuple_intersection_agg_integer tuple_sketch_agg_double
    tuple_sketch_agg_integer tuple_union_agg_double tuple_union_agg_integer var_pop var_samp
    variance vector_avg vector_sum
"""
_UNREPEATABLE = """
    assert_true histogram_numeric input_file_block_length input_file_block_start input_file_name
    java_method kll_merge_agg_bigint kll_merge_agg_double kll_merge_agg_float kll_sketch_agg_bigint
    kll_sketch_agg_double kll_sketch_agg_float monotonically_increasing_id raise_error rand randn
    random randstr reflect shuffle spark_partition_id try_reflect uniform uuid
"""
_CLOCK = """
    current_catalog current_database current_path current_schema current_time current_timezone
    current_user session_user user version
"""
_TABLE_VALUED = """
    explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer range stack
    variant_explode variant_explode_outer
"""
_MAPS = """
    map map_concat map_filter map_from_arrays map_from_entries map_zip_with str_to_map
    transform_keys transform_values var_map
"""
_OTHERS = """
    aes_encrypt collation collations make_time python_worker_logs sql_keywords
    time_diff time_from_micros time_from_millis time_from_seconds time_to_micros time_to_millis
    time_to_seconds time_trunc to_time try_to_time window_time
"""
_LAMBDAS = """
    aggregate array_sort exists filter forall map_filter map_zip_with reduce transform
    transform_keys transform_values zip_with
"""
_AS_WRITTEN = """
    aes_decrypt approx_top_k_estimate bitmap_bit_position bitmap_bucket_number bitmap_count
    date_format date_sub from_avro from_csv from_json from_protobuf from_unixtime from_xml
    hll_sketch_estimate hll_union is_valid_utf8 is_valid_variant is_variant_null
    kll_sketch_get_n_bigint kll_sketch_get_n_double kll_sketch_get_n_float
    kll_sketch_get_quantile_bigint kll_sketch_get_quantile_double kll_sketch_get_quantile_float
    kll_sketch_get_rank_bigint kll_sketch_get_rank_double kll_sketch_get_rank_float
    kll_sketch_merge_bigint kll_sketch_merge_double kll_sketch_merge_float
    kll_sketch_to_string_bigint kll_sketch_to_string_double kll_sketch_to_string_float
    levenshtein log10 log2 make_dt_interval make_timestamp make_timestamp_ltz make_timestamp_ntz
    make_valid_utf8 make_ym_interval map map_concat map_entries map_from_arrays map_from_entries
    parse_json quote schema_of_avro schema_of_csv schema_of_json schema_of_variant schema_of_xml
    sentences shiftrightunsigned st_asbinary st_geogfromwkb st_geomfromwkb st_setsrid st_srid
    str_to_map theta_difference theta_intersection theta_sketch_estimate theta_union time_bucket
    to_avro to_char to_csv to_date to_protobuf to_timestamp to_unix_timestamp to_varchar
    to_variant_object to_xml try_aes_decrypt try_make_timestamp try_make_timestamp_ltz
    try_make_timestamp_ntz try_parse_json try_parse_url try_to_date try_validate_utf8
    try_variant_get tuple_difference_double tuple_difference_integer
    tuple_difference_theta_double tuple_difference_theta_integer tuple_intersection_double
    tuple_intersection_integer tuple_intersection_theta_double tuple_intersection_theta_integer
    tuple_sketch_estimate_double tuple_sketch_estimate_integer tuple_sketch_summary_double
    tuple_sketch_summary_integer tuple_sketch_theta_double tuple_sketch_theta_integer
    tuple_union_double tuple_union_integer tuple_union_theta_double tuple_union_theta_integer
    typeof unix_date unix_timestamp validate_utf8 variant_get vector_cosine_similarity
    vector_inner_product vector_l2_distance vector_norm vector_normalize xpath xpath_boolean
    xpath_double xpath_float xpath_int xpath_long xpath_number xpath_short xpath_string
"""
_WINDOW = """
    cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number
"""

VARIANT_TABLES = frozenset({"variant_explode", "variant_explode_outer"})
"""Table functions with a VARIANT column and fixed column names."""
MAPS = frozenset(_MAPS.split())
"""Functions that return a MAP."""
VARIANTS = frozenset({"parse_json", "try_parse_json", "to_variant_object"})
"""Functions that return a VARIANT."""
INTERVALS = frozenset({"make_dt_interval", "make_ym_interval"})
"""Functions that return an INTERVAL."""
CALENDAR_INTERVALS = frozenset({"make_interval", "try_make_interval"})
"""Functions that return an INTERVAL of months and seconds at once."""
LAMBDAS = frozenset(_LAMBDAS.split())
"""Functions that take a lambda."""
WINDOW = frozenset(_WINDOW.split())
"""Functions that need OVER."""
TIME_WINDOWS = frozenset({"window", "session_window"})
"""Functions that return the windows of time that a row is in."""
AS_WRITTEN = frozenset(_AS_WRITTEN.split())
"""Scalar functions that sqlglot would print differently; see `spark`.

Of a format it keeps what it knows: DATE_FORMAT(d, 'y') comes out with 'yyyy', which pads the year
987, and TO_DATE(x, 'yyyy-MM-dd') without its format, so that it takes '2024-1-5'.
"""
SCALAR = frozenset(_SCALAR.split()) | LAMBDAS | AS_WRITTEN
"""Deterministic functions of one row."""
MAINTAINED = frozenset({"count", "sum", "avg", "min", "max"})
"""The aggregates that `fold` updates in place."""
AGGREGATES = frozenset(_AGGREGATES.split())
"""The other aggregates, whose touched groups are recomputed."""
UNREPEATABLE = frozenset(_UNREPEATABLE.split())
"""Functions that may return another value each time."""
CLOCK = frozenset(_CLOCK.split())
"""Functions that depend on the session; for the time itself see `current_time`."""
TABLE_VALUED = frozenset(_TABLE_VALUED.split())
"""Functions that return several rows."""
OTHERS = frozenset(_OTHERS.split())
"""Functions whose result or argument no rule supports."""

USER = "st_fn_"
"""The beginning of the names under which an author's own functions are registered."""


def is_of_spark(name: str) -> bool:
    """Whether Spark has a function of the name, in lower case."""
    lists = (SCALAR, MAINTAINED, AGGREGATES, WINDOW, UNREPEATABLE, CLOCK, TABLE_VALUED, OTHERS)
    return any(name in each for each in (*lists, TIME_WINDOWS, CALENDAR_INTERVALS))


_ARGUMENTS = {
    "0": """
        cume_dist current_catalog current_database current_path current_schema
        current_timezone current_user dense_rank e input_file_block_length
        input_file_block_start input_file_name monotonically_increasing_id percent_rank pi
        rank row_number session_user spark_partition_id user version
    """,
    "0 1": """
        current_time explode explode_outer inline inline_outer posexplode posexplode_outer
        rand randn random uuid
    """,
    "0 1 2": """
        make_ym_interval mode unix_timestamp
    """,
    "0 1 2 3": """
        tuple_union_agg_double tuple_union_agg_integer
    """,
    "0 1 2 3 4": """
        count_min_sketch make_dt_interval tuple_sketch_agg_double tuple_sketch_agg_integer
        tuple_union_double tuple_union_integer tuple_union_theta_double
        tuple_union_theta_integer
    """,
    "0 1 2 3 4 5": """
        mask
    """,
    "0 1 2 3 4 5 6 7": """
        make_interval
    """,
    "1": """
        abs acos acosh array_agg array_compact array_distinct array_max array_min
        array_size ascii asin asinh atan atanh avg base64 bigint bin bit_and bit_count
        bit_length bit_or bit_xor bitmap_and_agg bitmap_bit_position bitmap_bucket_number
        bitmap_construct_agg bitmap_count bitmap_or_agg bool_and bool_or boolean
        cardinality cbrt char_length character_length chr collation collect_list
        collect_set cos cosh cot count_if crc32 csc date date_from_unix_date day dayname
        dayofmonth dayofweek dayofyear degrees double every exp expm1 factorial flatten
        float grouping hex hll_sketch_estimate hour initcap int is_valid_utf8
        is_valid_variant is_variant_null isnan isnotnull isnull json_array_length
        json_object_keys kll_sketch_get_n_bigint kll_sketch_get_n_double
        kll_sketch_get_n_float kll_sketch_to_string_bigint kll_sketch_to_string_double
        kll_sketch_to_string_float kurtosis last_day lcase len length ln log10 log1p log2
        lower luhn_check make_valid_utf8 map_entries map_from_entries map_keys map_values
        max md5 mean measure median min minute month monthname negative ntile nullifzero
        octet_length parse_json percentile_cont percentile_disc positive quarter quote
        radians raise_error reverse rint schema_of_variant schema_of_variant_agg sec
        second sha sha1 sign signum sin sinh size skewness smallint soundex space sqrt
        st_geogfromwkb st_srid std stddev stddev_pop stddev_samp string sum tan tanh
        theta_intersection_agg theta_sketch_estimate time_from_micros time_from_millis
        time_from_seconds time_to_micros time_to_millis time_to_seconds timestamp
        timestamp_micros timestamp_millis timestamp_seconds tinyint to_variant_object
        try_avg try_parse_json try_sum try_url_decode try_validate_utf8
        tuple_sketch_estimate_double tuple_sketch_estimate_integer
        tuple_sketch_theta_double tuple_sketch_theta_integer typeof ucase unbase64 unhex
        unix_date unix_micros unix_millis unix_seconds upper url_decode url_encode
        validate_utf8 var_pop var_samp variance vector_avg vector_sum weekday weekofyear
        window_time year zeroifnull
    """,
    "1 2": """
        any_value approx_count_distinct approx_top_k_accumulate approx_top_k_combine
        approx_top_k_estimate array_sort assert_true bround btrim ceil ceiling first
        first_value floor from_unixtime hll_sketch_agg hll_union_agg kll_merge_agg_bigint
        kll_merge_agg_double kll_merge_agg_float kll_sketch_agg_bigint
        kll_sketch_agg_double kll_sketch_agg_float last last_value listagg log ltrim
        randstr round rtrim schema_of_avro schema_of_csv schema_of_json schema_of_xml
        shuffle sort_array st_asbinary st_geomfromwkb string_agg theta_sketch_agg
        theta_union_agg to_avro to_binary to_csv to_date to_json to_time to_timestamp
        to_timestamp_ltz to_timestamp_ntz to_unix_timestamp to_xml try_to_binary
        try_to_date try_to_time try_to_timestamp tuple_intersection_agg_double
        tuple_intersection_agg_integer tuple_sketch_summary_double
        tuple_sketch_summary_integer vector_norm vector_normalize
    """,
    "1 2 3": """
        approx_top_k lag lead sentences str_to_map
    """,
    "1 2 3 4 5 6 7": """
        try_make_interval
    """,
    "1 2 3 6 7": """
        make_timestamp try_make_timestamp
    """,
    "1+": """
        coalesce concat_ws format_string hash printf xxhash64
    """,
    "2": """
        add_months array_append array_contains array_except array_intersect array_position
        array_prepend array_remove array_repeat array_union arrays_overlap atan2 bit_get
        collate contains corr covar_pop covar_samp date_format date_part date_sub
        date_trunc datepart element_at encode endswith equal_null find_in_set
        forall format_number from_utc_timestamp get get_json_object getbit
        histogram_numeric hypot ifnull instr kll_sketch_get_quantile_bigint
        kll_sketch_get_quantile_double kll_sketch_get_quantile_float
        kll_sketch_get_rank_bigint kll_sketch_get_rank_double kll_sketch_get_rank_float
        kll_sketch_merge_bigint kll_sketch_merge_double kll_sketch_merge_float left
        map_contains_key map_filter map_from_arrays mod nanvl next_day nullif nvl pmod pow
        power regexp regexp_count regexp_like regexp_substr regr_avgx regr_avgy regr_count
        regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy repeat right
        sha2 shiftleft shiftright shiftrightunsigned st_setsrid startswith
        theta_difference theta_intersection time_trunc to_char to_number to_utc_timestamp
        to_varchar transform_keys transform_values trunc try_add try_divide
        try_element_at try_mod try_multiply try_subtract try_to_number
        tuple_difference_double tuple_difference_integer tuple_difference_theta_double
        tuple_difference_theta_integer vector_cosine_similarity vector_inner_product
        vector_l2_distance xpath xpath_boolean xpath_double xpath_float xpath_int
        xpath_long xpath_number xpath_short xpath_string
    """,
    "2 3": """
        approx_percentile array_join convert_timezone from_avro from_csv from_json
        from_xml hll_union levenshtein locate lpad max_by min_by months_between nth_value
        parse_url percentile percentile_approx regexp_extract regexp_extract_all
        regexp_instr replace rpad sequence split theta_union time_bucket try_parse_url
        try_variant_get tuple_intersection_double tuple_intersection_integer
        tuple_intersection_theta_double tuple_intersection_theta_integer uniform
        variant_get
    """,
    "2 3 4": """
        from_protobuf to_protobuf
    """,
    "2 3 4 5": """
        aes_decrypt try_aes_decrypt
    """,
    "2 3 4 5 6": """
        aes_encrypt
    """,
    "2 3 6 7": """
        make_timestamp_ltz try_make_timestamp_ltz
    """,
    "2 6": """
        make_timestamp_ntz try_make_timestamp_ntz
    """,
    "2+": """
        decode elt greatest java_method json_tuple least reflect stack try_reflect
    """,
    "3": """
        array_insert conv if make_date make_time map_zip_with nvl2 slice split_part
        substring_index time_diff translate zip_with
    """,
    "3 4": """
        aggregate reduce regexp_replace
    """,
    "4": """
        width_bucket
    """,
}
"""Numbers of arguments → functions that take them; ``2+`` is two and more. A test asks Spark.

Without those that have words between their arguments, as EXTRACT(… FROM …), or any number of them.
"""
_COUNTS = {name: counts for counts, names in _ARGUMENTS.items() for name in names.split()}
COUNTED = frozenset(_COUNTS)
"""The functions whose number of arguments is known."""
_BEFORE_STAR = {TokenType.L_PAREN, TokenType.COMMA, TokenType.DOT, TokenType.DISTINCT}
_NO_CALL = {TokenType.DOT, TokenType.ALIAS, TokenType.VAR, TokenType.IDENTIFIER, TokenType.R_PAREN}
"""A name after one of these is part of a longer name, or an alias with its columns."""


def require_arguments(sql: str, tokens: list[Token]) -> None:
    """
    Raises:
        InvalidDefinition: A function of Spark has too many arguments, or too few.
    """
    for i, token in enumerate(tokens[:-1]):
        word = token.text.lower()
        if word not in COUNTED or sql[token.start] == "`":
            continue
        if i and tokens[i - 1].token_type in _NO_CALL:
            continue
        if tokens[i + 1].token_type is not TokenType.L_PAREN:
            continue
        end = closing(tokens, i + 1)
        count = _count_arguments(tokens[i + 1 : end + 1])
        if count is not None and not takes(word, count):
            raise InvalidDefinition(
                f"{word}() takes {_in_words(_COUNTS[word])}, not {count}",
                where=underline(sql, token.start, tokens[end].end),
                why="Spark has no such function of so many arguments",
                fix="correct the call; Spark's documentation lists the arguments of its functions",
            )


def takes(name: str, count: int) -> bool:
    """Whether a function in `COUNTED` may take a number of arguments."""
    counts = _COUNTS[name]
    if counts.endswith("+"):
        return count >= int(counts[:-1])
    return str(count) in counts.split()


def _in_words(counts: str) -> str:
    if counts.endswith("+"):
        return f"{counts[:-1]} or more arguments"
    *others, last = counts.split()
    said = f"{', '.join(others)} or {last}" if others else last
    return f"{said} argument" + "s" * (said != "1")


def _count_arguments(call: list[Token]) -> int | None:
    """The number of arguments in parentheses; None if there is a star among them, or no end."""
    inside = call[1:-1]
    stars = (call[at].token_type in _BEFORE_STAR for at in outermost(inside, TokenType.STAR))
    if len(call) == 1 or depths(call)[-1] or any(stars):
        return None
    return len(outermost(inside, TokenType.COMMA)) + 1 if inside else 0
