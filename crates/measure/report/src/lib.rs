//! Observations to one self-contained page, and the same as Markdown and CSV.
//!
//! ```text
//!   Results ──View──► Page (words and drawings) ──► report.html   templates/report.html, style.css
//!                       ▲                       └─► Markdown      templates/report.md
//!                     chart (inline SVG)            CSV           one row per cell
//! ```
//! To change the page:
//!
//! * The contents are decided in Rust (`answer`, `gains_and_losses`, `figures`, `rows`, `counted`,
//!   `functions`, `claims`, `limitations`, `facts`), where it can be tested; the templates only lay
//!   it out. A new part of the page is a field of `page::Page` and a few lines of both templates.
//! * The page must open from a disk without a network, today and in ten years: no script, no font,
//!   no link that is fetched; `tests/page.rs` refuses any, and tags left open.
//! * Colours are variables of `style.css`, once for light and once for dark; drawings name classes,
//!   never colours.
//! * A figure never stands without its unit, its evidence tier and, where it is one, the word
//!   "modelled". A missing number is a dash with a reason; `number` never writes
//!   `NaN`.
//! * To look at it: `cargo test -p workahead-report` writes sample pages below
//!   `target/tmp/report/`.
//!
//! Deliberately absent: this crate measures nothing, runs nothing and prints nothing. It knows no
//! paper: callers pass published figures as plain data ([`PublishedFunctions`]).

#![forbid(unsafe_code)]

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use minijinja::Value;
use minijinja::value::Serde;
use serde::Serialize;
use workahead_counters::profile::Profile;
use workahead_study::comparison::{Comparison, Line};
use workahead_study::directory::{REPORT_FILE, profile_file};
use workahead_study::file;
use workahead_study::results::Results;
use workahead_study::throughput::Unit;

mod answer;
mod chart;
mod claims;
mod compare;
mod counted;
mod csv;
mod date;
mod download;
pub mod drawing;
mod error;
mod facts;
mod figures;
mod functions;
mod gains_and_losses;
mod instrumented;
mod limitations;
mod number;
mod page;
mod plan_cost_change;
mod plans;
mod profiled;
mod rows;
mod samples;
mod template;
mod view;
mod words;

pub use error::ReportError;
pub use functions::published::{PublishedFunction, PublishedFunctions};

/// The report as one HTML file, of a finished or unfinished run; `published` stands beside its
/// functions.
///
/// # Errors
/// Only if a template is broken.
pub fn render(results: &Results, published: &[PublishedFunctions]) -> Result<String, ReportError> {
    template::html(&page::Page::of(results, published))
}

/// The report as Markdown, without the drawings.
///
/// # Errors
/// Only if a template is broken.
pub fn markdown(
    results: &Results,
    published: &[PublishedFunctions],
) -> Result<String, ReportError> {
    template::markdown(&page::Page::of(results, published))
}

/// Writes the cells as CSV: settings, figures, ratio with its interval, every measure of the
/// engine; unrounded. Field by field: a table may be larger than memory.
///
/// # Errors
/// When it can't be written.
pub fn write_csv(results: &Results, to: &mut dyn Write) -> io::Result<()> {
    csv::csv(results, to)
}

/// Writes `report.html` atomically into a result directory, and returns its path.
///
/// # Errors
/// If the directory cannot be written.
pub fn write(
    dir: &Path,
    results: &Results,
    published: &[PublishedFunctions],
) -> Result<PathBuf, ReportError> {
    file::write_in(dir, REPORT_FILE, render(results, published)?.as_bytes())?;
    Ok(dir.join(REPORT_FILE))
}

/// The same with the answer to its question in the caller's words: a sentence, and what else a
/// reader has to know.
///
/// # Errors
/// If the directory cannot be written.
pub fn write_answered(
    dir: &Path,
    results: &Results,
    sentence: &str,
    notes: &[String],
) -> Result<PathBuf, ReportError> {
    let page = page::Page::of(results, &[]).answered(sentence, notes);
    file::write_in(dir, REPORT_FILE, template::html(&page)?.as_bytes())?;
    Ok(dir.join(REPORT_FILE))
}

/// Writes the profile of every cell that kept its stacks, with its flame graph, to a page of its
/// own in a result directory: the report has room for a few only. Returns their paths.
///
/// # Errors
/// If the directory cannot be written.
pub fn write_profiles(dir: &Path, results: &Results) -> Result<Vec<PathBuf>, ReportError> {
    let view = view::View::of(results);
    let mut paths = Vec::new();
    for cell in &results.run_plan.cells {
        let Some(stacks) = results.stacks(cell.index) else { continue };
        let name = profile_file(cell.index + 1);
        let page = template::profile(&profiled::Page::of(&view.place(cell, &[]), stacks))?;
        file::write_in(dir, &name, page.as_bytes())?;
        paths.push(dir.join(name));
    }
    Ok(paths)
}

/// Two results on one page, with the causes of the clearest change, in the form of the template
/// `causes.html`, where there are some.
///
/// # Errors
/// Only if a template is broken.
pub fn render_comparison(
    before: &Results,
    after: &Results,
    compared: &Comparison,
    causes: Option<&impl Serialize>,
) -> Result<String, ReportError> {
    let causes = causes.map(|causes| Value::from(Serde(causes)));
    template::comparison(&compare::Page::of(before, after, compared), causes)
}

/// The line of a comparison with the clearest change: the one that its sentence is about.
pub fn clearest(compared: &Comparison) -> Option<&Line> {
    compare::clearest(compared)
}

/// The unit of both results of a comparison.
pub fn comparison_unit(before: &Results, after: &Results) -> Unit {
    compare::unit(before, after)
}

/// A comparison in two sentences.
pub fn comparison_in_words(compared: &Comparison) -> [String; 2] {
    [compare::sentence(compared), compare::tally(compared)]
}

/// A page of another crate with this one's style: `template` is the HTML, with `page` for the data
/// and `{{ style }}` for the style sheet.
///
/// # Errors
/// If the template is broken.
pub fn document(template: &'static str, page: &impl Serialize) -> Result<String, ReportError> {
    template::sheet(template, Value::from(Serde(page)))
}

/// An evidence tier with its meaning: `Evidence tier E: modelled, not measured`.
pub fn tier_in_words(letter: &str) -> String {
    words::capital(&words::tier(letter))
}

/// A profile of functions on one page, with its flame graph.
///
/// # Errors
/// Only if a template is broken.
pub fn render_profile(profile: &Profile) -> Result<String, ReportError> {
    template::profile(&profiled::Page::of("", profile))
}
