//! DataFusion: `EXPLAIN FORMAT indent` (with `ANALYZE` or without), `tree` and `pgjson`.
//!
//! ```text
//! HashJoinExec: mode=Partitioned, join_type=Inner, on=[(a1@0, a1@0)], metrics=[output_rows=7]
//!   DataSourceExec: file_groups={1 group: [[data/t1.parquet]]}, predicate=a2@1 > 9999
//! ```
//!
//! Exchanges are recognised by name. The contents of a dynamic filter are known only while the plan
//! runs. File names lose their directories, which differ between machines.

use super::normal::condition;
use super::tree::{Memory, Node, Role, bounded, check_depth, check_operators};
use super::{postgres, rendered};

/// Details that distinguish plans; those left out count partitions, columns and files.
const CONDITIONS: [&str; 12] = [
    "join_type",
    "on",
    "filter",
    "mode",
    "gby",
    "aggr",
    "expr",
    "predicate",
    "partitioning",
    "fetch",
    "layout",
    "technique",
];

pub(super) fn parse(text: &str) -> Result<Node, String> {
    match text.trim_start().chars().next() {
        None => Err("it is empty".to_owned()),
        Some('[' | '{') => postgres::parse(text),
        Some('┌') => rendered::parse(text, &mut |lines: &[String]| {
            let (name, details) = lines.split_first().ok_or("an empty box")?;
            Ok(named(name, &details.join(", ")))
        }),
        Some(_) => indented(text),
    }
}

/// Operators with their depth, then the tree. The output of EXPLAIN as a table is accepted too: its
/// physical plan is read.
fn indented(text: &str) -> Result<Node, String> {
    let physical = text.find("physical_plan").map_or(text, |at| &text[at + 13..]);
    let (mut open, mut operators): (Vec<(usize, Node)>, usize) = (Vec::new(), 0);
    for line in physical.lines() {
        let line = line.trim_end_matches(['|', ' ']);
        let line = line.trim_start_matches('|');
        let depth = line.len() - line.trim_start().len();
        let line = line.trim_start();
        if line.is_empty() || line.starts_with('+') || line.starts_with("---") {
            continue;
        }
        close(&mut open, depth);
        check_depth(open.len() + 1)?;
        operators += 1;
        check_operators(operators)?;
        let end = line.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(line.len());
        let (name, details) = line.split_at(end);
        open.push((depth, named(name, details.trim_start_matches([':', ',']).trim())));
    }
    close(&mut open, 1);
    match open.len() {
        1 => Ok(open.remove(0).1),
        0 => Err("there is no operator in it".to_owned()),
        _ => Err("it has several roots".to_owned()),
    }
}

/// Attaches finished operators to their consumers: all that are at this depth or deeper. The root
/// stays.
fn close(open: &mut Vec<(usize, Node)>, depth: usize) {
    while open.len() > 1 && open.last().is_some_and(|(last, _)| *last >= depth.max(1)) {
        let Some((_, done)) = open.pop() else { return };
        if let Some((_, above)) = open.last_mut() {
            above.inputs.push(done);
        }
    }
}

fn named(name: &str, details: &str) -> Node {
    let pairs = pairs(details);
    let value = |key: &str| pairs.iter().find(|(name, _)| name == key).map(|(_, value)| value);
    let metric = |list: &str, key: &str| metric(value(list)?, key);
    let role = role(name, value("mode").map(String::as_str));
    // The mode of an aggregate is its role; that of a join is a choice of its own.
    let says = |key: &str| CONDITIONS.contains(&key) && !(key == "mode" && name == "AggregateExec");
    let mut conditions: Vec<String> = pairs
        .iter()
        .filter(|(key, _)| says(key))
        .map(|(key, value)| format!("{key}: {}", planned(value)))
        .collect();
    // `FilterExec: a2@1 > 9999` has a condition without a name.
    if name == "FilterExec" && !pairs.iter().any(|(key, _)| key == "predicate") {
        let (plain, _) = details.split_once(", projection=[").unwrap_or((details, ""));
        let (plain, _) = plain.split_once(", metrics=[").unwrap_or((plain, ""));
        conditions = vec![format!("predicate: {}", planned(plain))];
    }
    Node {
        operator: name.to_owned(),
        role,
        object: value("file_groups").or_else(|| value("files")).and_then(|files| file(files)),
        conditions,
        rows_estimated: metric("statistics", "Rows"),
        rows: metric("metrics", "output_rows"),
        time_ms: metric("metrics", "elapsed_compute"),
        memory: Memory {
            table_bytes: value("metrics").and_then(|list| bytes(list, "build_mem_used")),
            ..Memory::default()
        },
        ..Node::default()
    }
}

/// A condition as planned: without the contents of dynamic filters.
fn planned(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("DynamicFilter [") {
        out.push_str(before);
        out.push_str("DynamicFilter");
        rest = after.split_once(']').map_or("", |(_, rest)| rest);
    }
    out.push_str(rest);
    condition(&out)
}

fn role(name: &str, mode: Option<&str>) -> Role {
    match (name, mode) {
        ("RepartitionExec" | "CoalescePartitionsExec" | "SortPreservingMergeExec", _) => {
            Role::Exchange
        }
        ("AggregateExec", Some("Partial")) => Role::Partial,
        ("AggregateExec", Some("Final" | "FinalPartitioned")) => Role::Final,
        _ => Role::Plain,
    }
}

/// `a=1, b=[x, y], c=d@0 > 5` as pairs: a comma ends a value only outside of brackets and before
/// the next `name=`.
fn pairs(details: &str) -> Vec<(String, String)> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    for piece in pieces(details) {
        let pair = piece.split_once(['=', ':']).filter(|(key, value)| {
            let is_name = key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ' ');
            is_name && !key.trim().is_empty() && !value.starts_with('=')
        });
        match (pair, pairs.last_mut()) {
            (Some((key, value)), _) => {
                pairs.push((key.trim().to_owned(), value.trim().to_owned()));
            }
            (None, Some((_, last))) => {
                last.push_str(", ");
                last.push_str(piece.trim());
            }
            (None, None) => {}
        }
    }
    pairs
}

/// Pieces between commas outside brackets and quotes.
fn pieces(details: &str) -> Vec<&str> {
    let (mut depth, mut quoted, mut start) = (0i32, false, 0);
    let mut pieces = Vec::new();
    for (at, c) in details.char_indices() {
        match c {
            '\'' => quoted = !quoted,
            _ if quoted => {}
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth <= 0 => {
                pieces.push(&details[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    pieces.push(&details[start..]);
    pieces
}

/// The first file of `{2 groups: [[a/t1.parquet:0..500], [a/t1.parquet:500..1000]]}`.
fn file(groups: &str) -> Option<String> {
    let (_, list) = groups.split_once("[[")?;
    let first = list.split([',', ']']).next()?;
    let name = first.rsplit('/').next()?;
    let name = name.split_once(':').map_or(name, |(name, _range)| name);
    (!name.is_empty()).then(|| name.to_owned())
}

/// Bytes of `[build_mem_used=400.1 KB, …]`, in powers of 1024.
fn bytes(list: &str, key: &str) -> Option<f64> {
    let (number, unit) = figure(list, key)?;
    let scale = match unit.as_str() {
        "KB" => 1024.0,
        "MB" => 1024.0 * 1024.0,
        "GB" => 1024.0 * 1024.0 * 1024.0,
        _ => 1.0,
    };
    Some(number * scale)
}

/// A figure of `[output_rows=1.2 K, elapsed_compute=3.4ms]` or `[Rows=Exact(7), …]`; times in ms.
fn metric(list: &str, key: &str) -> Option<f64> {
    let (number, unit) = figure(list, key)?;
    let scale = match unit.as_str() {
        "ns" => 1e-6,
        "µs" | "μs" | "us" => 1e-3,
        "s" | "K" => 1e3,
        "M" => 1e6,
        "B" => 1e9,
        _ => 1.0,
    };
    Some(number * scale)
}

/// A number and the letters after it.
fn figure(list: &str, key: &str) -> Option<(f64, String)> {
    let (_, rest) = list.split_once(&format!("{key}="))?;
    let rest = rest.trim_start_matches("Exact(").trim_start_matches("Inexact(");
    let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
    let number = rest[..end].parse().ok().map(bounded)?;
    let unit = rest[end..].trim_start().chars().take_while(|c| c.is_alphabetic()).collect();
    Some((number, unit))
}
