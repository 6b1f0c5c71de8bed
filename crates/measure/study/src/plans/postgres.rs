//! PostgreSQL: `EXPLAIN (FORMAT JSON)`, named as its text format names operators.
//!
//! `[{"Plan": {"Node Type": …, "Plans": […]}, "Execution Time": …}]`; DataFusion's `pgjson` has the
//! same form. Rows and times are given per execution and worker ("Loops"), so they are multiplied,
//! and the inputs' times are taken off an operator's own. Workers take longer together than their
//! Gather waits for them: of that nothing is left.

use serde_json::Value;

use super::normal::condition;
use super::tree::{Memory, Node, Role, bounded};

/// Conditions and keys that distinguish plans; other output (columns, sort space) does not.
const CONDITIONS: [&str; 18] = [
    "Index Cond",
    "Recheck Cond",
    "Hash Cond",
    "Merge Cond",
    "Join Filter",
    "TID Cond",
    "Filter",
    "One-Time Filter",
    "Sort Key",
    "Presorted Key",
    "Group Key",
    "Cache Key",
    "Hash Key",
    // DataFusion's names in the same format.
    "Join Keys",
    "Condition",
    "Partial Filters",
    "Full Filters",
    "Group By",
];

pub(super) fn parse(text: &str) -> Result<Node, String> {
    let json: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let statement = json.get(0).unwrap_or(&json);
    let plan = statement.get("Plan").ok_or("there is no \"Plan\" in it")?;
    node(plan)
}

fn node(json: &Value) -> Result<Node, String> {
    let kind = text(json, "Node Type").ok_or("an operator has no \"Node Type\"")?;
    let loops = number(json, "Actual Loops").unwrap_or(1.0);
    let inputs = json.get("Plans").and_then(Value::as_array).into_iter().flatten();
    let taken: f64 = inputs.clone().filter_map(with_inputs_ms).sum();
    let object = ["Relation Name", "CTE Name", "Function Name", "Table Function Name"];
    let mut conditions: Vec<String> =
        CONDITIONS.iter().filter_map(|key| named(json, key)).collect();
    // The place of a subplan: `InitPlan 1 (returns $0)`, `SubPlan 2`.
    conditions.extend(text(json, "Subplan Name").map(condition));
    Ok(Node {
        operator: operator(json, kind),
        role: role(json, kind),
        object: object.iter().find_map(|key| text(json, key)).map(str::to_owned),
        index: text(json, "Index Name").map(str::to_owned),
        conditions,
        rows_estimated: number(json, "Plan Rows"),
        rows: number(json, "Actual Rows").map(|rows| rows * loops),
        time_ms: with_inputs_ms(json).map(|time| (time - taken).max(0.0)),
        memory: memory(json),
        inputs: inputs.map(node).collect::<Result<_, _>>()?,
    })
}

/// Pages of PostgreSQL, as it is built everywhere.
const PAGE_BYTES: f64 = 8192.0;

/// Blocks are counted with those of the inputs, and over all executions.
fn memory(json: &Value) -> Memory {
    let blocks = |json: &Value| {
        let keys = ["Shared Hit Blocks", "Shared Read Blocks"];
        keys.iter().filter_map(|key| number(json, key)).reduce(|hit, read| hit + read)
    };
    let inputs = json.get("Plans").and_then(Value::as_array).into_iter().flatten();
    let of_inputs: f64 = inputs.filter_map(blocks).sum();
    let pages = blocks(json).map(|blocks| (blocks - of_inputs).max(0.0));
    Memory {
        row_bytes: number(json, "Plan Width"),
        table_bytes: number(json, "Peak Memory Usage").map(|kib| kib * 1024.0),
        pages,
        page_bytes: pages.map(|_| PAGE_BYTES),
    }
}

/// The time of an operator and all below it.
fn with_inputs_ms(json: &Value) -> Option<f64> {
    let loops = number(json, "Actual Loops").unwrap_or(1.0);
    number(json, "Actual Total Time").map(|time| time * loops)
}

fn role(json: &Value, kind: &str) -> Role {
    match (kind, text(json, "Partial Mode")) {
        ("Gather" | "Gather Merge", _) => Role::Exchange,
        (_, Some("Partial")) => Role::Partial,
        (_, Some("Finalize")) => Role::Final,
        _ if json.get("Parallel Aware") == Some(&Value::Bool(true)) => Role::Parallel,
        _ => Role::Plain,
    }
}

/// As the text format prints it: `HashAggregate`, `Hash Left Join`, `Insert`.
fn operator(json: &Value, kind: &str) -> String {
    let strategy = text(json, "Strategy");
    let join = text(json, "Join Type").filter(|join| *join != "Inner");
    let backward = text(json, "Scan Direction") == Some("Backward");
    match (kind, strategy, join) {
        ("Aggregate", Some("Sorted"), _) => "GroupAggregate".to_owned(),
        ("Aggregate", Some("Hashed"), _) => "HashAggregate".to_owned(),
        ("Aggregate", Some("Mixed"), _) => "MixedAggregate".to_owned(),
        ("Nested Loop", _, Some(join)) => format!("Nested Loop {join} Join"),
        ("Hash Join" | "Merge Join", _, Some(join)) => {
            format!("{} {join} Join", kind.trim_end_matches(" Join"))
        }
        ("ModifyTable", ..) => text(json, "Operation").unwrap_or(kind).to_owned(),
        ("SetOp", Some("Hashed"), _) => "HashSetOp".to_owned(),
        _ if backward => format!("{kind} Backward"),
        _ => kind.to_owned(),
    }
}

/// A condition with its name; a list of keys in its order.
fn named(json: &Value, key: &str) -> Option<String> {
    let value = match json.get(key)? {
        Value::String(text) => condition(text),
        Value::Array(keys) => {
            let keys = keys.iter().filter_map(Value::as_str).map(condition);
            keys.collect::<Vec<_>>().join(", ")
        }
        _ => return None,
    };
    (!value.is_empty()).then(|| format!("{key}: {value}"))
}

fn text<'a>(json: &'a Value, key: &str) -> Option<&'a str> {
    json.get(key).and_then(Value::as_str)
}

fn number(json: &Value, key: &str) -> Option<f64> {
    json.get(key).and_then(Value::as_f64).map(bounded)
}
