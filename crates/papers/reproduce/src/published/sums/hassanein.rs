//! Arithmetic on the few figures of Hassanein et al.

use super::{cell, claimed, exact, percent};
use crate::published::derived::{Check, Input, RecomputedFigure};
use crate::published::hassanein;
use workahead_counters::cycles::ratio;

/// Query, table of its instruction mix, column there, ledger's row.
const QUERIES: [(&str, &str, &str); 3] =
    [("uTPC-C", "Table 1", "E0.2"), ("uSS", "Table 2", "E0.3"), ("uNJ", "Table 2", "E0.3")];

pub(super) fn all() -> Vec<RecomputedFigure> {
    let mut all: Vec<RecomputedFigure> = ["L1", "L2", "Memory"].map(latency).into_iter().collect();
    for (query, table, row) in QUERIES {
        all.extend(mix(query, table, row));
        all.extend(cpi(query, row));
    }
    all
}

fn at(table: &str, row: &str, column: &str) -> Input {
    cell(hassanein(), table, row, column)
}

/// LMBench's times in cycles of 3.4 GHz.
fn latency(level: &str) -> RecomputedFigure {
    let clock = exact(claimed(hassanein(), "latency-clock"));
    let inputs = vec![at("Section 3.1", "Latency", level), clock];
    Check::new("E0.1", format!("latency of {level} in cycles"), inputs).by(|v| Ok(v[0] * v[1]))
}

fn mix(query: &str, table: &str, row: &'static str) -> [RecomputedFigure; 2] {
    let kinds = ["Load", "Store", "Branch", "Other"].map(|kind| format!("{kind} instructions"));
    let kinds = kinds.map(|kind| at(table, &kind, query)).to_vec();
    let memory = at(table, "Memory instructions, in the text", query);
    let whole = Check::new(row, format!("{table}, {query}, all instructions, %"), kinds.clone());
    let loads_and_stores = Check::new(row, "loads and stores", kinds[..2].to_vec()).cell(memory);
    [whole.whole().by(|v| Ok(v.iter().sum())), loads_and_stores.by(|v| Ok(v[0] + v[1]))]
}

fn cpi(query: &str, row: &'static str) -> [RecomputedFigure; 2] {
    const TABLE: &str = "Sections 4 and 5";
    let of = |row: &str| at(TABLE, row, query);
    let halted = format!("{query}: share of halted cycles, %");
    let per_uop = format!("{query}: non-halted cycles per µop");
    [
        Check::new(row, halted, vec![of("CPI"), of("Non-halted CPI")])
            .by(|v| percent(v[0] - v[1], v[0])),
        Check::new(row, per_uop, vec![of("Non-halted CPI"), of("µops per instruction")])
            .by(|v| ratio(&Ok(v[0]), &Ok(v[1]), "µops per instruction")),
    ]
}
