//! DuckDB: `EXPLAIN (FORMAT JSON)` and `EXPLAIN (ANALYZE, FORMAT JSON)`.
//!
//! `[{"name": "HASH_JOIN", "extra_info": {…}, "children": […]}]`; a profile says `type`,
//! `intermediate_rows` and `timing` (`operator_type` and so on before version 2). Extra information
//! is text or a list of texts.
//! DuckDB's plan does not say how many threads run it: it is the same for all of them.

use serde_json::Value;

use super::normal::condition;
use super::tree::{Memory, Node, bounded};

/// Extra information that distinguishes plans.
const CONDITIONS: [&str; 9] = [
    "Join Type",
    "Conditions",
    "Condition",
    "Filters",
    "Expression",
    "Groups",
    "Aggregates",
    "Order By",
    "Top",
];

/// Operators of a profile above the plan.
const ABOVE: [&str; 3] = ["RESULT_COLLECTOR", "EXPLAIN_ANALYZE", "QUERY_ROOT"];

pub(super) fn parse(text: &str) -> Result<Node, String> {
    let json: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let profiled = json.get("operator").and_then(|operators| operators.get(0));
    let mut top = profiled.or_else(|| json.get(0)).unwrap_or(&json);
    while name(top).is_none_or(|name| ABOVE.contains(&name)) {
        let child = top.get("children").and_then(|children| children.get(0));
        top = child.ok_or("there is no operator in it")?;
    }
    node(top)
}

fn name(json: &Value) -> Option<&str> {
    let key = ["name", "operator_name", "operator_type", "type"];
    key.iter().find_map(|key| json.get(key)?.as_str()).map(str::trim)
}

fn node(json: &Value) -> Result<Node, String> {
    let name = name(json).ok_or("an operator has no name")?;
    let extra = json.get("extra_info").unwrap_or(&Value::Null);
    // A profile calls every scan of a table TABLE_SCAN.
    let operator = match (name, said(extra, "Type").as_deref()) {
        ("TABLE_SCAN", Some("Sequential Scan")) => "SEQ_SCAN",
        ("TABLE_SCAN" | "SEQ_SCAN", Some("Index Scan")) => "INDEX_SCAN",
        _ => name,
    };
    let children = json.get("children").and_then(Value::as_array).into_iter().flatten();
    let table = said(extra, "Table").or_else(|| said(extra, "Function"));
    let number = |keys: &[&str]| keys.iter().find_map(|key| number(json, key));
    Ok(Node {
        operator: operator.to_owned(),
        // The catalogue and schema are where the file lies, not what is read.
        object: table.map(|table| table.rsplit('.').next().unwrap_or(&table).to_owned()),
        conditions: CONDITIONS
            .iter()
            .filter_map(|key| Some(format!("{key}: {}", condition(&said(extra, key)?))))
            .collect(),
        rows_estimated: said(extra, "Estimated Cardinality").and_then(|rows| rows.parse().ok()),
        rows: number(&["intermediate_rows", "operator_cardinality"]),
        time_ms: number(&["timing", "operator_timing"]).map(|seconds| seconds * 1e3),
        memory: Memory { row_bytes: row_bytes(json), ..Memory::default() },
        inputs: children.map(node).collect::<Result<_, _>>()?,
        ..Node::default()
    })
}

/// Of a profile: what an operator gave by the number of its rows.
fn row_bytes(json: &Value) -> Option<f64> {
    let number = |key: &str| number(json, key).filter(|number| *number > 0.0);
    Some(number("result_set_size")? / number("operator_cardinality")?)
}

fn number(json: &Value, key: &str) -> Option<f64> {
    json.get(key).and_then(Value::as_f64).map(bounded)
}

/// A piece of extra information; lists on one line.
fn said(extra: &Value, key: &str) -> Option<String> {
    let text = match extra.get(key)? {
        Value::String(text) => text.trim().to_owned(),
        Value::Array(list) => {
            list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" AND ")
        }
        other => other.to_string(),
    };
    (!text.is_empty()).then_some(text)
}
