"""How many arguments Spark's functions take, and calls with another number.

sqlglot crashes on some of them, or drops what is too much.
"""

from __future__ import annotations

from sqlglot.tokenizer_core import Token, TokenType

from dagster_streamtables.errors import InvalidDefinition, underline

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
_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET}
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
        count, end = _arguments(tokens, i + 2)
        if count is not None and not takes(word, count):
            raise InvalidDefinition(
                f"{word}() takes {_in_words(_COUNTS[word])}, not {count}",
                where=underline(sql, token.start, tokens[end].end),
                why="Spark has no such function of so many arguments",
                fix="correct the call; Spark's documentation lists the arguments of its functions",
            )


def takes(name: str, count: int) -> bool:
    """Whether a function in `COUNTED` may take so many arguments."""
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


def _arguments(tokens: list[Token], begin: int) -> tuple[int | None, int]:
    """The number of arguments of a call, None if there is a star among them, and its end.

    Args:
        tokens: Those of the text.
        begin: The one after the opening parenthesis.
    """
    depth, commas, star = 0, 0, False
    for i in range(begin, len(tokens)):
        kind = tokens[i].token_type
        if not depth and kind is TokenType.R_PAREN:
            count = commas + 1 if i > begin else 0
            return (None if star else count), i
        if not depth and kind is TokenType.STAR:
            star = star or tokens[i - 1].token_type in _BEFORE_STAR
        commas += not depth and kind is TokenType.COMMA
        depth += (kind in _OPENING) - (kind in _CLOSING)
    return None, len(tokens) - 1
