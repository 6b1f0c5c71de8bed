//! Facts from JSON whose shape is not known here: names become words, endings become units.
//!
//! Used for files of other versions of the command: a page is made from a result for as long as the
//! result is kept, and shows unknown fields rather than drop them.

use serde_json::{Map, Value};

use super::{Fact, is_telling};
use crate::{number, words};

/// Longer lists are cut; the rest is counted.
const ITEMS_MAX: usize = 24;

/// A name is said again for everything below it.
const NAME_MAX: usize = 80;

/// More are left out.
const FACTS_MAX: usize = 2_000;

/// The facts of an object, one per leaf or list; anything else is one fact.
pub(super) fn facts(value: &Value) -> Vec<Fact> {
    let mut facts = Vec::new();
    match value {
        Value::Object(fields) => collect(fields, ("", ""), &mut facts),
        other if is_telling(other) => facts.push(Fact::new("description", leaf("", other))),
        _ => {}
    }
    facts
}

/// `above` is the parent of the fields: its words, and its name with the inherited unit.
fn collect(fields: &Map<String, Value>, above: (&str, &str), facts: &mut Vec<Fact>) {
    for (name, value) in fields.iter().filter(|(_, value)| is_telling(value)) {
        if facts.len() >= FACTS_MAX {
            return;
        }
        let (stem, unit) = split(name);
        let path = if above.0.is_empty() { stem } else { format!("{}, {stem}", above.0) };
        let unit_name = if unit.is_some() { name.as_str() } else { above.1 };
        match value {
            Value::Object(inner) => collect(inner, (&path, unit_name), facts),
            other => facts.push(Fact { name: path, value: leaf(unit_name, other) }),
        }
    }
}

/// A value on one line.
fn leaf(name: &str, value: &Value) -> String {
    match value {
        Value::Null => number::NONE.to_owned(),
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(written) => match written.as_f64() {
            Some(read) => with_unit(name, read),
            None => written.to_string(),
        },
        Value::Array(items) => list(name, items),
        Value::Object(fields) => {
            let one = |(name, value): (&String, &Value)| match value {
                Value::Number(_) => format!("{} {}", split(name).0, leaf(name, value)),
                _ => leaf(name, value),
            };
            let shown = fields.iter().filter(|(_, value)| is_telling(value));
            shown.map(one).collect::<Vec<_>>().join(" ")
        }
    }
}

fn list(name: &str, items: &[Value]) -> String {
    let shown: Vec<String> = items.iter().take(ITEMS_MAX).map(|item| leaf(name, item)).collect();
    let is_nested = items.iter().any(|item| item.is_object() || item.is_array());
    let mut text = shown.join(if is_nested { "; " } else { ", " });
    if items.len() > ITEMS_MAX {
        text.push_str(&format!(" and {} more", items.len() - ITEMS_MAX));
    }
    text
}

fn split(name: &str) -> (String, Option<String>) {
    let name = name.char_indices().nth(NAME_MAX).map_or(name, |(end, _)| &name[..end]);
    match words::axis(name).rsplit_once(", ") {
        Some((stem, unit)) => (stem.to_owned(), Some(unit.to_owned())),
        None => (words::axis(name), None),
    }
}

fn with_unit(name: &str, value: f64) -> String {
    match split(name).1.as_deref() {
        Some("bytes") if value >= 0.0 && value < u64::MAX as f64 => number::bytes(value as u64),
        Some("s") => number::seconds(value),
        Some("fraction") => number::percent(value),
        Some(unit) => format!("{} {unit}", number::plain(value)),
        None if value.fract() == 0.0 && value.abs() < 1e5 => number::exact(value),
        None => number::plain(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_unknown_shape_is_still_shown() {
        let value = json!({
            "lines_per_s": { "one_thread": 95_200_000 },
            "latency": { "l2_ns": 3.51, "memory_ns": 98.2 },
            "useful_cache_bytes": 16 << 20,
            "curve": [{ "table_bytes": 4096, "latency_ns": 1.2 }],
            "virtual": true,
            "empty": [],
            "absent": null,
        });
        let shown: Vec<String> =
            facts(&value).iter().map(|fact| format!("{} = {}", fact.name, fact.value)).collect();
        assert_eq!(
            shown,
            [
                "lines, one thread = 95,200,000 per second",
                "latency, l2 = 3.51 ns",
                "latency, memory = 98.2 ns",
                "useful cache = 16 MiB",
                "curve = table 4 KiB latency 1.20 ns",
                "virtual = yes",
            ]
        );
    }
}
