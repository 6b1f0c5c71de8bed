//! Figures recomputed from other figures, and whether they are what is printed.

use serde::Serialize;

use super::printed_figure::{PrintedFigure, Quantity};
use super::sums;
use workahead_counters::cycles::Value;

/// Slack for sums of decimal fractions: 99.8 and four times 0.05 are not quite 100 in binary.
const SLACK: f64 = 1e-9;

/// One recomputed figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RecomputedFigure {
    /// The ledger's row.
    pub row: &'static str,
    /// The recomputed figure.
    pub says: String,
    /// The figures it is recomputed from.
    pub inputs: Vec<Input>,
    /// The result.
    pub ours: f64,
    /// The least and the most that they give within their rounding.
    pub range: (f64, f64),
    /// The printed figure, if there is one.
    pub printed: Option<Quantity>,
    /// Whether it is the same.
    pub agreement: Agreement,
    /// The kind of contradiction if it is not.
    pub nature: Nature,
    /// A remark.
    pub note: Option<&'static str>,
}

impl RecomputedFigure {
    /// A figure of a paper that has no file here, out of others of it: what is printed of it, and
    /// the formula.
    pub fn of(
        (row, says): (&'static str, &str),
        inputs: Vec<Input>,
        printed: Option<Quantity>,
        formula: impl Fn(&[f64]) -> f64,
    ) -> RecomputedFigure {
        let check = Check { printed, ..Check::new(row, says, inputs) };
        check.by(|values| Ok(formula(values)))
    }

    /// Whether nothing printed contradicts it.
    pub fn agrees(&self) -> bool {
        self.agreement != Agreement::Disagrees
    }

    /// By how much ours is more than what is printed, where just one value is.
    pub fn difference(&self) -> Option<f64> {
        Some(self.ours - self.printed?.value()?)
    }
}

/// A printed figure that another one is recomputed from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Input {
    /// Where it stands: `Table 10, Resource stalls, CPI, DB`.
    pub place: String,
    /// The figure.
    pub printed: PrintedFigure,
    /// Whether it is a count that was never rounded: four processors.
    pub is_exact: bool,
}

/// Whether two figures are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Agreement {
    /// Ours rounds to what is printed.
    Same,
    /// It does not, but might without the rounding of its inputs.
    WithinRounding,
    /// It can't.
    Disagrees,
    /// Nothing is printed to compare with.
    NothingPrinted,
}

/// How figures are related.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Nature {
    /// One follows from the others: who disagrees has a slip.
    Identity,
    /// They come from different events, counted at different times: who disagrees shows the error
    /// of measuring.
    Estimate,
    /// The text speaks of a table in round words.
    Words,
}

/// A figure to recompute.
pub(super) struct Check {
    row: &'static str,
    says: String,
    inputs: Vec<Input>,
    printed: Option<Quantity>,
    nature: Nature,
    note: Option<&'static str>,
}

impl Check {
    pub(super) fn new(row: &'static str, says: impl Into<String>, inputs: Vec<Input>) -> Check {
        let (printed, nature, note) = (None, Nature::Identity, None);
        Check { row, says: says.into(), inputs, printed, nature, note }
    }

    /// Against another cell.
    pub(super) fn cell(mut self, cell: Input) -> Check {
        self.says = format!("{} ({})", self.says, cell.place);
        self.printed = Some(Quantity::Exactly(cell.printed));
        self
    }

    /// Against a statement of the text.
    pub(super) fn claim(mut self, id: &str) -> Check {
        let claim = super::keeton().claim(id).expect("claims that are checked have tests");
        self.says = format!("{} ({}: {})", self.says, claim.place, claim.says);
        self.printed = claim.quantity();
        self.nature = Nature::Words;
        self
    }

    /// Against all of something: 100 %, and not less.
    pub(super) fn whole(mut self) -> Check {
        self.printed = Some(Quantity::Whole);
        self
    }

    pub(super) fn nature(mut self, nature: Nature) -> Check {
        self.nature = nature;
        self
    }

    pub(super) fn note(mut self, note: &'static str) -> Check {
        self.note = Some(note);
        self
    }

    /// Recomputes. The formula is monotone in each of its inputs, as sums, products and quotients
    /// of them are; so its extremes within their rounding are at corners.
    pub(super) fn by(self, formula: impl Fn(&[f64]) -> Value) -> RecomputedFigure {
        let values: Vec<f64> = self.inputs.iter().map(|input| input.printed.value).collect();
        let ours = formula(&values).expect("formulas of printed figures have tests");
        let range = range(&self.inputs, &formula, ours);
        let agreement = self.printed.map_or(Agreement::NothingPrinted, |printed| {
            let (low, high) = printed.bounds();
            let within = |least: f64, most: f64| most >= low - SLACK && least <= high + SLACK;
            match (within(ours, ours), within(range.0, range.1)) {
                (true, _) => Agreement::Same,
                (false, true) => Agreement::WithinRounding,
                (false, false) => Agreement::Disagrees,
            }
        });
        RecomputedFigure {
            row: self.row,
            says: self.says,
            inputs: self.inputs,
            ours,
            range,
            printed: self.printed,
            agreement,
            nature: self.nature,
            note: self.note,
        }
    }
}

/// The least and the most over all corners; corners that can't be, such as shares of more than a
/// whole, are none.
fn range(inputs: &[Input], formula: impl Fn(&[f64]) -> Value, ours: f64) -> (f64, f64) {
    let rounded: Vec<usize> = (0..inputs.len()).filter(|&index| !inputs[index].is_exact).collect();
    let corners = (0u32..1 << rounded.len()).filter_map(|corner| {
        let mut values: Vec<f64> = inputs.iter().map(|input| input.printed.value).collect();
        for (bit, &index) in rounded.iter().enumerate() {
            let printed = inputs[index].printed;
            values[index] = if corner >> bit & 1 == 0 { printed.low() } else { printed.high() };
        }
        formula(&values).ok()
    });
    corners.fold((ours, ours), |(low, high), value| (low.min(value), high.max(value)))
}

/// Every figure that follows from others, Keeton's first.
pub fn derived() -> Vec<RecomputedFigure> {
    sums::all()
}
