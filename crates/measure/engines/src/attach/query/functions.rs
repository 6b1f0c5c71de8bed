//! The built-in functions that only compute, of PostgreSQL and of MariaDB, in order.
//!
//! None of them changes a setting, signals, locks, sleeps, reads or writes files, sends
//! notifications, or runs a text. What is only in one of the two fails on the other by itself.

#[rustfmt::skip]
pub(super) const ALLOWED: &[&str] = &[
    // Aggregates and windows.
    "any_value", "array_agg", "avg", "bit_and", "bit_or", "bit_xor", "bool_and", "bool_or", "corr",
    "count", "covar_pop", "covar_samp", "cume_dist", "dense_rank", "every", "first_value",
    "group_concat", "grouping", "json_agg", "json_arrayagg", "json_object_agg", "json_objectagg",
    "jsonb_agg", "jsonb_object_agg", "lag", "last_value", "lead", "max", "median", "min", "mode",
    "nth_value", "ntile", "percent_rank", "percentile_cont", "percentile_disc", "range_agg",
    "rank", "regr_avgx", "regr_avgy", "regr_count", "regr_intercept", "regr_r2", "regr_slope",
    "regr_sxx", "regr_sxy", "regr_syy", "row_number", "std", "stddev", "stddev_pop",
    "stddev_samp", "string_agg", "sum", "var_pop", "var_samp", "variance", "xmlagg",
    // Choices.
    "coalesce", "greatest", "if", "ifnull", "interval", "isnull", "least", "nullif", "num_nonnulls",
    "num_nulls", "nvl", "nvl2",
    // Numbers.
    "abs", "acos", "acosd", "acosh", "asin", "asind", "asinh", "atan", "atan2", "atan2d", "atand",
    "atanh", "bit_count", "cbrt", "ceil", "ceiling", "conv", "cos", "cosd", "cosh", "cot", "cotd",
    "crc32", "degrees", "div", "exp", "factorial", "floor", "gcd", "lcm", "ln", "log", "log10",
    "log2", "min_scale", "mod", "pi", "pow", "power", "radians", "rand", "random", "round", "scale",
    "sign", "sin", "sind", "sinh", "sqrt", "tan", "tand", "tanh", "trim_scale", "trunc", "truncate",
    "width_bucket",
    // Texts and bytes.
    "ascii", "bin", "bit_length", "btrim", "char", "char_length", "character_length", "chr",
    "concat", "concat_ws", "convert_from", "convert_to", "decode", "elt", "encode", "export_set",
    "field", "find_in_set", "format", "from_base64", "get_bit", "get_byte", "hex", "initcap",
    "insert", "instr", "lcase", "left", "length", "locate", "lower", "lpad", "ltrim", "make_set",
    "md5", "mid", "normalize", "oct", "octet_length", "ord", "overlay", "parse_ident", "position",
    "quote", "quote_ident", "quote_literal", "quote_nullable", "regexp_count", "regexp_instr",
    "regexp_like", "regexp_match", "regexp_matches", "regexp_replace", "regexp_split_to_array",
    "regexp_split_to_table", "regexp_substr", "repeat", "replace", "reverse", "right", "rpad",
    "rtrim", "set_bit", "set_byte", "sha1", "sha2", "sha224", "sha256", "sha384", "sha512",
    "soundex", "space", "split_part", "starts_with", "strcmp", "string_to_array",
    "string_to_table", "strpos", "substr", "substring", "substring_index", "to_ascii", "to_base64",
    "to_hex", "translate", "trim", "ucase", "unhex", "unistr", "upper", "weight_string",
    // Dates and times.
    "adddate", "addtime", "age", "clock_timestamp", "convert_tz", "curdate", "current_date",
    "current_time", "current_timestamp", "curtime", "date", "date_add", "date_bin", "date_format",
    "date_part", "date_sub", "date_trunc", "datediff", "day", "dayname", "dayofmonth", "dayofweek",
    "dayofyear", "extract", "from_days", "from_unixtime", "get_format", "hour", "isfinite",
    "justify_days", "justify_hours", "justify_interval", "last_day", "localtime", "localtimestamp",
    "make_date", "make_interval", "make_time", "make_timestamp", "make_timestamptz", "makedate",
    "maketime", "microsecond", "minute", "month", "monthname", "now", "period_add", "period_diff",
    "quarter", "sec_to_time", "second", "statement_timestamp", "str_to_date", "subdate", "subtime",
    "sysdate", "time", "time_format", "time_to_sec", "timediff", "timeofday", "timestamp",
    "timestampadd", "timestampdiff", "timezone", "to_char", "to_date", "to_days", "to_number",
    "to_seconds", "to_timestamp", "transaction_timestamp", "unix_timestamp", "utc_date", "utc_time",
    "utc_timestamp", "week", "weekday", "weekofyear", "year", "yearweek",
    // Arrays, ranges and rows.
    "array_append", "array_cat", "array_dims", "array_fill", "array_length", "array_lower",
    "array_ndims", "array_position", "array_positions", "array_prepend", "array_remove",
    "array_replace", "array_to_string", "array_upper", "cardinality", "daterange",
    "generate_series", "generate_subscripts", "int4range", "int8range", "isempty", "lower_inc",
    "lower_inf", "numrange", "range_merge", "row", "trim_array", "tsrange", "tstzrange", "unnest",
    "upper_inc", "upper_inf",
    // JSON.
    "array_to_json", "json_array", "json_array_elements", "json_array_elements_text",
    "json_array_length", "json_build_array", "json_build_object", "json_contains",
    "json_contains_path", "json_depth", "json_each", "json_each_text", "json_exists",
    "json_extract", "json_extract_path", "json_extract_path_text", "json_keys", "json_length",
    "json_merge_patch", "json_object", "json_object_keys", "json_query", "json_quote",
    "json_search", "json_strip_nulls", "json_to_record", "json_to_recordset", "json_type",
    "json_typeof", "json_unquote", "json_valid", "json_value", "jsonb_array_elements",
    "jsonb_array_elements_text", "jsonb_array_length", "jsonb_build_array", "jsonb_build_object",
    "jsonb_each", "jsonb_each_text", "jsonb_extract_path", "jsonb_extract_path_text",
    "jsonb_object", "jsonb_object_keys", "jsonb_path_exists", "jsonb_path_match",
    "jsonb_path_query", "jsonb_path_query_array", "jsonb_path_query_first", "jsonb_pretty",
    "jsonb_strip_nulls", "jsonb_to_record", "jsonb_to_recordset", "jsonb_typeof", "row_to_json",
    "to_json", "to_jsonb",
    // Full text and geometry.
    "area", "box", "center", "circle", "diameter", "height", "lseg", "numnode", "path",
    "phraseto_tsquery", "plainto_tsquery", "point", "polygon", "radius", "strip", "to_tsquery",
    "to_tsvector", "ts_headline", "ts_rank", "ts_rank_cd", "websearch_to_tsquery", "width",
    // Networks and identifiers.
    "abbrev", "broadcast", "family", "gen_random_uuid", "host", "hostmask", "inet6_aton",
    "inet6_ntoa", "inet_aton", "inet_ntoa", "masklen", "netmask", "network", "uuid",
    // Types.
    "cast", "convert", "pg_typeof",
    // What a client asks of the server.
    "current_catalog", "current_database", "current_role", "current_schema", "current_user",
    "database", "pg_column_size", "pg_database_size", "pg_indexes_size", "pg_relation_size",
    "pg_size_pretty", "pg_table_size", "pg_total_relation_size", "schema", "session_user", "user",
    "version",
];
