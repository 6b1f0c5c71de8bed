//! The reference: what the command says of itself, of its studies and of its metrics.

use std::fmt::Write as _;

use anyhow::{Context, Result};
use serde_json::Value;

use super::generated::cell;
use super::program::Program;

/// `--help` of every command and of its subcommands.
pub(super) fn commands(program: &Program) -> Result<String> {
    let mut page = String::from(
        "# Commands\n\nWhat `workahead help` says of each, and of what is below it. Every command \
         has `--help`; those that print facts have `--json`.\n",
    );
    command(program, &[], &mut page)?;
    Ok(page)
}

fn command(program: &Program, words: &[&str], page: &mut String) -> Result<()> {
    let help = program.prints(&[words, &["--help"]].concat())?;
    let title = [&["workahead"], words].concat().join(" ");
    let _ = write!(page, "\n## {title}\n\n```text\n{}\n```\n", help.trim_end());
    for below in below(&help) {
        command(program, &[words, &[below]].concat(), page)?;
    }
    Ok(())
}

/// The names under `Commands:`, but for `help`.
fn below(help: &str) -> Vec<&str> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let named = lines.take_while(|line| !line.is_empty());
    // Words that go on in the next line stand further in.
    let named = named.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    named.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").collect()
}

/// `workahead study list`, by paper.
pub(super) fn studies(program: &Program) -> Result<String> {
    let mut list = list(program, &["study", "list", "--json"])?;
    // Studies outside of folders are for beginners.
    list.sort_by_key(|study| text(study, "id").contains('/'));
    let mut page = String::from(
        "# Studies that come with the command\n\n`workahead study show NAME` prints one, \
         `workahead study run NAME` runs it; what a study can say is in [Studies](../studies.md). \
         Times are those of a whole run. Most have a small scale too, `--scale small`. Rows are \
         those of [the papers](../papers.md).\n",
    );
    let mut folder = None;
    for study in &list {
        let id = text(study, "id");
        let of = id.split_once('/').map_or("", |(folder, _)| folder);
        if folder.replace(of) != Some(of) {
            let title = if of.is_empty() { "To begin with" } else { of };
            let _ = write!(page, "\n## {title}\n\n| study | asks | engine | time | rows |\n");
            page.push_str("|---|---|---|---:|---|\n");
        }
        let rows: Vec<String> =
            texts(study, "ledger").map(|row| format!("[{row}](../papers.md#{row})")).collect();
        let needs: Vec<&str> = texts(study, "needs").collect();
        let mut asks = cell(text(study, "question"));
        if !needs.is_empty() {
            let _ = write!(asks, " Needs {}.", needs.join(", "));
        }
        let _ = writeln!(
            page,
            "| [{id}](../../studies/{id}.toml) | {asks} | {} | {} | {} |",
            text(study, "engine"),
            time(study["time_s"].as_f64().unwrap_or_default()),
            rows.join(", "),
        );
    }
    Ok(page)
}

/// `90 s`, `2 min`, `10 h`.
fn time(seconds: f64) -> String {
    match seconds {
        short if short < 120.0 => format!("{short:.0} s"),
        medium if medium < 7200.0 => format!("{:.0} min", medium / 60.0),
        long => format!("{:.0} h", long / 3600.0),
    }
}

/// The catalogue of metrics, and its formulas for each family of processors.
pub(super) fn metrics(program: &Program) -> Result<String> {
    let tables = program.prints(&["counters", "list", "--table", "all"])?;
    let tables: Vec<&str> = tables
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|word| word.contains('/') || *word == "kernel")
        .collect();
    let first = tables.first().context("`counters list --table all` names no table")?;
    let mut page = String::from(
        "# Metrics\n\nWhat `workahead counters` derives from what a processor counts. \
         `workahead counters list` says which of them this machine has. In a study every one is a \
         measure of its samples, also with `_user` or `_kernel` behind its name \
         ([Counters](../counters.md)).\n\n\
         | metric | meaning | unit | groups |\n|---|---|---|---|\n",
    );
    for metric in list(program, &["counters", "list", "--json", "--table", first])? {
        let groups: Vec<&str> = texts(&metric, "groups").collect();
        let [name, words, unit] = ["name", "words", "unit"].map(|key| text(&metric, key));
        let _ = writeln!(
            page,
            "| `{name}` | {} | {} | {} |",
            cell(words),
            cell(unit),
            groups.join(", ")
        );
    }
    for table in &tables {
        formulas(program, table, &mut page)?;
    }
    Ok(page)
}

fn formulas(program: &Program, table: &str, page: &mut String) -> Result<()> {
    let _ = write!(page, "\n## {table}\n\n| metric | formula, or why there is none |\n|---|---|\n");
    for metric in list(program, &["counters", "list", "--json", "--table", table])? {
        let how = match text(&metric, "formula") {
            "" => cell(text(&metric, "why")),
            formula => format!("`{formula}`"),
        };
        let instead = match text(&metric, "instead") {
            "" => String::new(),
            note => format!(" ({})", cell(note)),
        };
        let _ = writeln!(page, "| `{}` | {how}{instead} |", text(&metric, "name"));
    }
    Ok(())
}

fn list(program: &Program, words: &[&str]) -> Result<Vec<Value>> {
    let text = program.prints(words)?;
    serde_json::from_str(&text).with_context(|| format!("workahead {}", words.join(" ")))
}

/// The text of a key; nothing where there is none.
fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn texts<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a str> {
    value[key].as_array().into_iter().flatten().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_those_below() {
        let help = "What.\n\nUsage: x\n\nCommands:\n  run   Does it, at\n          length\n  \
                    help  Print this\n\nOptions:\n  -h  Help\n";
        assert_eq!(below(help), ["run"]);
        assert!(below("Usage: x\n\nOptions:\n  -h  Help\n").is_empty());
    }

    #[test]
    fn times_are_rough() {
        assert_eq!([40.0, 120.0, 5400.0, 36000.0].map(time), ["40 s", "2 min", "90 min", "10 h"]);
    }

    #[test]
    fn the_page_of_observations_has_every_column() {
        let table = std::fs::read_to_string("../crates/measure/study/src/table.rs").unwrap();
        let page = std::fs::read_to_string("../docs/reference/observations.md").unwrap();
        let opening = table.lines().map_while(|line| line.strip_prefix("//!"));
        let opening: String = opening.collect();
        let named = opening.split('`').skip(1).step_by(2).flat_map(|names| names.split(", "));
        let columns: Vec<&str> = named.map(str::trim).collect();
        assert!(columns.len() > 20, "{columns:?}");
        for column in columns {
            assert!(page.contains(&format!("`{column}`")), "{column}");
        }
    }
}
