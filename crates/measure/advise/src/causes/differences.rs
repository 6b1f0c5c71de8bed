//! Differences between two captures beside time: counts for each transaction, plans, ways into
//! tables.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;

use workahead_study::capture::{Capture, Figures};
use workahead_study::plans::Label;

use super::documented::Sign;
use super::parts::{Change, change, half};
use crate::words::significant;

/// A count moves when it is this many times as large, or as small, and chance would do that once in
/// a hundred pairs.
const MOVED: f64 = 1.2;
const MOVED_P: f64 = 0.01;

/// Counts of work: rows and blocks that are looked at.
const WORK: &[&str] = &[
    "tup_returned",
    "tup_fetched",
    "blks_hit",
    "blks_read",
    "rows_read",
    "rows_tmp_read",
    "handler_read_key",
    "handler_read_next",
    "handler_read_rnd_next",
    "innodb_buffer_pool_read_requests",
];

/// Sequential scans and the like in a transaction that are worth a word.
const SCANS_MIN: f64 = 0.02;

/// Both captures, and whether a transaction takes longer afterwards.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pair<'a> {
    pub(super) before: &'a Capture,
    pub(super) after: &'a Capture,
    pub(super) is_slower: bool,
    pub(super) known: &'a ComparisonCache,
}

/// Results that are computed once, however often they are used: a capture may have thousands of
/// plans and of settings.
#[derive(Debug, Default)]
pub(super) struct ComparisonCache {
    plans: OnceCell<Vec<String>>,
    ways: OnceCell<Vec<(String, String)>>,
    moved: RefCell<BTreeMap<&'static [&'static str], CountMovement>>,
}

/// The movement of some counts.
#[derive(Debug, Clone, Default)]
struct CountMovement {
    /// Whether both sides have one of them.
    is_counted: bool,
    /// The first that moved as the time did, in words.
    says: Option<String>,
}

impl<'a> Pair<'a> {
    /// Of both sides that on which a transaction takes less time, then the other.
    pub(super) fn faster_first<T>(&self, before: T, after: T) -> (T, T) {
        if self.is_slower { (before, after) } else { (after, before) }
    }

    /// A count for each transaction on both sides; none where either has not counted it.
    fn count(&self, name: &str) -> Option<Change> {
        let pairs = |capture: &Capture| -> Option<Vec<(f64, f64)>> {
            let pair = |window: &workahead_study::capture::Window| {
                Some((*window.counts.get(name)?, window.ended))
            };
            capture.windows.iter().map(pair).collect()
        };
        Some(change(&pairs(self.before)?, &pairs(self.after)?))
    }

    fn moved(&self, names: &'static [&'static str]) -> CountMovement {
        let mut moved = self.known.moved.borrow_mut();
        moved.entry(names).or_insert_with(|| self.find_moved(names)).clone()
    }

    fn find_moved(&self, names: &[&str]) -> CountMovement {
        let counts: Vec<(&str, Change)> =
            names.iter().filter_map(|name| Some((*name, self.count(name)?))).collect();
        let says = counts.iter().find_map(|(name, count)| {
            let (less, more) = self.faster_first(count.before_s, count.after_s);
            let beyond = more - less * MOVED > 0.0;
            let is_sure = count.difference_s().abs() > half(count.error_s, count.degrees, MOVED_P);
            (beyond && is_sure).then(|| {
                let [before, after] = [count.before_s, count.after_s].map(significant);
                let name = words(name);
                format!("{name}: {before} a {}, then {after}", self.unit())
            })
        });
        CountMovement { is_counted: !counts.is_empty(), says }
    }

    /// The counted unit, in the singular.
    pub(super) fn unit(&self) -> &str {
        self.after.counted.strip_suffix('s').unwrap_or(&self.after.counted)
    }

    /// Work that moved as the time did.
    pub(super) fn work(&self) -> Option<String> {
        self.moved(WORK).says
    }

    /// Whether a sign is there: in words what shows it. `Err` where the capture has what would show
    /// it, and it does not.
    pub(super) fn sign(&self, sign: Sign) -> Result<Option<String>, ()> {
        let found = match sign {
            Sign::Counts(names) => self.moved(names).says,
            Sign::CountsOrPlans(names) => {
                self.moved(names).says.or_else(|| self.plans().last().cloned())
            }
            Sign::Plans => self.plans().last().cloned(),
            Sign::Jit => self.jit(),
            Sign::SameWork => {
                return match self.work() {
                    None => Ok(None),
                    Some(_) => Err(()),
                };
            }
            Sign::Itself | Sign::Nothing => return Ok(None),
        };
        let could_show = match sign {
            Sign::Counts(names) | Sign::CountsOrPlans(names) => self.moved(names).is_counted,
            // Plans are seldom all there.
            _ => false,
        };
        match (found, could_show) {
            (Some(says), _) => Ok(Some(says)),
            (None, true) => Err(()),
            (None, false) => Ok(None),
        }
    }

    /// Compiled expressions: by time where statements are summed up, by plans otherwise.
    fn jit(&self) -> Option<String> {
        let jit_s = |capture: &Capture| {
            let each = capture.statements.values().filter_map(|one| one.figures.get("jit_s"));
            each.sum::<f64>() / capture.ended().max(1.0)
        };
        let (before_s, after_s) = (jit_s(self.before), jit_s(self.after));
        if (after_s - before_s).abs() > 1e-6 && (after_s > before_s) == self.is_slower {
            let [before, after] = [before_s, after_s].map(|seconds| significant(seconds * 1e3));
            return Some(format!("{before} ms of compiling a {}, then {after}", self.unit()));
        }
        let compiled = |capture: &Capture| {
            capture.plans.values().filter(|plan| plan.text.contains("\"JIT\"")).count()
        };
        let (before, after) = (compiled(self.before), compiled(self.after));
        (before != after && (after > before) == self.is_slower)
            .then(|| format!("plans with compiled expressions: {before}, then {after}"))
    }

    /// Plans that changed, and ways into tables, in words; the clearest last.
    pub(super) fn plans(&self) -> &'a [String] {
        self.known.plans.get_or_init(|| self.find_plans())
    }

    fn find_plans(&self) -> Vec<String> {
        let mut found: Vec<String> = self.ways().iter().map(|(_, says)| says.clone()).collect();
        for (text, plan) in &self.after.plans {
            let Some(was) = self.before.plans.get(text) else { continue };
            match plan.against(was) {
                Label::Same => {}
                Label::SameInParallel => {
                    found.push(format!("in parallel now, or no longer: {}", short(text)));
                }
                Label::Changed => found.push(format!("another plan of {}", short(text))),
            }
        }
        found
    }

    /// Tables that are read in another way, with what shows it; those with most rows last.
    pub(super) fn ways(&self) -> &'a [(String, String)] {
        self.known.ways.get_or_init(|| self.find_ways())
    }

    fn find_ways(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for (table, figures) in &self.after.tables {
            let Some(were) = self.before.tables.get(table) else { continue };
            let both = |name: &str| {
                Some((
                    per_transaction(self.before, were, name)?,
                    per_transaction(self.after, figures, name)?,
                ))
            };
            let Some((before, after)) = both("seq_scans") else { continue };
            let rows = both("seq_rows").map_or(0.0, |(before, after)| (after - before).abs());
            let (less, more) = if before < after { (before, after) } else { (after, before) };
            if more > SCANS_MIN && more > 2.0 * less {
                let [before, after] = [before, after].map(significant);
                let says = format!(
                    "sequential scans of {}: {before} a {}, then {after}",
                    short(table),
                    self.unit()
                );
                found.push((rows, table.clone(), says));
            }
        }
        found.sort_by(|one, other| one.0.total_cmp(&other.0));
        found.into_iter().map(|(_, table, says)| (table, says)).collect()
    }

    /// The statement whose time grew, or shrank, most for each transaction.
    pub(super) fn statement(&self) -> Option<String> {
        let by_text = |capture: &Capture| {
            let mut by_text = BTreeMap::new();
            for one in capture.statements.values() {
                let seconds = one.figures.get("seconds").copied().unwrap_or(0.0);
                *by_text.entry(one.text.clone()).or_insert(0.0) +=
                    seconds / capture.ended().max(1.0);
            }
            by_text
        };
        let before = by_text(self.before);
        if before.is_empty() {
            return None;
        }
        let difference = |(text, after): (String, f64)| {
            let was = before.get(&text).copied().unwrap_or(0.0);
            (text, was, after)
        };
        let direction = if self.is_slower { 1.0 } else { -1.0 };
        let growth = |one: &(String, f64, f64)| direction * (one.2 - one.1);
        let most = by_text(self.after).into_iter().map(difference);
        let most = most.max_by(|one, other| growth(one).total_cmp(&growth(other)))?;
        (growth(&most) > 0.0).then(|| {
            let [before, after] = [most.1, most.2].map(|seconds| significant(1e3 * seconds));
            format!("{before} ms a {}, then {after}: {}", self.unit(), short(&most.0))
        })
    }
}

/// A figure of a table for each transaction.
pub(super) fn per_transaction(capture: &Capture, figures: &Figures, name: &str) -> Option<f64> {
    Some(figures.get(name)? / capture.ended().max(1.0))
}

/// A count's name in words.
fn words(name: &str) -> String {
    match name {
        "tup_returned" => "rows read by scans".to_owned(),
        "tup_fetched" => "rows fetched by indexes".to_owned(),
        "blks_hit" => "blocks found in the buffers".to_owned(),
        "blks_read" => "blocks read from files".to_owned(),
        "temp_bytes" => "bytes of temporary files".to_owned(),
        other => other.replace('_', " "),
    }
}

/// The beginning of a text, on one line.
pub(super) fn short(text: &str) -> String {
    const CHARS_MAX: usize = 100;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{} …", &line[..end]),
        None => line,
    }
}
