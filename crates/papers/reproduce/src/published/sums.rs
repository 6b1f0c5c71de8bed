//! All sums that the figures of both papers allow, by what they are about.
//!
//! The files come with the crate, and its tests run every sum: a name that is not there is a slip
//! of this page, and panics.

mod caches;
mod cpi;
mod hassanein;
mod overlap;
mod system;
mod widths;

use super::derived::{Input, RecomputedFigure};
use super::keeton;
use super::paper::Paper;
use super::printed_figure::Quantity;
use workahead_counters::cycles::{Value, ratio};

/// The columns of tables by cache size.
const SIZES: [&str; 3] = ["256 KB", "512 KB", "1 MB"];

/// The base system's.
const BASE: &str = "1 MB";

pub(super) fn all() -> Vec<RecomputedFigure> {
    let groups = [cpi::all, caches::all, widths::all, system::all, overlap::all, hassanein::all];
    groups.iter().flat_map(|group| group()).collect()
}

/// A cell of Keeton's.
fn at(table: &str, row: &str, column: &str) -> Input {
    cell(keeton(), table, row, column)
}

fn cell(paper: &Paper, table: &str, row: &str, column: &str) -> Input {
    let found = paper.table(table).and_then(|table| table.figure(row, column));
    let printed = found.unwrap_or_else(|| panic!("{table} has no figure {row}, {column}"));
    Input { place: format!("{table}, {row}, {column}"), printed, is_exact: false }
}

/// A figure of Keeton's text.
fn said(id: &str) -> Input {
    claimed(keeton(), id)
}

fn claimed(paper: &Paper, id: &str) -> Input {
    let claim = paper.claim(id).unwrap_or_else(|| panic!("no claim {id}"));
    let Some(Quantity::Exactly(printed) | Quantity::AtLeast(printed) | Quantity::AtMost(printed)) =
        claim.quantity()
    else {
        panic!("claim {id} is not of one figure");
    };
    Input { place: format!("{}, {}", claim.place, claim.says), printed, is_exact: false }
}

/// A count of things, which nobody rounded.
fn exact(input: Input) -> Input {
    Input { is_exact: true, ..input }
}

/// The CPIs of overall, database and system by which both mix, at a cache size.
fn cpis(size: &str) -> Vec<Input> {
    let rows = ["Overall: Measured CPI", "Database: Measured CPI", "OS: Measured CPI"];
    rows.map(|row| at("Table 14", row, size)).to_vec()
}

/// Which share of the instructions (or µops) the database's are, out of the overall, its and the
/// system's cycles for each: what is relative to instructions mixes by it.
fn instruction_share(overall: f64, database: f64, system: f64) -> Value {
    ratio(&Ok(system - overall), &Ok(system - database), "the difference of both CPIs")
}

/// Database's and system's values together, by a share.
fn mixed(share: f64, database: f64, system: f64) -> f64 {
    share * database + (1.0 - share) * system
}

/// One value in per cent of another.
fn percent(part: f64, whole: f64) -> Value {
    Ok(100.0 * ratio(&Ok(part), &Ok(whole), "the whole")?)
}
