//! Function profiles: the largest functions of every cell, changes from the baseline, and published
//! functions beside them.
//!
//! A share rests on samples, and a share of few samples is worth little: their number stands beside
//! every table. Code without a name is reported as such, never attributed to its neighbours.

use std::collections::HashSet;

use serde::Serialize;
use workahead_counters::profile::{Clock, Kind, Profile, TopRow};
use workahead_counters::table::Table;
use workahead_study::cell::Cell;

use crate::chart::flame::flame;
use crate::view::View;
use crate::{number, words};

mod changes;
pub(crate) mod flames;
pub(crate) mod published;

use changes::Changes;
use published::PublishedFunctions;

/// Functions in a table.
const TOP: usize = 15;

/// The section.
#[derive(Debug, Serialize)]
pub(crate) struct Functions {
    pub(crate) cells: Vec<CellFunctions>,
    pub(crate) changes: Vec<Changes>,
    /// One for time and for each event that was sampled by, where a publication has figures.
    pub(crate) published: Vec<published::Table>,
    /// Flame graphs on other pages.
    pub(crate) left_out: Option<String>,
    /// Cells without a profile, or without one by an event, with the reason.
    pub(crate) missing: Vec<String>,
    pub(crate) tier: String,
}

/// A profile.
#[derive(Debug, Serialize)]
pub(crate) struct CellFunctions {
    pub(crate) name: String,
    /// The event of the shares.
    pub(crate) of_what: String,
    /// The event of the shares beside them, if there are any.
    pub(crate) beside: Option<String>,
    pub(crate) rows: Vec<Row>,
    /// Share of all other functions that have a name.
    pub(crate) rest: String,
    /// Share of code without one.
    pub(crate) unresolved: String,
    /// The number of samples and their event.
    pub(crate) samples: String,
    /// Caveats of shares by this event.
    pub(crate) caveats: Vec<String>,
    /// The flame graph.
    pub(crate) flame: Option<String>,
    /// The samples of the flame graph, if not all.
    pub(crate) flame_of: String,
    /// Whether it is unfolded.
    pub(crate) open: bool,
}

/// A function.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) share: String,
    pub(crate) total: String,
    /// The function's share by the other event.
    pub(crate) beside: String,
    pub(crate) samples: String,
    pub(crate) name: String,
    pub(crate) module: String,
    pub(crate) is_kernel: bool,
}

/// The section; `None` for a study without profiles.
pub(crate) fn functions(view: &View<'_>, published: &[PublishedFunctions]) -> Option<Functions> {
    if view.results.spec.method.profile_hz == 0 {
        return None;
    }
    let of_cell = |cell| view.results.profiles(cell).into_iter();
    let profiles: Vec<(&Cell, Profile)> = view
        .cells()
        .iter()
        .flat_map(|cell| of_cell(cell.index).map(move |profile| (cell, profile)))
        .collect();
    let drawn = flames::drawn(view);
    let of_profile = |(cell, profile): &(&Cell, Profile)| {
        let stacks = view.results.stacks(cell.index);
        let is_drawn =
            |stacks: &&Profile| drawn.contains(&cell.index) && stacks.clock == profile.clock;
        let mut of = CellFunctions::new(
            named(view, cell, &profile.clock),
            profile,
            (stacks.filter(is_drawn), flames::FLAME_BYTES),
        );
        let mut others = profiles.iter().filter(|(other, _)| other.index == cell.index);
        let is_time = |clock: &Clock| !matches!(clock, Clock::Event(_));
        if let Some((_, time)) = others.find(|(_, other)| is_time(&other.clock))
            && !is_time(&profile.clock)
        {
            of.stand_beside(profile, time);
        }
        of
    };
    let mut cells: Vec<CellFunctions> = profiles.iter().map(of_profile).collect();
    cells.iter_mut().take(1).for_each(|first| first.open = true);
    Some(Functions {
        cells,
        changes: changes::changes(view, &profiles),
        published: published::tables(view, published),
        left_out: flames::left_out(view, &drawn),
        missing: missing(view, &profiles),
        tier: words::capital(&view.tier()),
    })
}

/// The name of a cell in this section.
fn place(view: &View<'_>, cell: &Cell) -> String {
    match view.place(cell, &[]) {
        nothing if nothing.is_empty() => "the cell".to_owned(),
        place => place,
    }
}

/// The same with the event of the profile, if it is not time.
fn named(view: &View<'_>, cell: &Cell, clock: &Clock) -> String {
    match clock {
        Clock::Event(_) => format!("{}, by {}", place(view, cell), of_what(clock)),
        Clock::Cycles | Clock::CpuClock => place(view, cell),
    }
}

fn missing(view: &View<'_>, profiles: &[(&Cell, Profile)]) -> Vec<String> {
    let (mut entries, mut not_by, mut known) = (Vec::new(), Vec::new(), HashSet::new());
    for cell in view.cells() {
        let uncollected = view.results.uncollected(cell.index).into_iter();
        for line in uncollected.filter(|line| line.starts_with("no function profile by ")) {
            let line = format!("{}.", words::capital(line.trim_end_matches('.')));
            if known.insert(line.clone()) {
                not_by.push(line);
            }
        }
        if profiles.iter().any(|(other, _)| other.index == cell.index) {
            continue;
        }
        let why = match view.results.uncollected(cell.index) {
            none if none.is_empty() => view.results.absence(cell.index),
            reasons => reasons.join("; "),
        };
        entries.push((place(view, cell), why));
    }
    let sentence = |(why, names): (String, Vec<String>)| {
        format!("No profile of {}: {}.", names.join("; "), why.trim_end_matches('.'))
    };
    words::by_reason(entries).into_iter().map(sentence).chain(not_by).collect()
}

impl CellFunctions {
    /// Of a profile; `stacks` is the one that the flame graph is drawn from, in this many bytes.
    pub(crate) fn new(
        name: String,
        profile: &Profile,
        (stacks, flame_bytes): (Option<&Profile>, usize),
    ) -> Self {
        let top = profile.top(TOP);
        let share = |share: Option<f64>| share.map_or(number::NONE.to_owned(), number::percent);
        let flame_of = stacks.filter(|stacks| stacks.samples < profile.samples);
        Self {
            name,
            // The long name of an event stands over the table already.
            of_what: match &profile.clock {
                Clock::Event(_) => "these events".to_owned(),
                clock @ (Clock::Cycles | Clock::CpuClock) => of_what(clock),
            },
            beside: None,
            rows: largest(profile).iter().map(Row::of).collect(),
            rest: share(top.as_ref().map(|top| top.rest)),
            unresolved: share(top.as_ref().map(|top| top.unresolved)),
            samples: samples(profile),
            caveats: caveats(profile),
            flame: stacks.map(|stacks| flame(stacks, flame_bytes)),
            flame_of: flame_of.map_or_else(String::new, |stacks| {
                let samples = number::count(stacks.samples);
                format!("The flame graph is of the first sample of the cell, {samples} of these.")
            }),
            open: false,
        }
    }

    /// Adds each function's share in another profile of the same cell; `own` is that of the rows,
    /// whose names may be cut.
    fn stand_beside(&mut self, own: &Profile, other: &Profile) {
        self.beside = Some(of_what(&other.clock));
        for (row, TopRow { frame, .. }) in self.rows.iter_mut().zip(largest(own)) {
            let mut functions = other.functions.iter().filter(|_| other.events > 0);
            let found = functions.find(|function| {
                function.frame.name == frame.name && function.frame.module == frame.module
            });
            let share = found.map(|found| found.self_events as f64 / other.events as f64);
            row.beside = share.map_or(number::NONE.to_owned(), number::percent);
        }
    }
}

/// The functions of a table. Those that only call others are in the flame graph.
fn largest(profile: &Profile) -> Vec<TopRow> {
    let rows = profile.top(TOP).map(|top| top.rows).unwrap_or_default();
    rows.into_iter().filter(|row| row.samples > 0).collect()
}

impl Row {
    fn of(row: &TopRow) -> Self {
        Self {
            share: number::percent(row.share),
            total: number::percent(row.total_share),
            beside: String::new(),
            samples: number::count(row.samples),
            name: words::label(&row.frame.name),
            module: words::label(&row.frame.module),
            is_kernel: row.frame.kind == Kind::Kernel,
        }
    }
}

/// The event of shares, in words.
pub(crate) fn of_what(clock: &Clock) -> String {
    match clock {
        Clock::Cycles => "cycles".to_owned(),
        Clock::CpuClock => "CPU time".to_owned(),
        Clock::Event(name) => words::label(name),
    }
}

fn samples(profile: &Profile) -> String {
    let by = match &profile.clock {
        Clock::Cycles => "by cycles of the core while it works".to_owned(),
        Clock::CpuClock => "by the CPU’s timer, as no cycles are counted here".to_owned(),
        Clock::Event(name) => {
            let says = Table::all().iter().find_map(|table| table.says(name));
            let says = says.map(|says| format!(": {says}")).unwrap_or_default();
            format!("by {name}{says}")
        }
    };
    format!(
        "{} at {} a second of each CPU’s work, {by}",
        words::counted(usize::try_from(profile.samples).unwrap_or(usize::MAX), "sample"),
        number::count(u64::from(profile.frequency_hz))
    )
}

/// Caveats that the table does not show.
fn caveats(profile: &Profile) -> Vec<String> {
    let mut lines = Vec::new();
    if profile.clock == Clock::CpuClock {
        lines.push(
            "A sample falls where the timer’s interrupt is let in: parts of the kernel that hold \
             interrupts off are attributed to the function that re-enables them."
                .to_owned(),
        );
    }
    if profile.kernel_samples.is_none() {
        lines.push("The kernel may not be sampled here: shares are of programs only.".to_owned());
    }
    let mut also = |count: u64, what: &str| {
        if count > 0 {
            lines.push(format!("{} {what}.", number::count(count)));
        }
    };
    also(profile.truncated, "stacks were not unwound to their outermost call");
    also(profile.lost, "records at least were lost");
    also(profile.unsampled_threads, "threads could not be sampled");
    lines
}

#[cfg(test)]
mod tests {
    use workahead_counters::profile::{Frame, Function};

    use super::*;

    /// Of two functions with their names and modules.
    pub(super) fn profile(clock: Clock, names: [(String, String); 2], events: [u64; 2]) -> Profile {
        let function = |((name, module), self_events): ((String, String), u64)| Function {
            frame: Frame { name, module, kind: Kind::User },
            self_samples: 1,
            total_samples: 1,
            self_events,
            total_events: self_events,
        };
        Profile {
            clock,
            frequency_hz: 100,
            duration_s: 1.0,
            samples: 2,
            events: events.iter().sum(),
            kernel_samples: None,
            lost: 0,
            truncated: 0,
            unsampled_threads: 0,
            functions: names.into_iter().zip(events).map(function).collect(),
            frames: Vec::new(),
            stacks: Vec::new(),
        }
    }

    #[test]
    fn functions_with_long_names_keep_their_own_shares() {
        // They differ at their end only.
        let names = ["a", "b"].map(|end| (format!("{}{end}", "x".repeat(1000)), "y".repeat(1000)));
        let misses = profile(Clock::Event("misses".to_owned()), names.clone(), [9, 1]);
        let time = profile(Clock::Cycles, names, [1, 3]);
        let mut of = CellFunctions::new("cell".to_owned(), &misses, (None, flames::FLAME_BYTES));
        of.stand_beside(&misses, &time);
        for row in &of.rows {
            assert_eq!(row.name, format!("{}…", "x".repeat(words::CHARS_MAX)));
            assert_eq!(row.module, format!("{}…", "y".repeat(words::CHARS_MAX)));
        }
        let beside: Vec<&str> = of.rows.iter().map(|row| row.beside.as_str()).collect();
        assert_eq!(beside, [number::percent(0.25), number::percent(0.75)]);
    }
}
