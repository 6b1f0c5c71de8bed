//! What a model says in the papers' tables: misses, stalls, coherence, and whatever is left.
//!
//! ```text
//!   measures by name ─┬─► misses     level × accesses, misses, ratio, whose (Zhou 2005, fig. 7)
//!                     ├─► stalls     cause × measured, without overlap   (Keeton 1998, fig. 8)
//!                     ├─► coherence  access × M E S I, and the bus (Keeton 1998, tab. 6–9, 18)
//!                     └─► the rest
//! ```
//!
//! A figure that no table took is in the last one, so nothing that was counted is left out.

mod misses;
mod rest;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use comfy_table::{CellAlignment, Table};

use super::super::study::summary;

/// The measures of a run, and which of them were shown.
struct Said<'m> {
    measures: &'m BTreeMap<String, f64>,
    shown: RefCell<BTreeSet<String>>,
}

impl Said<'_> {
    fn has(&self, name: &str) -> bool {
        self.measures.contains_key(name)
    }

    /// A figure, which the last table then does not repeat.
    fn tell(&self, name: &str) -> Option<f64> {
        let value = self.measures.get(name)?;
        self.shown.borrow_mut().insert(name.to_owned());
        Some(*value)
    }

    /// The two logical CPUs of which each has figures of its own.
    fn is_of_two(&self) -> bool {
        let has = |cpu: usize| self.has(&format!("l2_penalty_cpi_p{cpu}"));
        has(0) && has(1) && !self.has("instructions_share_p2")
    }
}

/// All tables, one below the other. `each` is what a walk's figures are divided by; `first` is a
/// line of the last table that is no measure.
pub(super) fn tables(measures: &BTreeMap<String, f64>, each: &str, first: (String, f64)) -> String {
    let said = Said { measures, shown: RefCell::default() };
    let mut tables = vec![misses::table(&said, each), stalls(&said)];
    if said.tell("modelled_cpus").is_some_and(|cpus| cpus > 1.0) {
        tables.extend([states(&said), bus(&said, each)]);
    }
    tables.extend(rest::tables(&said, first));
    let tables = tables.into_iter().flatten().filter(|table| !table.is_empty());
    tables.map(summary::lines).collect::<Vec<_>>().join("\n\n")
}

/// A table whose first column has words, and the others figures.
fn new(name: &str, columns: &[&str]) -> Table {
    let header: Vec<&str> = std::iter::once(name).chain(columns.iter().copied()).collect();
    let mut table = summary::table(&header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// A figure as it is printed: to its thousandth, or where it is large to its ones.
fn figure(value: f64) -> String {
    match value.abs() {
        // Nothing is less than nothing.
        small if small < 0.0005 => "0.000".to_owned(),
        usual if usual < 1000.0 => format!("{value:.3}"),
        _ => format!("{value:.0}"),
    }
}

fn figure_if(value: Option<f64>) -> String {
    value.map(figure).unwrap_or_default()
}

fn percent(value: f64) -> String {
    format!("{:.1} %", 100.0 * value)
}

/// Parts of the lost cycles, by the beginning of their measures; and the share of all cycles that
/// says the same, where the part has one cause.
const PARTS: [(&str, &str, Option<&str>); 9] = [
    ("L1D misses", "l1d", Some("stalled_l2_share")),
    ("L2 misses", "l2", None),
    ("L1I misses", "l1i", Some("stalled_code_share")),
    ("ITLB misses", "itlb", Some("stalled_itlb_share")),
    ("DTLB misses", "dtlb", Some("stalled_dtlb_share")),
    ("mispredicted branches", "branch", Some("stalled_branch_share")),
    ("machine clears", "clears", Some("stalled_clears_share")),
    ("buffers full", "buffers", None),
    ("sibling's turn, spinning", "sibling", None),
];

/// Cycles of an instruction: computation, and what was lost to each cause.
fn stalls(said: &Said<'_>) -> Option<Table> {
    let all = said.tell("cpi")?;
    let whose: &[&str] = if said.is_of_two() { &["P0's own", "P1's own"] } else { &[] };
    let columns = [&["measured", "of all", "no overlap", "overlapped"], whose].concat();
    let mut table = new("cycles, each instruction", &columns);
    let mut row = |name: &str, waited: f64, apart: Option<f64>, of_each: Vec<String>| {
        let hidden = apart.map(|apart| apart - waited);
        let mut cells = vec![name.to_owned(), figure(waited), percent(waited / all)];
        cells.extend([figure_if(apart), figure_if(hidden)]);
        cells.extend(of_each);
        table.add_row(cells);
    };
    if let Some(computed) = said.tell("computation_cpi") {
        said.tell("computation_share");
        row("computation", computed, Some(computed), Vec::new());
    }
    for (name, part, share) in PARTS {
        let waited = said.tell(&format!("{part}_stall_cpi"));
        let apart = said.tell(&format!("{part}_penalty_cpi"));
        share.map(|share| said.tell(share));
        // Of its own instructions, as if nothing overlapped (Hassanein et al. 2008, figure 7).
        let own = (0..whose.len()).map(|cpu| said.tell(&format!("{part}_penalty_cpi_p{cpu}")));
        let own = own.map(figure_if).collect();
        if let Some(waited) = waited {
            row(name, waited, apart, own);
        }
    }
    row("all", all, said.tell("non_overlapped_cpi"), Vec::new());
    for (name, part) in [
        ("  stalls for instructions", "instruction_stall_cpi"),
        ("  stalls for resources", "resource_stall_cpi"),
    ] {
        if let Some(waited) = said.tell(part) {
            row(name, waited, None, Vec::new());
        }
    }
    Some(table)
}

/// What state lines of the last cache were in before an access.
fn states(said: &Said<'_>) -> Option<Table> {
    let mut table = new("last cache, state before", &["M", "E", "S", "I"]);
    for (name, kind) in [("fetch", "fetch"), ("load", "load"), ("store", "store")] {
        let of = |state| said.tell(&format!("state_{kind}_{state}")).map(percent);
        let cells = ["m", "e", "s", "i"].map(of);
        if cells.iter().any(Option::is_some) {
            table.add_row(
                std::iter::once(name.to_owned()).chain(cells.map(Option::unwrap_or_default)),
            );
        }
    }
    Some(table)
}

/// What went over the bus: in all, or for each of a walk's probes.
fn bus(said: &Said<'_>, each: &str) -> Option<Table> {
    let (name, end) = match said.has("bus_reads") {
        true => ("bus, in all".to_owned(), ""),
        false => (format!("bus, each {each}"), "_per_tuple"),
    };
    let mut table = new(&name, &["transfers", "of the reads"]);
    let reads = said.tell(&format!("bus_reads{end}"))?;
    table.add_row(["reads".to_owned(), figure(reads)]);
    for (name, measure) in [
        ("  of lines that another cache had changed", "dirty_reads"),
        ("requests for a line that is shared", "upgrades"),
        ("  that nobody else had", "upgrades_alone"),
        ("lines of others invalidated", "invalidations"),
        ("lines written back", "writebacks"),
    ] {
        if let Some(value) = said.tell(&format!("{measure}{end}")) {
            let share = if reads > 0.0 { percent(value / reads) } else { String::new() };
            table.add_row([name.to_owned(), figure(value), share]);
        }
    }
    said.tell("dirty_miss_share");
    Some(table)
}
