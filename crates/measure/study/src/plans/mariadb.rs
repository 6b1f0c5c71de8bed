//! MariaDB: `EXPLAIN FORMAT=JSON` and `ANALYZE FORMAT=JSON`.
//!
//! Operators are keys, nested as they work: `query_block`, `nested_loop` (a list of tables, outer
//! ones first), `filesort`, `temporary_table`, `block-nl-join`, `subqueries`, `materialized`, …
//! A table carries how it is reached (`access_type`), its key and its conditions.

use serde_json::{Map, Value};

use super::normal::condition;
use super::tree::{Memory, Node, bounded};

/// Keys whose values are operators, with the words to print.
const OPERATORS: [(&str, &str); 16] = [
    ("nested_loop", "Nested Loop"),
    ("block-nl-join", "Block Nested Loop"),
    ("filesort", "Filesort"),
    ("read_sorted_file", "Read Sorted File"),
    ("temporary_table", "Temporary Table"),
    ("duplicate_removal", "Duplicate Removal"),
    ("duplicates_removal", "Duplicate Removal"),
    ("materialized", "Materialise"),
    ("subqueries", "Subqueries"),
    ("expression_cache", "Expression Cache"),
    ("union_result", "Union"),
    ("except_result", "Except"),
    ("intersect_result", "Intersect"),
    ("unit_result", "Set Operation"),
    ("window_functions_computation", "Window Functions"),
    ("range-checked-for-each-record", "Range Check per Record"),
];

/// Keys whose values are conditions or keys that distinguish plans.
const CONDITIONS: [&str; 9] = [
    "attached_condition",
    "index_condition",
    "outer_ref_condition",
    "having_condition",
    "const_condition",
    "sort_key",
    "ref",
    "join_type",
    "buffer_type",
];

pub(super) fn parse(text: &str) -> Result<Node, String> {
    let json: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let block = json.get("query_block").and_then(Value::as_object);
    let block = block.ok_or("there is no \"query_block\" in it")?;
    Ok(node("Query", block))
}

/// An operator that is written as an object.
fn node(operator: &str, json: &Map<String, Value>) -> Node {
    let loops = number(json, "r_loops").unwrap_or(1.0);
    Node {
        operator: operator.to_owned(),
        conditions: CONDITIONS.iter().filter_map(|key| named(json, key)).collect(),
        rows_estimated: number(json, "rows"),
        rows: number(json, "r_rows").or(number(json, "r_output_rows")).map(|rows| rows * loops),
        time_ms: time_ms(json),
        memory: memory(json),
        inputs: inputs(json),
        ..Node::default()
    }
}

/// Reading a table and processing its rows are timed separately; this is their sum.
fn time_ms(json: &Map<String, Value>) -> Option<f64> {
    let of_table = number(json, "r_table_time_ms");
    let with_rest = of_table.map(|time| time + number(json, "r_other_time_ms").unwrap_or(0.0));
    number(json, "r_total_time_ms").or(with_rest)
}

/// Pages of InnoDB, unless a server was set up otherwise.
const PAGE_BYTES: f64 = 16_384.0;

fn memory(json: &Map<String, Value>) -> Memory {
    let stats = json.get("r_engine_stats").and_then(Value::as_object);
    let pages = stats.and_then(|stats| number(stats, "pages_accessed"));
    Memory { pages, page_bytes: pages.map(|_| PAGE_BYTES), ..Memory::default() }
}

/// Operators among the values of an object, in the order in which they are written.
fn inputs(json: &Map<String, Value>) -> Vec<Node> {
    json.iter().flat_map(|(key, value)| input(key, value)).collect()
}

fn input(key: &str, value: &Value) -> Vec<Node> {
    let name = OPERATORS.iter().find(|(known, _)| *known == key).map(|(_, name)| *name);
    match (key, name, value) {
        ("table", _, Value::Object(table)) => vec![access(table)],
        ("query_block", _, Value::Object(block)) => vec![node("Query", block)],
        (_, Some(name), Value::Object(object)) => vec![node(name, object)],
        (_, Some(name), Value::Array(list)) => {
            vec![Node { inputs: listed(list), ..Node::new(name) }]
        }
        // Wrappers without a meaning of their own: "query_specifications", "sorts", …
        (_, None, Value::Object(object)) => inputs(object),
        (_, None, Value::Array(list)) => listed(list),
        _ => Vec::new(),
    }
}

fn listed(list: &[Value]) -> Vec<Node> {
    list.iter().filter_map(Value::as_object).flat_map(inputs).collect()
}

/// How a table is reached.
fn access(table: &Map<String, Value>) -> Node {
    let kind = text(table, "access_type").unwrap_or("none");
    let operator = match kind {
        "ALL" => "Table Scan (ALL)".to_owned(),
        "index" => "Index Scan (index)".to_owned(),
        "range" => "Index Range (range)".to_owned(),
        "ref" => "Index Lookup (ref)".to_owned(),
        "eq_ref" => "Unique Lookup (eq_ref)".to_owned(),
        "const" | "system" => "One Row (const)".to_owned(),
        "none" => text(table, "message").unwrap_or("No Table").to_owned(),
        other => format!("Access ({other})"),
    };
    let only = match table.get("using_index") {
        Some(Value::Bool(true)) => " Index Only",
        _ => "",
    };
    Node {
        object: text(table, "table_name").map(str::to_owned),
        index: text(table, "key").map(str::to_owned),
        ..node(&format!("{operator}{only}"), table)
    }
}

fn named(json: &Map<String, Value>, key: &str) -> Option<String> {
    let value = match json.get(key)? {
        Value::String(text) => condition(text),
        Value::Array(list) => {
            let list = list.iter().filter_map(Value::as_str).map(condition);
            list.collect::<Vec<_>>().join(", ")
        }
        _ => return None,
    };
    Some(format!("{key}: {value}"))
}

fn text<'a>(json: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    json.get(key).and_then(Value::as_str)
}

fn number(json: &Map<String, Value>, key: &str) -> Option<f64> {
    json.get(key).and_then(Value::as_f64).map(bounded)
}
