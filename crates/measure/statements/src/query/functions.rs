//! The built-in functions that only compute, in order.
//!
//! None of them changes a setting, signals, locks, sleeps, reads or writes files, sends
//! notifications, or runs a text. A name that is none of a server's own may be a user's function
//! there, so each server has a list: what PostgreSQL 15 and MariaDB 10.11 have, and what of the
//! latter MySQL 8.0.3 has not.

use workahead_workloads::session::Dialect;

use super::Functions;

/// Those of a server.
pub(super) fn allowed(dialect: Dialect, of: Functions) -> impl Iterator<Item = &'static str> {
    let own = match dialect {
        Dialect::MariaDb => MARIADB,
        _ => POSTGRES,
    };
    let missing = if of == Functions::OfMySql { NOT_IN_MYSQL } else { &[] };
    BOTH.iter().chain(own).copied().filter(|name| !missing.contains(name))
}

/// Functions of MariaDB that MySQL 8.0.3 lacks, or has not had from the start of 8.0.
const NOT_IN_MYSQL: &[&str] = &[
    "area",
    "chr",
    "decode",
    "encode",
    "isempty",
    "json_exists",
    "json_query",
    "json_value",
    "median",
    "nvl",
    "nvl2",
    "percentile_cont",
    "percentile_disc",
    "regexp_instr",
    "regexp_replace",
    "regexp_substr",
    "to_char",
];

/// Those that PostgreSQL's grammar knows: some are not functions to it, others have words of their
/// own between their values.
#[rustfmt::skip]
pub(super) const OF_GRAMMAR: [&str; 21] = [
    "cast", "char", "coalesce", "current_catalog", "current_date", "current_role", "current_time",
    "current_timestamp", "extract", "greatest", "grouping", "interval", "least", "localtime",
    "localtimestamp", "nullif", "position", "row", "time", "timestamp", "trim",
];

#[rustfmt::skip]
const BOTH: &[&str] = &[
    // Aggregates and windows.
    "avg", "bit_and", "bit_or", "bit_xor", "count", "cume_dist", "dense_rank", "first_value", "lag",
    "last_value", "lead", "max", "min", "nth_value", "ntile", "percent_rank", "percentile_cont",
    "percentile_disc", "rank", "row_number", "stddev", "stddev_pop", "stddev_samp", "sum",
    "var_pop", "var_samp", "variance",
    // Choices.
    "coalesce", "greatest", "interval", "least", "nullif",
    // Numbers.
    "abs", "acos", "asin", "atan", "atan2", "bit_count", "ceil", "ceiling", "cos", "cot", "degrees",
    "div", "exp", "floor", "ln", "log", "log10", "mod", "pi", "pow", "power", "radians", "round",
    "sign", "sin", "sqrt", "tan",
    // Texts and bytes.
    "ascii", "bit_length", "char", "char_length", "character_length", "chr", "concat", "concat_ws",
    "decode", "encode", "format", "left", "length", "lower", "lpad", "ltrim", "md5", "octet_length",
    "position", "regexp_instr", "regexp_replace", "regexp_substr", "repeat", "replace", "reverse",
    "right", "rpad", "rtrim", "substr", "substring", "trim", "upper",
    // Dates and times.
    "current_date", "current_time", "current_timestamp", "date", "extract", "localtime",
    "localtimestamp", "now", "time", "timestamp", "to_char",
    // Arrays, ranges and rows.
    "isempty", "row",
    // JSON.
    "json_object",
    // Full text and geometry.
    "area",
    // Types.
    "cast",
    // Facts about the session.
    "current_role", "current_user", "session_user", "user", "version",
];

#[rustfmt::skip]
const POSTGRES: &[&str] = &[
    // Aggregates and windows.
    "array_agg", "bool_and", "bool_or", "corr", "covar_pop", "covar_samp", "every", "grouping",
    "json_agg", "json_object_agg", "jsonb_agg", "jsonb_object_agg", "mode", "range_agg",
    "regr_avgx", "regr_avgy", "regr_count", "regr_intercept", "regr_r2", "regr_slope", "regr_sxx",
    "regr_sxy", "regr_syy", "string_agg", "xmlagg",
    // Choices.
    "num_nonnulls", "num_nulls",
    // Numbers.
    "acosd", "acosh", "asind", "asinh", "atan2d", "atand", "atanh", "cbrt", "cosd", "cosh", "cotd",
    "factorial", "gcd", "lcm", "min_scale", "random", "scale", "sind", "sinh", "tand", "tanh",
    "trim_scale", "trunc", "width_bucket",
    // Texts and bytes.
    "btrim", "convert_from", "convert_to", "get_bit", "get_byte", "initcap", "normalize", "overlay",
    "parse_ident", "quote_ident", "quote_literal", "quote_nullable", "regexp_count", "regexp_like",
    "regexp_match", "regexp_matches", "regexp_split_to_array", "regexp_split_to_table", "set_bit",
    "set_byte", "sha224", "sha256", "sha384", "sha512", "split_part", "starts_with",
    "string_to_array", "string_to_table", "strpos", "to_ascii", "to_hex", "translate", "unistr",
    // Dates and times.
    "age", "clock_timestamp", "date_bin", "date_part", "date_trunc", "isfinite", "justify_days",
    "justify_hours", "justify_interval", "make_date", "make_interval", "make_time",
    "make_timestamp", "make_timestamptz", "statement_timestamp", "timeofday", "timezone", "to_date",
    "to_number", "to_timestamp", "transaction_timestamp",
    // Arrays, ranges and rows.
    "array_append", "array_cat", "array_dims", "array_fill", "array_length", "array_lower",
    "array_ndims", "array_position", "array_positions", "array_prepend", "array_remove",
    "array_replace", "array_to_string", "array_upper", "cardinality", "daterange",
    "generate_series", "generate_subscripts", "int4range", "int8range", "lower_inc", "lower_inf",
    "numrange", "range_merge", "trim_array", "tsrange", "tstzrange", "unnest", "upper_inc",
    "upper_inf",
    // JSON.
    "array_to_json", "json_array_elements", "json_array_elements_text", "json_array_length",
    "json_build_array", "json_build_object", "json_each", "json_each_text", "json_extract_path",
    "json_extract_path_text", "json_object_keys", "json_strip_nulls", "json_to_record",
    "json_to_recordset", "json_typeof", "jsonb_array_elements", "jsonb_array_elements_text",
    "jsonb_array_length", "jsonb_build_array", "jsonb_build_object", "jsonb_each",
    "jsonb_each_text", "jsonb_extract_path", "jsonb_extract_path_text", "jsonb_object",
    "jsonb_object_keys", "jsonb_path_exists", "jsonb_path_match", "jsonb_path_query",
    "jsonb_path_query_array", "jsonb_path_query_first", "jsonb_pretty", "jsonb_strip_nulls",
    "jsonb_to_record", "jsonb_to_recordset", "jsonb_typeof", "row_to_json", "to_json", "to_jsonb",
    // Full text and geometry.
    "box", "center", "circle", "diameter", "height", "lseg", "numnode", "path", "phraseto_tsquery",
    "plainto_tsquery", "point", "polygon", "radius", "strip", "to_tsquery", "to_tsvector",
    "ts_headline", "ts_rank", "ts_rank_cd", "websearch_to_tsquery", "width",
    // Networks and identifiers.
    "abbrev", "broadcast", "family", "gen_random_uuid", "host", "hostmask", "masklen", "netmask",
    "network",
    // Types.
    "pg_typeof",
    // Facts about the session.
    "current_catalog", "current_database", "current_schema", "pg_column_size", "pg_database_size",
    "pg_indexes_size", "pg_relation_size", "pg_size_pretty", "pg_table_size",
    "pg_total_relation_size",
];

#[rustfmt::skip]
const MARIADB: &[&str] = &[
    // Aggregates and windows.
    "group_concat", "json_arrayagg", "json_objectagg", "median", "std",
    // Choices.
    "if", "ifnull", "isnull", "nvl", "nvl2",
    // Numbers.
    "conv", "crc32", "log2", "rand", "truncate",
    // Texts and bytes.
    "bin", "elt", "export_set", "field", "find_in_set", "from_base64", "hex", "insert", "instr",
    "lcase", "locate", "make_set", "mid", "oct", "ord", "quote", "sha1", "sha2", "soundex", "space",
    "strcmp", "substring_index", "to_base64", "ucase", "unhex", "weight_string",
    // Dates and times.
    "adddate", "addtime", "convert_tz", "curdate", "curtime", "date_add", "date_format", "date_sub",
    "datediff", "day", "dayname", "dayofmonth", "dayofweek", "dayofyear", "from_days",
    "from_unixtime", "get_format", "hour", "last_day", "makedate", "maketime", "microsecond",
    "minute", "month", "monthname", "period_add", "period_diff", "quarter", "sec_to_time", "second",
    "str_to_date", "subdate", "subtime", "sysdate", "time_format", "time_to_sec", "timediff",
    "timestampadd", "timestampdiff", "to_days", "to_seconds", "unix_timestamp", "utc_date",
    "utc_time", "utc_timestamp", "week", "weekday", "weekofyear", "year", "yearweek",
    // JSON.
    "json_array", "json_contains", "json_contains_path", "json_depth", "json_exists",
    "json_extract", "json_keys", "json_length", "json_merge_patch", "json_query", "json_quote",
    "json_search", "json_type", "json_unquote", "json_valid", "json_value",
    // Networks and identifiers.
    "inet6_aton", "inet6_ntoa", "inet_aton", "inet_ntoa", "uuid",
    // Types.
    "convert",
    // Facts about the session.
    "database", "schema",
];
