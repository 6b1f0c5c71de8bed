//! `cargo xtask bench sql`: TPC-H, TPC-DS, joins of one shape each or in random orders, in
//! DataFusion by its own joins and by ours.
//!
//! The bench itself is `crates/execute/sql/benches/sql`. It is built together with the command, so
//! that both share one DataFusion: Cargo unifies features over the packages of one call only.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Bench, json_of, page, record};
use crate::workspace::Workspace;

/// Options of the bench.
pub(crate) const WORDS: &str = "\
usage: cargo xtask bench sql [WORDS]

  --suite tpch       or tpcds, whose tables and answers DuckDB makes; in memory: shapes, joins of
                     one shape each, and orders, a star and a chain of six tables, each joined in
                     ten orders [default: tpch]
  --scale N          of its tables [default: 1]
  --rounds N         pairs of runs of each query [default: 15]
  --threads 1,2      threads, and partitions
  --tables memory,parquet
                     TPC-DS's are in Parquet only
  --memory MB        of each session's pool; queries that fail in any arm are left out
  --queries 4,5,18   only these
  --arms ours,joins,runtime
                     held against stock: ours, ours without sideways filters, and ours that builds
                     on the side with fewer rows; also `pushed`, which evaluates filters while it
                     decodes, and `copies`, which runs equal subplans each for itself
  --duckdb           DuckDB beside them, from text to last row, on the same files or in tables of
                     its own
  --explain          shows plans with their operators' times
  --json FILE        keep the record there too

A run that leaves nothing out is kept in bench/record/; of TPC-DS, one with `--threads 1 --arms
ours` is, which takes a quarter of an hour.
";

/// Runs the bench with these words.
pub(crate) fn run(workspace: &Workspace, words: &[&str]) -> Result<bool> {
    if super::shows_help(words, WORDS) {
        return Ok(true);
    }
    let (words, file) = without_file(words)?;
    let cargo = ["bench", "--package", "workahead-sql", "--package", "workahead-cli"];
    let bench = ["--features", "workahead-cli/sql", "--bench", "sql", "--", "--json"];
    let mut result = json_of(workspace, &[&cargo[..], &bench[..], &words[..]].concat())?;
    if let Some(file) = file {
        super::write(file, &(serde_json::to_string_pretty(&result)? + "\n"))?;
    }
    let said = result.as_object_mut().and_then(|result| result.remove("machine"));
    let machine = said.context("a figure is worth nothing without its machine")?;
    let name = match result["suite"].as_str() {
        Some("TPC-DS") => "sql-tpcds",
        Some("Shapes of joins") => "sql-shapes",
        Some("Orders of joins") => "sql-orders",
        _ => "sql",
    };
    let beside = if result["duckdb"] == Value::Bool(true) { "-duckdb" } else { "" };
    let bench = Bench { package: "workahead-sql".into(), name: format!("{name}{beside}") };
    if result["whole"] == Value::Bool(true) {
        record(workspace, &bench, &machine, &result)?;
    } else {
        let whole = serde_json::json!({ "machine": machine, "result": result });
        println!("{}", page::of(&whole));
        println!(
            "not kept in bench/record: that takes all queries, scale 1, 15 rounds and all arms"
        );
    }
    Ok(true)
}

/// The words without `--json FILE`, and the file.
fn without_file<'a>(words: &[&'a str]) -> Result<(Vec<&'a str>, Option<&'a Path>)> {
    let Some(at) = words.iter().position(|word| *word == "--json") else {
        return Ok((words.to_vec(), None));
    };
    let file = words.get(at + 1).context("--json needs a file")?;
    Ok(([&words[..at], &words[at + 2..]].concat(), Some(Path::new(*file))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_ours_and_the_other_words_are_the_benchs() {
        let (words, file) =
            without_file(&["--rounds", "2", "--json", "a.json", "--scale", "1"]).unwrap();
        assert_eq!(words, ["--rounds", "2", "--scale", "1"]);
        assert_eq!(file, Some(Path::new("a.json")));
        assert!(without_file(&["--json"]).is_err());
    }
}
