//! The most time consuming functions of PostgreSQL 8.1 by Hassanein et al. (2008), and what stands
//! in their place today.

use serde::Serialize;
use workahead_counters::profile::{
    Clock, Frame, Profile, Published, SeedFunction, SeedRow, seed_names, seed_together,
};
use workahead_study::cell::Cell;

use super::{of_what, place};
use crate::number;
use crate::view::View;

/// The table.
#[derive(Debug, Serialize)]
pub(crate) struct Seed {
    /// The cells, a column each.
    pub(crate) heads: Vec<String>,
    pub(crate) rows: Vec<Row>,
    /// The functions of every cell together; a dash where none was seen.
    pub(crate) together: Vec<String>,
    /// What the paper says of all of its functions together.
    pub(crate) paper: Vec<String>,
    /// What shares are of.
    pub(crate) of: String,
}

/// A function of the paper.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) role: String,
    /// Functions of today that were seen in any cell.
    pub(crate) today: String,
    /// Other functions of the paper that are part of the same share, and what else is to be known.
    pub(crate) note: String,
    /// What the paper says of its share.
    pub(crate) paper: Vec<String>,
    /// Its share in each cell.
    pub(crate) shares: Vec<String>,
}

/// A table for everything that cells were sampled by.
pub(super) fn seeds(view: &View<'_>, profiles: &[(&Cell, Profile)]) -> Vec<Seed> {
    let mut clocks: Vec<&Clock> = Vec::new();
    for (_, profile) in profiles {
        if !clocks.contains(&&profile.clock) {
            clocks.push(&profile.clock);
        }
    }
    let of_clock = |clock: &Clock| {
        let same = profiles.iter().filter(|(_, profile)| profile.clock == *clock);
        seed(view, &same.collect::<Vec<_>>())
    };
    clocks.into_iter().filter_map(of_clock).collect()
}

/// What each function of the paper takes in each cell; `None` where nothing was sampled.
fn seed(view: &View<'_>, profiles: &[&(&Cell, Profile)]) -> Option<Seed> {
    let (_, first) = profiles.first()?;
    let by_cell: Vec<Vec<SeedRow>> =
        profiles.iter().map(|(_, profile)| profile.seed_rows()).collect();
    let functions = seed_names().iter().enumerate();
    let row = |(at, function): (usize, &'static SeedFunction)| {
        let in_cells: Vec<&SeedRow> = by_cell.iter().map(|rows| &rows[at]).collect();
        row(function, &in_cells, &first.clock)
    };
    let is_of_time = !matches!(first.clock, Clock::Event(_));
    let together = seed_together().iter().filter(|_| is_of_time).map(|one| {
        format!(
            "{} functions take {} % of the time of {} ({})",
            one.functions,
            number::exact(one.percent),
            micro(&one.workload),
            one.source
        )
    });
    Some(Seed {
        heads: profiles.iter().map(|(cell, _)| place(view, cell)).collect(),
        rows: functions.map(row).collect(),
        together: by_cell.iter().map(|rows| share(sum(rows))).collect(),
        paper: together.collect(),
        of: of_what(&first.clock),
    })
}

fn row(function: &SeedFunction, cells: &[&SeedRow], clock: &Clock) -> Row {
    let mut today: Vec<&str> = Vec::new();
    for (frame, _) in cells.iter().flat_map(|row| &row.found) {
        if !today.contains(&frame.name.as_str()) {
            today.push(&frame.name);
        }
    }
    let with = cells.first().map(|row| row.with.join(", ")).unwrap_or_default();
    let with = if with.is_empty() { None } else { Some(format!("in one share with {with}")) };
    let note: Vec<String> = with.into_iter().chain(function.note.clone()).collect();
    Row {
        name: function.name.clone(),
        role: function.role.clone(),
        today: match today.is_empty() {
            true => "not seen".to_owned(),
            false => today.join(", "),
        },
        note: note.join("; "),
        paper: paper(function, clock),
        shares: cells.iter().map(|row| share(row.share)).collect(),
    }
}

/// Shares of the same thing that the paper prints, and which way they change with threading.
fn paper(function: &SeedFunction, clock: &Clock) -> Vec<String> {
    let is_of_time = !matches!(clock, Clock::Event(_));
    let same = match clock {
        Clock::Cycles | Clock::CpuClock => "time",
        Clock::Event(name) if name.to_ascii_lowercase().contains("tlb") => "dtlb-misses",
        Clock::Event(_) => "l2-misses",
    };
    let is_same = |one: &&Published| one.of == same;
    let of = |one: &Published| match one.of.as_str() {
        "time" => "the time",
        "l2-misses" => "L2 misses",
        "dtlb-misses" => "DTLB misses",
        _ => "events",
    };
    let shares = function.shares.iter().filter(is_same).map(|one| {
        let setting = one.setting.as_ref().map(|setting| format!(", {setting}"));
        format!(
            "{} % of {} of {}{}",
            number::exact(one.percent),
            of(one),
            micro(&one.workload),
            setting.unwrap_or_default()
        )
    });
    let mut told: Vec<String> = shares.collect();
    let way = |workloads: &[String], word: &str| {
        let workloads: Vec<String> = workloads.iter().map(|one| micro(one)).collect();
        (!workloads.is_empty()).then(|| format!("{word} time with HT in {}", workloads.join(", ")))
    };
    told.extend(way(&function.less_time_under_ht, "less").filter(|_| is_of_time));
    told.extend(way(&function.more_time_under_ht, "more").filter(|_| is_of_time));
    told
}

/// Shares of functions of today, each counted once although several of the paper's lead to it.
fn sum(rows: &[SeedRow]) -> Option<f64> {
    let mut counted: Vec<&Frame> = Vec::new();
    let mut sum = None;
    for (frame, share) in rows.iter().flat_map(|row| &row.found) {
        if !counted.contains(&frame) {
            counted.push(frame);
            sum = Some(sum.unwrap_or(0.0) + share);
        }
    }
    sum
}

fn share(share: Option<f64>) -> String {
    share.map_or_else(|| number::NONE.to_owned(), number::percent)
}

/// `uSS` as the paper writes it.
fn micro(workload: &str) -> String {
    match workload.strip_prefix('u') {
        Some(rest) => format!("µ{rest}"),
        None => workload.to_owned(),
    }
}
