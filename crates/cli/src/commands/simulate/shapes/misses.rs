//! Misses by level: how many asked, how many it had not, and whose those were.
//!
//! Zhou et al. (2005, figures 4c, 7b, 15) split a walk's misses between main thread and helper;
//! Hassanein et al. (2008) count those of a workload by 1000 instructions, here by logical CPU.

use comfy_table::Table;

use super::{Said, figure_if, new, percent};

/// The table of a walk or of a whole workload.
pub(super) fn table(said: &Said<'_>, each: &str) -> Option<Table> {
    match said.has("loads_per_tuple") {
        true => Some(of_walk(said, each)),
        false => said.has("l1d_apki").then(|| of_workload(said)),
    }
}

/// A walk's levels, and the loads that missed them; what missed one asks the next.
const LEVELS: [(&str, &str); 3] = [
    ("L1D, loads", "l1d_load_misses_per_tuple"),
    ("L2, loads", "l2_load_misses_per_tuple"),
    ("L3, loads", "l3_load_misses_per_tuple"),
];

fn of_walk(said: &Said<'_>, each: &str) -> Table {
    let is_split = said.has("loads_per_tuple_helper");
    let whose: &[&str] = if is_split { &["main", "helper", "helper's part"] } else { &[] };
    let columns = [&["accesses", "misses", "ratio"], whose].concat();
    let mut table = new(&format!("misses, each {each}"), &columns);
    let mut asked = said.tell("loads_per_tuple");
    for who in ["main", "helper"] {
        said.tell(&format!("loads_per_tuple_{who}"));
    }
    for (level, name) in LEVELS {
        let Some(missed) = said.tell(name) else { continue };
        let of = |who: &str| said.tell(&format!("{name}_{who}"));
        let (main, helper) = (of("main"), of("helper"));
        let part = helper.map(|helper| ratio(Some(helper), Some(missed)));
        let mut cells = row(level, asked, Some(missed));
        cells.extend([figure_if(main), figure_if(helper), part.unwrap_or_default()]);
        table.add_row(cells);
        asked = Some(missed);
    }
    let translated = said.tell("data_accesses_per_tuple");
    table.add_row(row("DTLB", translated, said.tell("dtlb_misses_per_tuple")));
    table
}

/// A workload's levels: the beginning of what missed them, and of what asked.
const LEVELS_OF_WORKLOAD: [(&str, &str, &str); 13] = [
    ("L1D", "l1d", "l1d"),
    ("  loads", "l1d_load", "l1d_load"),
    ("L1I, or trace cache", "l1i", "l1i"),
    ("L2", "l2", "l2"),
    ("  loads", "l2_load", "l2_load"),
    ("  data", "l2_data", "l2_data"),
    ("  instructions", "l2_code", "l2_code"),
    ("L3", "l3", "l3"),
    ("  loads", "l3_load", "l3_load"),
    ("  data", "l3_data", "l3_data"),
    ("  instructions", "l3_code", "l3_code"),
    // Who asks a cache asks for a translation before.
    ("DTLB", "dtlb", "l1d"),
    ("ITLB", "itlb", "l1i"),
];

fn of_workload(said: &Said<'_>) -> Table {
    let whose: &[&str] = if said.is_of_two() { &["P0", "P1"] } else { &[] };
    let columns = [&["accesses", "misses", "ratio"], whose].concat();
    let mut table = new("misses, of 1000 instructions", &columns);
    for (level, missed, asked) in LEVELS_OF_WORKLOAD {
        let Some(mpki) = said.tell(&format!("{missed}_mpki")) else { continue };
        said.tell(&format!("{missed}_miss_ratio"));
        let mut cells = row(level, said.tell(&format!("{asked}_apki")), Some(mpki));
        let own = (0..whose.len()).map(|cpu| said.tell(&format!("{missed}_mpki_p{cpu}")));
        cells.extend(own.map(figure_if));
        table.add_row(cells);
    }
    branches(said, &mut table);
    table
}

/// Guesses, of branches and of their targets.
fn branches(said: &Said<'_>, table: &mut Table) {
    let Some(branches) = said.measures.get("branch_share").map(|share| 1e3 * share) else { return };
    for (name, measure) in
        [("branches, mispredicted", "branch_miss_ratio"), ("BTB", "btb_miss_ratio")]
    {
        let missed = said.tell(measure).map(|ratio| ratio * branches);
        table.add_row(row(name, Some(branches), missed));
    }
}

fn row(name: &str, asked: Option<f64>, missed: Option<f64>) -> Vec<String> {
    vec![name.to_owned(), figure_if(asked), figure_if(missed), ratio(missed, asked)]
}

fn ratio(part: Option<f64>, whole: Option<f64>) -> String {
    match (part, whole) {
        (Some(part), Some(whole)) if whole > 0.0 => percent(part / whole),
        _ => String::new(),
    }
}
