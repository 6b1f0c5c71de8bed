//! Where a paper contradicts itself.

use serde::Serialize;

use super::derived::{Agreement, Nature, RecomputedFigure, derived};
use super::paper::Paper;
use super::{hassanein, keeton};

/// Two places of a paper that can't both be right.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Contradiction {
    /// The ledger's row.
    pub row: &'static str,
    /// Their subject, and where the first of them stands.
    pub place: String,
    /// The printed figure.
    pub text_says: String,
    /// The figure that the others give.
    pub table_says: String,
    /// The kind of contradiction.
    pub nature: Nature,
    /// A remark.
    pub note: Option<&'static str>,
}

/// All of them, computed: recomputed figures that disagree beyond rounding, and references that
/// lead nowhere.
pub fn contradictions() -> Vec<Contradiction> {
    let figures = derived().into_iter().filter(|derived| !derived.agrees());
    figures.map(of_figures).chain(caption_of_figure_8()).chain(levels_of_clients()).collect()
}

fn of_figures(derived: RecomputedFigure) -> Contradiction {
    debug_assert_eq!(derived.agreement, Agreement::Disagrees);
    let printed = derived.printed.map(|printed| printed.to_string());
    let (low, high) = derived.range;
    let digits = |value: f64| significant(value, 4);
    Contradiction {
        row: derived.row,
        place: derived.says,
        text_says: printed.unwrap_or_default(),
        table_says: format!("{} ({} to {})", digits(derived.ours), digits(low), digits(high)),
        nature: derived.nature,
        note: derived.note,
    }
}

/// A value to this number of significant digits.
pub(crate) fn significant(value: f64, digits: i32) -> String {
    let before = if value == 0.0 { 1 } else { value.abs().log10().floor() as i32 + 1 };
    let decimals = usize::try_from(digits - before).unwrap_or(0);
    format!("{value:.decimals$}")
}

/// Figure 8 refers to the caption of Table 12 for hit times.
fn caption_of_figure_8() -> Option<Contradiction> {
    const REFERS_TO: &str = "Table 12";
    const OF: &str = "Hit penalty";
    let holds = |paper: &Paper, id: &str| paper.table(id).is_some_and(|t| t.row(OF).is_some());
    let found = keeton().tables().iter().find(|table| table.row(OF).is_some())?;
    (!holds(keeton(), REFERS_TO)).then(|| Contradiction {
        row: "E2.12",
        place: "Figure 8, caption: L1 and L2 hit times".to_owned(),
        text_says: REFERS_TO.to_owned(),
        table_says: found.id.clone(),
        nature: Nature::Words,
        note: None,
    })
}

/// Hassanein et al. vary clients from 1 to 10 in steps of 2, and report both ends.
fn levels_of_clients() -> Option<Contradiction> {
    let levels = hassanein().claim("clients-levels")?;
    let (low, high) = levels.quantity()?.bounds();
    let (first, last) = (low.ceil() as u32, high.floor() as u32);
    let step = hassanein().claim("clients-step")?.quantity()?.value()? as u32;
    let reached: Vec<u32> = (first..=last).step_by(step as usize).collect();
    (reached.last() != Some(&last)).then(|| Contradiction {
        row: "S0.8",
        place: format!("{}: {}", levels.place, levels.says),
        text_says: format!("{first} to {last} by {step}"),
        table_says: format!("{reached:?} never gets to {last}"),
        nature: Nature::Words,
        note: Some("presumably 1, 2, 4, 6, 8, 10"),
    })
}
