//! `cargo xtask bench lookup`: `workahead-lookup` beside other maps and ordered indexes.
//!
//! ```text
//! bench/lookup, a package of its own ─► usual pages ─► rows
//!                                    └► huge pages, for the allocator of the others too ─► rows
//! ```
//!
//! Candidates take turns within each of the two runs; `bench/lookup/src/timing.rs` says how they
//! are timed.

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value, json};

use super::{Bench, machine, record};
use crate::workspace::{Workspace, succeed};

/// A package of its own, built beside the workspace's.
const PACKAGE: [&str; 5] =
    ["--release", "--manifest-path", "bench/lookup/Cargo.toml", "--target-dir", "target/lookup"];

const HELP: &str = "\
usage: cargo xtask bench lookup [WORDS]

  --only TEXT       of the groups (hash u64 16000000, hash text 10000, inserts, ordered u64 200000,
                    …) those with this in their name
  --also LIST       techniques beside the chosen one: d32 (distance), l16 (lanes), r64 (rounds), i
  --small           a hundredth of the entries: checks answers, and measures little

g++ and Boost's headers (libboost1.81-dev) bring boost::unordered_flat_map. Whole runs are kept in
bench/record/; they take 6 GiB of memory.
";

/// Runs the bench on both kinds of pages.
pub(crate) fn run(workspace: &Workspace, words: &[&str]) -> Result<bool> {
    if super::shows_help(words, HELP) {
        return Ok(true);
    }
    succeed(workspace.cargo(&["build"]).args(PACKAGE))?;
    // Checked before the quarter of an hour that the figures take: the command may not be built.
    let machine = if words.is_empty() { Some(machine(workspace)?) } else { None };
    let mut tables: Vec<(&str, Vec<Value>)> =
        ["hash", "inserts", "ordered"].map(|table| (table, Vec::new())).into();
    for (pages, tunables) in [("usual", ""), ("huge", "glibc.malloc.hugetlb=1")] {
        let mut command = workspace.cargo(&["run", "--quiet"]);
        command.args(PACKAGE).arg("--").args(words).args((pages == "huge").then_some("--huge"));
        command.env("GLIBC_TUNABLES", tunables).stderr(std::process::Stdio::inherit());
        println!("== {pages} pages");
        let output = command.output().context("cargo does not start")?;
        ensure!(output.status.success(), "the bench ended with {}", output.status);
        let result: Value = serde_json::from_slice(&output.stdout)?;
        for group in result["groups"].as_array().into_iter().flatten() {
            let name = group["group"].as_str().unwrap_or_default();
            let Some((_, rows)) = tables.iter_mut().find(|(table, _)| name.starts_with(table))
            else {
                bail!("the bench has a group {name}, which no table shows");
            };
            rows.push(row(name, pages, group));
        }
    }
    let Some(machine) = machine else {
        println!("only a whole run is kept");
        return Ok(true);
    };
    let result = json!({
        "title": "Look-ups and inserts, in nanoseconds each, on one thread",
        "rows": tables.remove(0).1,
        "tables": tables
            .into_iter()
            .map(|(table, rows)| json!({ "title": title(table), "rows": rows }))
            .collect::<Vec<_>>(),
        "notes": [
            "Medians of 9 rounds of 1,048,576 look-ups (inserts: 3 rounds), candidates in turn \
             within a round, each after one untimed run of its own, fresh keys in every round, CPU \
             time of the thread. Keys are drawn at \
             random; all maps have one hash function and room reserved; every answer is checked. \
             Random lines: of 512 MiB, the limit of any table that size with a line a look-up.",
        ],
    });
    let bench = Bench { package: "workahead-lookup".to_owned(), name: "lookup".to_owned() };
    record(workspace, &bench, &machine, &result)?;
    Ok(true)
}

fn title(table: &str) -> &'static str {
    match table {
        "inserts" => "Inserts into empty maps with room reserved",
        _ => "Ordered indexes",
    }
}

/// A group as a line: what was looked up, then each candidate's median.
fn row(name: &str, pages: &str, group: &Value) -> Value {
    let mut row = Map::new();
    row.insert("look-ups".to_owned(), name.into());
    row.insert("pages".to_owned(), pages.into());
    for one in group["candidates"].as_array().into_iter().flatten() {
        row.insert(one["name"].as_str().unwrap_or_default().to_owned(), one["ns"].clone());
    }
    row.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_becomes_a_line() {
        let group = json!({ "candidates": [{ "name": "a", "ns": 1.5 }, { "name": "b", "ns": 2 }] });
        let expected = json!({ "look-ups": "hash", "pages": "huge", "a": 1.5, "b": 2 });
        assert_eq!(row("hash", "huge", &group), expected);
    }
}
