//! The plans that differ from the baseline's, side by side.
//!
//! A time that changes together with its plan says little about the hardware (Chang 2013, Q15):
//! readers need to see the plans. The same pair of plans is shown once, with the cells it is of.

use std::collections::HashMap;

use serde::Serialize;
use workahead_study::plans::{Label, PlanText, Row, Side, diff};
use workahead_study::results::Results;

use crate::number;
use crate::view::View;
use crate::words;

/// More places than this are counted, not named.
const NAMED_MAX: usize = 4;

/// More pairs, or bytes of all their operators, are counted, not shown.
const PAIRS_MAX: usize = 50;
const BYTES_MAX: usize = 1 << 20;

/// Two plans.
#[derive(Debug, Serialize)]
pub(crate) struct Pair {
    /// `plan changed`, `same plan, in parallel`.
    pub(crate) label: &'static str,
    /// The cells that it holds for.
    pub(crate) cells: String,
    /// The heading of the left plan.
    pub(crate) left: String,
    /// The heading of the right plan.
    pub(crate) right: String,
    pub(crate) lines: Vec<Line>,
    /// Lines that differ.
    pub(crate) changes: usize,
    /// The difference in words.
    pub(crate) says: Option<String>,
    /// Whether it is unfolded.
    pub(crate) open: bool,
}

/// One line of both.
#[derive(Debug, Serialize)]
pub(crate) struct Line {
    pub(crate) left: Operator,
    pub(crate) right: Operator,
    /// Class: `same`, `changed`, `gone`, `new`.
    pub(crate) class: &'static str,
}

/// An operator of one plan; empty where only the other one has it.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Operator {
    pub(crate) words: String,
    /// Time and rows, if it was timed.
    pub(crate) spent: Option<String>,
}

/// A sentence on all query plans; `None` if none is known.
pub(crate) fn sentence(view: &View<'_>) -> Option<String> {
    let labels: Vec<Label> = view.findings.iter().filter_map(|finding| finding.plan).collect();
    let count = |label: Label| labels.iter().filter(|one| **one == label).count();
    let known = view.cells().iter().filter(|cell| view.results.plan_of(cell.index).is_some());
    match (labels.len(), known.count()) {
        (0, 0) => None,
        (0, known) => {
            Some(format!("{} kept, none of them to compare.", words::counted(known, "plan")))
        }
        (all, _) => Some(format!(
            "{} with the baseline's plan: {} the same, {} the same but for what running in parallel \
             adds, {} changed. Costs, row counts and literals are left out of the comparison.",
            words::counted(all, "comparison"),
            count(Label::Same),
            count(Label::SameInParallel),
            count(Label::Changed)
        )),
    }
}

/// Every pair that is not the same, once.
pub(crate) fn pairs(view: &View<'_>) -> Vec<Pair> {
    let results = view.results;
    let baseline = &results.spec.method.baseline;
    let compared = view.cells().iter().filter_map(|cell| {
        let label = view.finding(cell).plan.filter(|label| *label != Label::Same)?;
        let base = results.run_plan.baseline_of(cell, baseline)?;
        let plans = (results.plan_of(base.index)?, results.plan_of(cell.index)?);
        let left = view.place(base, &[]);
        Some(PlanComparison { plans, label, place: view.place(cell, &[]), left })
    });
    gathered(compared.collect())
}

/// The pairs of two results, where plans changed from the first to the second.
pub(crate) fn between(
    before: &Results,
    after: &Results,
    cells: &[(String, usize, usize)],
) -> Vec<Pair> {
    let compared = cells.iter().filter_map(|(place, one, other)| {
        let plans = (before.plan_of(*one)?, after.plan_of(*other)?);
        let label = plans.1.against(plans.0);
        let left = "before".to_owned();
        (label != Label::Same).then(|| PlanComparison { plans, label, place: place.clone(), left })
    });
    let mut pairs = gathered(compared.collect());
    pairs.iter_mut().for_each(|pair| "after".clone_into(&mut pair.right));
    pairs
}

struct PlanComparison<'a> {
    plans: (&'a PlanText, &'a PlanText),
    label: Label,
    place: String,
    left: String,
}

fn gathered(compared: Vec<PlanComparison<'_>>) -> Vec<Pair> {
    let mut seen: Vec<(PlanComparison<'_>, Vec<String>)> = Vec::new();
    let mut at: HashMap<(String, String), usize> = HashMap::new();
    for one in compared {
        let name = (one.plans.0.fingerprint(), one.plans.1.fingerprint());
        let at = *at.entry(name).or_insert(seen.len());
        match seen.get_mut(at) {
            Some((_, places)) => places.push(one.place),
            None => {
                let places = vec![one.place.clone()];
                seen.push((one, places));
            }
        }
    }
    shown(seen.iter().map(|(first, places)| pair(first, places)), seen.len())
}

/// The first of some pairs, and how many more there are.
pub(crate) fn shown(mut pairs: impl Iterator<Item = Pair>, all: usize) -> Vec<Pair> {
    let (mut shown, mut bytes) = (Vec::new(), 0);
    while shown.len() < PAIRS_MAX && bytes <= BYTES_MAX {
        let Some(pair) = pairs.next() else { return shown };
        let lines = pair.lines.iter();
        bytes += lines.map(|line| line.left.words.len() + line.right.words.len()).sum::<usize>();
        shown.push(pair);
    }
    if shown.len() < all {
        shown.push(left_out(all - shown.len()));
    }
    shown
}

/// In the place of others.
fn left_out(count: usize) -> Pair {
    Pair {
        label: "not shown",
        cells: format!("{} of plans", words::counted(count, "other pair")),
        left: String::new(),
        right: String::new(),
        lines: Vec::new(),
        changes: 0,
        says: None,
        open: false,
    }
}

fn pair(one: &PlanComparison<'_>, places: &[String]) -> Pair {
    let lines = lines(one.plans.0, one.plans.1);
    let cells = match places.len() {
        few if few <= NAMED_MAX => places.join("; "),
        many => format!("{} and {} more", places[0], words::counted(many - 1, "cell")),
    };
    Pair {
        label: one.label.text(),
        cells,
        left: one.left.clone(),
        right: one.place.clone(),
        changes: lines.iter().filter(|line| line.class != "same").count(),
        lines,
        says: None,
        open: false,
    }
}

fn lines(left: &PlanText, right: &PlanText) -> Vec<Line> {
    let (Ok(left_tree), Ok(right_tree)) = (left.tree(), right.tree()) else {
        let whole = |plan: &PlanText| Operator { words: plan.text.clone(), spent: None };
        return vec![Line { left: whole(left), right: whole(right), class: "changed" }];
    };
    diff(&left_tree, &right_tree).iter().map(line).collect()
}

/// One line of two plans.
pub(crate) fn line(row: &Row) -> Line {
    Line {
        class: match (&row.left, &row.right) {
            _ if row.same => "same",
            (Some(_), Some(_)) => "changed",
            (Some(_), None) => "gone",
            (None, _) => "new",
        },
        left: row.left.as_ref().map(words_of).unwrap_or_default(),
        right: row.right.as_ref().map(words_of).unwrap_or_default(),
    }
}

fn words_of(side: &Side) -> Operator {
    let words = format!("{}{}", "\u{a0}\u{a0}".repeat(side.depth), side.line);
    let rows = side.rows.map(|rows| words::counted(rows.round() as usize, "row"));
    let spent = side.time_ms.map(|time_ms| number::seconds(time_ms * 1e-3));
    Operator {
        words,
        spent: spent
            .map(|spent| [Some(spent), rows].into_iter().flatten().collect::<Vec<_>>().join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_beyond_the_most_are_counted() {
        let pair = |bytes: usize| {
            let left = Operator { words: "x".repeat(bytes), spent: None };
            let line = Line { left, right: Operator::default(), class: "gone" };
            Pair { label: "plan changed", lines: vec![line], ..left_out(0) }
        };
        let of = |bytes: usize, count: usize| shown((0..count).map(|_| pair(bytes)), count);
        assert_eq!(of(9, PAIRS_MAX).len(), PAIRS_MAX);
        let many = of(9, PAIRS_MAX + 10);
        assert_eq!(many.len(), PAIRS_MAX + 1);
        assert_eq!(many[PAIRS_MAX].cells, "10 other pairs of plans");
        let large = of(BYTES_MAX, 9);
        assert_eq!(large.len(), 3);
        assert_eq!(large[2].cells, "7 other pairs of plans");
    }
}
