//! Instructions and misses by function, counted under valgrind by a model of caches (evidence tier
//! D), without sampling.
//!
//! The program's start is subtracted, so a function may be below zero; it has no share then.

use serde::Serialize;
use workahead_counters::instrumented::{Counts, Function, Functions};

use crate::view::View;
use crate::{number, words};

/// Functions in a table.
const TOP: usize = 20;

/// The section.
#[derive(Debug, Serialize)]
pub(crate) struct InstrumentedSection {
    pub(crate) cells: Vec<CellInstructions>,
    pub(crate) tier: String,
}

/// A cell's functions.
#[derive(Debug, Serialize)]
pub(crate) struct CellInstructions {
    pub(crate) name: String,
    pub(crate) rows: Vec<Row>,
    /// All other functions.
    pub(crate) rest: Shares,
    /// The tool and the totals.
    pub(crate) of: String,
    /// Whether it is unfolded.
    pub(crate) open: bool,
}

/// A function.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) module: String,
    pub(crate) own: Shares,
    /// With all that it called; a dash where calls were not followed, or went in a circle.
    pub(crate) with_callees: String,
}

/// Shares of the whole program's, in the order of [`Counts`].
#[derive(Debug, Serialize)]
pub(crate) struct Shares {
    pub(crate) instructions: String,
    pub(crate) l1i_misses: String,
    pub(crate) l1d_misses: String,
    pub(crate) last_level_misses: String,
}

/// The section; `None` if nothing was counted by function.
pub(crate) fn instrumented(view: &View<'_>) -> Option<InstrumentedSection> {
    let of_cell = |cell| {
        let functions = view.results.functions(cell)?;
        let name = view.place(&view.cells()[cell], &[]);
        let name = if name.is_empty() { "the cell".to_owned() } else { name };
        Some(CellInstructions::new(name, functions))
    };
    let mut cells: Vec<CellInstructions> = (0..view.cells().len()).filter_map(of_cell).collect();
    cells.first_mut()?.open = true;
    Some(InstrumentedSection { cells, tier: words::capital(&view.tier()) })
}

impl CellInstructions {
    fn new(name: String, functions: &Functions) -> Self {
        let totals = functions.totals;
        let rows = &functions.rows[..functions.rows.len().min(TOP)];
        let counted = |count: i64| number::count(count.max(0).unsigned_abs());
        Self {
            name,
            rows: rows.iter().map(|one| Row::of(one, totals)).collect(),
            rest: Shares::of(rest(totals, rows), totals),
            of: format!(
                "{}: {} instructions, {} misses of L1I, {} of L1D, {} of the last level",
                words::capital(&functions.tool.to_string()),
                counted(totals.instructions),
                counted(totals.l1i_misses),
                counted(totals.l1d_misses),
                counted(totals.last_level_misses)
            ),
            open: false,
        }
    }
}

impl Row {
    fn of(one: &Function, totals: Counts) -> Self {
        let with_callees = one.instructions_with_callees;
        let fits = with_callees.filter(|count| *count <= totals.instructions);
        Self {
            name: one.name.clone(),
            module: one.module.clone().unwrap_or_default(),
            own: Shares::of(one.own, totals),
            with_callees: share(fits.unwrap_or(-1), totals.instructions),
        }
    }
}

impl Shares {
    fn of(own: Counts, totals: Counts) -> Self {
        Self {
            instructions: share(own.instructions, totals.instructions),
            l1i_misses: share(own.l1i_misses, totals.l1i_misses),
            l1d_misses: share(own.l1d_misses, totals.l1d_misses),
            last_level_misses: share(own.last_level_misses, totals.last_level_misses),
        }
    }
}

/// The totals without some rows.
fn rest(totals: Counts, rows: &[Function]) -> Counts {
    rows.iter().fold(totals, |rest, one| Counts {
        instructions: rest.instructions.saturating_sub(one.own.instructions),
        l1i_misses: rest.l1i_misses.saturating_sub(one.own.l1i_misses),
        l1d_misses: rest.l1d_misses.saturating_sub(one.own.l1d_misses),
        last_level_misses: rest.last_level_misses.saturating_sub(one.own.last_level_misses),
    })
}

/// A dash if there is no share.
fn share(own: i64, whole: i64) -> String {
    match own >= 0 && whole > 0 {
        true => number::percent(own as f64 / whole as f64),
        false => number::NONE.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use workahead_counters::instrumented::Tool;

    use super::*;

    fn counts(instructions: i64, last_level_misses: i64) -> Counts {
        Counts { instructions, l1i_misses: 0, l1d_misses: 10, last_level_misses }
    }

    #[test]
    fn shares_and_their_rest_make_the_whole() {
        let function = |name: &str, own, with_callees| Function {
            name: name.to_owned(),
            module: None,
            own,
            instructions_with_callees: Some(with_callees),
        };
        let functions = Functions {
            tool: Tool::Callgrind,
            totals: counts(1000, -1),
            rows: vec![
                function("probe", counts(600, 0), 900),
                function("again", counts(150, 0), 1001),
            ],
        };
        let of = CellInstructions::new("x".to_owned(), &functions);
        let rows: Vec<&str> = of.rows.iter().map(|row| row.own.instructions.as_str()).collect();
        assert_eq!(rows, [number::percent(0.6), number::percent(0.15)]);
        assert_eq!(of.rest.instructions, number::percent(0.25));
        assert_eq!(of.rows[0].with_callees, number::percent(0.9));
        assert_eq!(of.rows[1].with_callees, number::NONE, "a circle has no share");
        assert_eq!(of.rows[0].own.last_level_misses, number::NONE, "the total is below zero");
        assert!(of.of.contains("Callgrind: 1,000 instructions"), "{}", of.of);
    }

    /// A file may say any number of instructions.
    #[test]
    fn a_rest_ends_at_the_largest_number() {
        let own = counts(i64::MAX, 0);
        let rows = ["a", "b"].map(|name| Function {
            name: name.to_owned(),
            module: None,
            own,
            instructions_with_callees: None,
        });
        assert_eq!(rest(counts(i64::MIN, 0), &rows).instructions, i64::MIN);
    }
}
