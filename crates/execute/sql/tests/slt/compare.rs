//! Two runs of a file, record by record.

use std::collections::BTreeMap;
use std::fmt;

use sqllogictest::{DefaultColumnType, Location, QueryExpect, Record, SortMode, StatementExpect};

use crate::arm::{Nodes, Outcome, Run};

/// Records of each kind that are printed one by one.
const NOTES_MAX: usize = 10;

/// The result of a comparison.
#[derive(Default)]
pub(crate) struct Tally {
    /// Queries with the same rows.
    equal_rows: usize,
    /// Of them, those with the rows that the file expects.
    expected: usize,
    /// Statements that succeeded in both, and records that failed in both.
    both_succeeded: usize,
    both_failed: usize,
    left_out: BTreeMap<&'static str, Vec<String>>,
    /// Records for which stock DataFusion does not meet the file's expectation either.
    unexpected: Vec<String>,
    /// The same rows in another order where the query has none.
    reordered: Vec<String>,
    differ: Vec<String>,
    /// Not compared where ours spills, and why.
    set_aside: Vec<String>,
    /// The joins in our plans.
    joins: Nodes,
    left_to_stock: Vec<String>,
}

impl Tally {
    pub(crate) fn add(&mut self, other: Self) {
        self.equal_rows += other.equal_rows;
        self.expected += other.expected;
        self.both_succeeded += other.both_succeeded;
        self.both_failed += other.both_failed;
        for (reason, records) in other.left_out {
            self.left_out.entry(reason).or_default().extend(records);
        }
        self.unexpected.extend(other.unexpected);
        self.reordered.extend(other.reordered);
        self.differ.extend(other.differ);
        self.set_aside.extend(other.set_aside);
        self.joins.ours += other.joins.ours;
        self.joins.stock += other.joins.stock;
        self.joins.spilled += other.joins.spilled;
        self.left_to_stock.extend(other.left_to_stock);
    }

    pub(crate) fn failed(&self) -> bool {
        !self.differ.is_empty() || self.equal_rows == 0
    }

    /// Prints all that is not plain success.
    pub(crate) fn print_notes(&self) {
        let lists = [
            ("differs", &self.differ),
            ("has a join that is left to DataFusion", &self.left_to_stock),
            ("in another order", &self.reordered),
            ("not as the file expects, in stock either", &self.unexpected),
        ];
        for record in &self.set_aside {
            println!("  set aside: {record}");
        }
        for (what, records) in lists {
            for record in records.iter().take(NOTES_MAX) {
                println!("  {what}: {record}");
            }
            if records.len() > NOTES_MAX {
                println!("  {what}: {} more", records.len() - NOTES_MAX);
            }
        }
    }

    /// Prints every record that was not run, and why.
    pub(crate) fn print_left_out(&self) {
        for (reason, records) in &self.left_out {
            println!("  {} left out ({reason}): {}", records.len(), records.join(" "));
        }
    }

    /// The closing line of Rust's own harness, which tools add up.
    pub(crate) fn libtest(&self) {
        let passed = self.equal_rows + self.both_succeeded + self.both_failed;
        let (failed, ignored) = (self.differ.len(), self.left_out_records());
        let word = if self.failed() { "FAILED" } else { "ok" };
        println!(
            "\ntest result: {word}. {passed} passed; {failed} failed; {ignored} ignored; \
             0 measured; 0 filtered out"
        );
    }

    fn left_out_records(&self) -> usize {
        self.left_out.values().map(Vec::len).sum::<usize>() + self.set_aside.len()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} queries with equal rows ({} as the file expects), {} statements, {} errors in \
             both, {} left out, {} in another order, {} differ; {} joins ours ({} spilled), {} \
             left to DataFusion",
            self.equal_rows,
            self.expected,
            self.both_succeeded,
            self.both_failed,
            self.left_out_records(),
            self.reordered.len(),
            self.differ.len(),
            self.joins.ours,
            self.joins.spilled,
            self.joins.stock,
        )
    }
}

/// Compares the outcomes of the same records in two arms.
pub(crate) fn compare(records: &[Record<DefaultColumnType>], stock: &Run, ours: &Run) -> Tally {
    let mut tally = Tally { joins: ours.joins, ..Tally::default() };
    for (at, sql) in ours.left_to_stock.iter().filter_map(|at| place(&records[*at])) {
        tally.left_to_stock.push(format!("{at} {}", one_line(sql)));
    }
    for (record, pair) in records.iter().zip(stock.outcomes.iter().zip(&ours.outcomes)) {
        let Some((at, sql)) = place(record) else { continue };
        let short = || format!("{at} {}", one_line(sql));
        match pair {
            (Outcome::LeftOut(reason), _) => {
                tally.left_out.entry(reason).or_default().push(at.clone());
            }
            (_, Outcome::LeftOut(reason)) => {
                tally.set_aside.push(format!("{}: {reason}", short()));
            }
            (Outcome::Rows(stock), Outcome::Rows(found)) => {
                let free = ours.joins.spilled > 0 && is_free(sql);
                if free && stock != found && stock.len() == found.len() {
                    tally.set_aside.push(format!("{}: another choice of a LIMIT", short()));
                    continue;
                }
                rows(&mut tally, record, short, stock, found);
            }
            (Outcome::Failed(error), Outcome::Failed(_)) => {
                tally.both_failed += 1;
                if !refuses(record) {
                    tally.unexpected.push(format!("{}: {}", short(), first_line(error)));
                }
            }
            (stock, ours) => {
                let (stock, ours) = (describe(stock), describe(ours));
                tally.differ.push(format!("{}: stock {stock}, ours {ours}", short()));
            }
        }
    }
    tally
}

/// Whether only the number of rows is defined: spilled rows come last.
fn is_free(sql: &str) -> bool {
    sql.to_ascii_lowercase().contains("limit")
}

fn rows(
    tally: &mut Tally,
    record: &Record<DefaultColumnType>,
    short: impl Fn() -> String,
    stock: &[Vec<String>],
    ours: &[Vec<String>],
) {
    let Record::Query { sql, expected, .. } = record else {
        tally.both_succeeded += 1;
        if refuses(record) {
            tally.unexpected.push(short());
        }
        return;
    };
    let none = (None, &Vec::new());
    let (sort_mode, results) = match expected {
        QueryExpect::Results { sort_mode, results, .. } => (*sort_mode, results),
        QueryExpect::Error(_) => none,
    };
    let (stock, ours) = (lines(stock, sort_mode), lines(ours, sort_mode));
    if stock != ours {
        let sorted = |lines: &[String]| {
            let mut lines = lines.to_vec();
            lines.sort_unstable();
            lines
        };
        let same = sorted(&stock) == sorted(&ours);
        if same && !sql.to_ascii_lowercase().contains("order by") {
            tally.equal_rows += 1;
            tally.reordered.push(short());
        } else {
            let first = stock.iter().zip(&ours).position(|(stock, ours)| stock != ours);
            let at = first.unwrap_or(stock.len().min(ours.len()));
            let row = |lines: &[String]| lines.get(at).cloned().unwrap_or("nothing".into());
            tally.differ.push(format!(
                "{}: {} and {} rows; row {at} is {:?} in stock, {:?} in ours",
                short(),
                stock.len(),
                ours.len(),
                row(&stock),
                row(&ours),
            ));
        }
        return;
    }
    tally.equal_rows += 1;
    let results: Vec<&str> = results.iter().map(|line| line.trim_end()).collect();
    if stock == results && !refuses(record) {
        tally.expected += 1;
    } else {
        tally.unexpected.push(short());
    }
}

fn lines(rows: &[Vec<String>], sort_mode: Option<SortMode>) -> Vec<String> {
    let mut lines: Vec<String> = match sort_mode {
        Some(SortMode::ValueSort) => rows.iter().flatten().cloned().collect(),
        _ => rows.iter().map(|row| row.join(" ").trim_end().to_owned()).collect(),
    };
    if matches!(sort_mode, Some(SortMode::RowSort | SortMode::ValueSort)) {
        lines.sort_unstable();
    }
    lines
}

fn place(record: &Record<DefaultColumnType>) -> Option<(String, &str)> {
    let short = |loc: &Location| {
        let file = loc.file().rsplit('/').next().unwrap_or_default();
        format!("{file}:{}", loc.line())
    };
    match record {
        Record::Statement { loc, sql, .. }
        | Record::Query { loc, sql, .. }
        | Record::Let { loc, sql, .. } => Some((short(loc), sql)),
        _ => None,
    }
}

/// Characters of a statement that are printed.
const SHOWN_CHARS: usize = 60;

fn one_line(sql: &str) -> String {
    let line = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

fn refuses(record: &Record<DefaultColumnType>) -> bool {
    match record {
        Record::Statement { expected, .. } => matches!(expected, StatementExpect::Error(_)),
        Record::Query { expected, .. } => matches!(expected, QueryExpect::Error(_)),
        _ => false,
    }
}

fn describe(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Rows(rows) => format!("returns {} rows", rows.len()),
        Outcome::Failed(error) => format!("fails: {}", first_line(error)),
        Outcome::LeftOut(reason) => format!("leaves it out: {reason}"),
        Outcome::Nothing => "does nothing".to_owned(),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
