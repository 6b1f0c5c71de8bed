//! The functions of the paper beside those of a result: a section of the report of a study that
//! sampled PostgreSQL.

use workahead_counters::profile::{Clock, Frame, Profile};
use workahead_report as report;
use workahead_study::results::Results;

use super::{FunctionToday, PublishedFunction, PublishedShare, all, today, together};

const TITLE: &str = "The functions of Hassanein et al. (2008)";
const PROGRAM: &str = "in PostgreSQL 8.1";

/// A section for every clock that cells were sampled by; none for other servers.
#[must_use]
pub fn sections(results: &Results) -> Vec<report::PublishedFunctions> {
    if results.record.engine != "postgres" || results.spec.method.profile_hz == 0 {
        return Vec::new();
    }
    let of_cell = |cell: usize| results.profiles(cell).into_iter().map(move |one| (cell, one));
    let cells = results.run_plan.cells.iter();
    let profiles: Vec<(usize, Profile)> = cells.flat_map(|cell| of_cell(cell.index)).collect();
    let mut clocks: Vec<&Clock> = Vec::new();
    for (_, profile) in &profiles {
        if !clocks.contains(&&profile.clock) {
            clocks.push(&profile.clock);
        }
    }
    let of_clock = |clock: &Clock| {
        let same: Vec<&(usize, Profile)> =
            profiles.iter().filter(|(_, profile)| profile.clock == *clock).collect();
        section(clock, &same)
    };
    clocks.into_iter().map(of_clock).collect()
}

fn section(clock: &Clock, profiles: &[&(usize, Profile)]) -> report::PublishedFunctions {
    let by_cell: Vec<Vec<FunctionToday>> =
        profiles.iter().map(|(_, profile)| today(profile)).collect();
    let row = |(at, function): (usize, &'static PublishedFunction)| {
        let in_cells: Vec<&FunctionToday> = by_cell.iter().map(|rows| &rows[at]).collect();
        row(function, &in_cells, clock)
    };
    let together = together().iter().filter(|_| is_of_time(clock)).map(|one| {
        format!(
            "{} functions take {} % of the time of {} ({})",
            one.functions,
            one.percent,
            micro(&one.workload),
            one.source
        )
    });
    report::PublishedFunctions {
        title: TITLE.to_owned(),
        program: PROGRAM.to_owned(),
        clock: clock.clone(),
        cells: profiles.iter().map(|(cell, _)| *cell).collect(),
        rows: all().iter().enumerate().map(row).collect(),
        together: by_cell.iter().map(|rows| sum(rows)).collect(),
        printed: together.collect(),
    }
}

fn row(
    function: &PublishedFunction,
    cells: &[&FunctionToday],
    clock: &Clock,
) -> report::PublishedFunction {
    let mut today: Vec<String> = Vec::new();
    for (frame, _) in cells.iter().flat_map(|row| &row.found) {
        if !today.contains(&frame.name) {
            today.push(frame.name.clone());
        }
    }
    let with = cells.first().map(|row| row.with.join(", ")).filter(|with| !with.is_empty());
    let with = with.map(|with| format!("in one share with {with}"));
    report::PublishedFunction {
        name: function.name.clone(),
        role: function.role.clone(),
        today,
        notes: with.into_iter().chain(function.note.clone()).collect(),
        printed: printed(function, clock),
        shares: cells.iter().map(|row| row.share).collect(),
    }
}

fn is_of_time(clock: &Clock) -> bool {
    !matches!(clock, Clock::Event(_))
}

/// Shares of the same thing that the paper prints, and which way they change with threading.
fn printed(function: &PublishedFunction, clock: &Clock) -> Vec<String> {
    let same = match clock {
        Clock::Cycles | Clock::CpuClock => "time",
        Clock::Event(name) if name.to_ascii_lowercase().contains("tlb") => "dtlb-misses",
        Clock::Event(_) => "l2-misses",
    };
    let is_same = |one: &&PublishedShare| one.of == same;
    let of = |one: &PublishedShare| match one.of.as_str() {
        "time" => "the time",
        "l2-misses" => "L2 misses",
        "dtlb-misses" => "DTLB misses",
        _ => "events",
    };
    let shares = function.shares.iter().filter(is_same).map(|one| {
        let setting = one.setting.as_ref().map(|setting| format!(", {setting}"));
        format!(
            "{} % of {} of {}{}",
            one.percent,
            of(one),
            micro(&one.workload),
            setting.unwrap_or_default()
        )
    });
    let mut said: Vec<String> = shares.collect();
    let way = |workloads: &[String], word: &str| {
        let workloads: Vec<String> = workloads.iter().map(|one| micro(one)).collect();
        (!workloads.is_empty()).then(|| format!("{word} time with HT in {}", workloads.join(", ")))
    };
    said.extend(way(&function.less_time_under_ht, "less").filter(|_| is_of_time(clock)));
    said.extend(way(&function.more_time_under_ht, "more").filter(|_| is_of_time(clock)));
    said
}

/// Shares of functions of today, each counted once although several of the paper's lead to it.
fn sum(rows: &[FunctionToday]) -> Option<f64> {
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

/// `uSS` as the paper writes it.
fn micro(workload: &str) -> String {
    match workload.strip_prefix('u') {
        Some(rest) => format!("µ{rest}"),
        None => workload.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use workahead_counters::profile::{Function, Kind};
    use workahead_study::cell::Cell;
    use workahead_study::collection::Collection;
    use workahead_study::testing::{self, Mock};

    use super::*;

    const STUDY: &str = "title = 't'\nquestion = 'q'\nengine = 'mock'\n\
        workload = { rows = 1000 }\n[[cases]]\nname = 'one'\n[[cases]]\nname = 'two'\n\
        [method]\nrepetitions = 1\nprofile_hz = 99\n";

    /// All of the time in the function that PostgreSQL 8.1 called HeapTupleSatisfiesSnapshot.
    fn collection(_: &Cell, _: u64) -> Collection {
        let name = "HeapTupleSatisfiesMVCC".to_owned();
        let frame = Frame { name, module: "postgres".to_owned(), kind: Kind::User };
        let function = Function {
            frame,
            self_samples: 10,
            total_samples: 10,
            self_events: 100,
            total_events: 100,
        };
        let profile =
            Profile { functions: vec![function], ..super::super::tests::empty_profile(10) };
        Collection { profile: Some(profile), ..Collection::default() }
    }

    #[test]
    fn the_papers_figures_stand_beside_those_of_every_cell() {
        let dir = tempfile::tempdir().unwrap();
        let mut mock = Mock::new();
        mock.collection = Some(collection);
        let mut results = testing::results(dir.path(), STUDY, &mut mock);
        assert_eq!(sections(&results), [], "not of PostgreSQL");
        results.record.engine = "postgres".to_owned();
        let [section] = &sections(&results)[..] else { panic!("one clock") };
        assert_eq!((section.cells.as_slice(), section.together.len()), (&[0, 1][..], 2));
        let says = "9 functions take 56 % of the time of µSS (section 5.7)";
        assert!(section.printed.iter().any(|printed| printed == says), "{section:?}");
        let printed: Vec<&String> = section.rows.iter().flat_map(|row| &row.printed).collect();
        let says = "14 % of the time of µSS, HT, 10 clients";
        assert!(printed.iter().any(|printed| *printed == says), "{printed:?}");
        let row = section.rows.iter().find(|row| row.name == "HeapTupleSatisfiesSnapshot");
        assert_eq!(row.unwrap().shares, [Some(1.0), Some(1.0)]);
    }

    #[test]
    fn what_is_printed_is_of_what_was_sampled_by() {
        let of = |clock: &str| {
            let event = Clock::Event(clock.to_owned());
            all().iter().flat_map(|function| printed(function, &event)).collect::<Vec<_>>()
        };
        let (l3, dtlb) = (of("MEM_LOAD_RETIRED.L3_MISS"), of("DTLB_LOAD_MISSES.WALK_COMPLETED"));
        assert!(l3.contains(&"46 % of L2 misses of µSS".to_owned()), "{l3:?}");
        assert!(dtlb.contains(&"43 % of DTLB misses of µSS".to_owned()), "{dtlb:?}");
        assert!(l3.iter().all(|printed| printed.contains("% of L2 misses of ")));
        assert!(dtlb.iter().all(|printed| printed.contains("% of DTLB misses of ")));
    }
}
