//! Changes of shares from the baseline: the effect of siblings, or of any other axis, on each
//! function (Hassanein et al. 2008, figures 7b and 17).

use serde::Serialize;
use workahead_counters::profile::{Clock, Kind, Profile};
use workahead_study::cell::Cell;

use super::{named, of_what, place};
use crate::view::View;
use crate::{number, words};

/// The largest changes that are shown.
const SHOWN: usize = 10;
/// Smaller ones are left out: a tenth of a hundredth of the time.
const LEAST: f64 = 0.001;

/// Functions that are compared on a page.
const FUNCTIONS_MAX: usize = 4_000_000;

/// One cell against its baseline.
#[derive(Debug, Serialize)]
pub(crate) struct Changes {
    pub(crate) cell: String,
    pub(crate) baseline: String,
    /// The event of the shares and the number of samples.
    pub(crate) of: String,
    pub(crate) rows: Vec<Row>,
    /// Why there are none.
    pub(crate) why: String,
}

/// A function.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) module: String,
    pub(crate) is_kernel: bool,
    pub(crate) before: String,
    pub(crate) after: String,
    /// In points of per cent.
    pub(crate) change: String,
}

/// Every cell with a profile whose baseline has one.
pub(super) fn changes(view: &View<'_>, profiles: &[(&Cell, Profile)]) -> Vec<Changes> {
    let baseline = &view.results.spec.method.baseline;
    if baseline.is_empty() {
        return Vec::new();
    }
    let mut functions = 0;
    let of_cell = |(cell, after): &(&Cell, Profile)| {
        let base = view.results.run_plan.baseline_of(cell, baseline)?;
        let of_base = || profiles.iter().filter(|(other, _)| other.index == base.index);
        let same = of_base().find(|(_, before)| before.clock == after.clock);
        // Events without samples of the baseline can't be compared.
        let other = of_base().next().filter(|_| !matches!(after.clock, Clock::Event(_)));
        let (_, before) = same.or(other).filter(|_| base.index != cell.index)?;
        functions += before.functions.len() + after.functions.len();
        let cell = named(view, cell, &after.clock);
        if functions > FUNCTIONS_MAX {
            return Some(Changes {
                cell,
                baseline: place(view, base),
                of: format!("shares of {}", of_what(&after.clock)),
                rows: Vec::new(),
                why: format!("more than {FUNCTIONS_MAX} functions are not compared on a page"),
            });
        }
        Some(of_pair((place(view, base), before), (cell, after)))
    };
    profiles.iter().filter_map(of_cell).collect()
}

fn of_pair((baseline, before): (String, &Profile), (cell, after): (String, &Profile)) -> Changes {
    let deltas = before.compare(after);
    let why = match &deltas {
        Some(_) => String::new(),
        None if before.clock != after.clock => {
            format!("one is by {}, the other by {}", before.clock.unit(), after.clock.unit())
        }
        None => "one of them has no samples".to_owned(),
    };
    let large = deltas.unwrap_or_default().into_iter();
    let large = large.filter(|delta| (delta.after - delta.before).abs() >= LEAST);
    let row = |delta: workahead_counters::profile::Delta| Row {
        is_kernel: delta.frame.kind == Kind::Kernel,
        before: percent(delta.before),
        after: percent(delta.after),
        change: points(delta.after - delta.before),
        name: words::label(&delta.frame.name),
        module: words::label(&delta.frame.module),
    };
    Changes {
        of: format!(
            "shares of {}; {} samples and {}",
            of_what(&after.clock),
            number::count(before.samples),
            number::count(after.samples)
        ),
        cell,
        baseline,
        rows: large.take(SHOWN).map(row).collect(),
        why,
    }
}

/// With a decimal, as the change beside it has one.
fn percent(share: f64) -> String {
    format!("{} %", number::fixed(share * 100.0, 1))
}

/// `+1.3`, `−0.4`.
fn points(share: f64) -> String {
    let written = number::fixed(share * 100.0, 1);
    if share > 0.0 { format!("+{written}") } else { written }
}

#[cfg(test)]
mod tests {
    use super::super::tests::profile;
    use super::*;

    #[test]
    fn long_names_are_cut() {
        let names = ["a", "b"].map(|name| (name.repeat(64 << 10), name.repeat(64 << 10)));
        let before = profile(Clock::Cycles, names.clone(), [1, 3]);
        let after = profile(Clock::Cycles, names, [3, 1]);
        let Changes { rows, .. } =
            of_pair(("before".to_owned(), &before), ("after".to_owned(), &after));
        assert_eq!(rows.len(), 2);
        for row in rows {
            assert_eq!(row.name.chars().count(), words::CHARS_MAX + 1);
            assert_eq!(row.module.chars().count(), words::CHARS_MAX + 1);
        }
    }
}
