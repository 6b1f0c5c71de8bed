//! Where our own time goes, as our worker says in each reply.

use serde_json::Value;

use super::rounds::{CaseTimes, median};
use super::summary;

/// Seconds of each phase, summed over the threads: the median over the rounds.
fn phases(measured: &CaseTimes) -> Vec<(String, f64)> {
    let replies = &measured.ours().replies;
    let first = replies.first().and_then(|reply| reply.value["phases"].as_object());
    let names = first.into_iter().flat_map(serde_json::Map::keys);
    let seconds = |name: &String| {
        let each = replies.iter().filter_map(|reply| reply.value["phases"][name].as_f64());
        median(each.collect())
    };
    names.map(|name| (name.clone(), seconds(name))).collect()
}

/// For the record, in milliseconds.
pub(crate) fn row(measured: &CaseTimes) -> Value {
    let mut row = summary::place(measured);
    for (name, seconds) in phases(measured) {
        row.insert(format!("{name}_ms"), (seconds * 1e3).into());
    }
    let choice = measured.ours().replies.first().map(|reply| reply.value["choice"].clone());
    row.insert("choice".into(), choice.unwrap_or_default());
    Value::Object(row)
}

/// For the screen: milliseconds, nanoseconds a probe row, and the share.
pub(crate) fn lines(measured: &CaseTimes) -> String {
    let phases = phases(measured);
    let total: f64 = phases.iter().map(|(_, seconds)| seconds).sum();
    let probe_rows = measured.case.probe_rows as f64;
    let line = |(name, seconds): &(String, f64)| {
        let (ms, ns) = (seconds * 1e3, seconds * 1e9 / probe_rows);
        format!("    {name:<10} {ms:>8.1} ms  {ns:>6.2} ns/row  {:>3.0} %\n", seconds / total * 1e2)
    };
    phases.iter().map(line).collect()
}
