//! Results with counts and profiles: as a machine with counters gives them, and as one without.
//!
//! No machine was counted for them. Rates are chosen to look like a database's; what each event
//! reads follows from them, the cell, whose work it is and the slot.

use workahead_counters::event::{Event, Privilege};
use workahead_counters::profile::{Clock, Frame, Function, Kind, Profile, Stack};
use workahead_counters::source::Reading;
use workahead_counters::stream::{Group, Header, OnCpu, Slot, Spoilt, Stream, UncountedEvent};
use workahead_counters::table::Table;
use workahead_study::cell::Cell;
use workahead_study::collection::Collection;
use workahead_study::observation::{Observation, Outcome};
use workahead_study::results::Results;

use super::{results, unit};

const STUDY: &str = include_str!("collected.toml");
const INSTRUCTIONS: f64 = 4e8;
const NS: u64 = 250_000_000;
/// The reason that a virtual machine without counters gives.
pub(crate) const LACKS: &str = "the virtual machine is given no event source";

/// In 1000 instructions of user work without siblings.
const RATES: [(&str, f64); 38] = [
    ("INST_RETIRED.ANY", 1000.0),
    ("CPU_CLK_UNHALTED.THREAD", 1420.0),
    ("CPU_CLK_UNHALTED.REF_TSC", 1100.0),
    ("TOPDOWN.SLOTS", 8520.0),
    ("PERF_METRICS.RETIRING", 1620.0),
    ("PERF_METRICS.BAD_SPECULATION", 680.0),
    ("PERF_METRICS.FRONTEND_BOUND", 2130.0),
    ("PERF_METRICS.BACKEND_BOUND", 4090.0),
    ("PERF_METRICS.HEAVY_OPERATIONS", 300.0),
    ("PERF_METRICS.BRANCH_MISPREDICTS", 600.0),
    ("PERF_METRICS.FETCH_LATENCY", 1500.0),
    ("PERF_METRICS.MEMORY_BOUND", 2900.0),
    ("INT_MISC.UOP_DROPPING", 40.0),
    ("UOPS_RETIRED.SLOTS", 1180.0),
    ("UOPS_RETIRED.SLOTS:c1", 520.0),
    ("UOPS_RETIRED.SLOTS:c2", 380.0),
    ("UOPS_RETIRED.SLOTS:c3", 240.0),
    ("UOPS_RETIRED.SLOTS:c4", 130.0),
    ("UOPS_RETIRED.SLOTS:c5", 60.0),
    ("UOPS_RETIRED.SLOTS:c6", 30.0),
    ("UOPS_RETIRED.SLOTS:c7", 12.0),
    ("UOPS_RETIRED.SLOTS:c8", 4.0),
    ("UOPS_ISSUED.ANY", 1350.0),
    ("RESOURCE_STALLS.SB", 90.0),
    ("RESOURCE_STALLS.SCOREBOARD", 60.0),
    ("ICACHE_DATA.STALLS", 210.0),
    ("ICACHE_TAG.STALLS", 70.0),
    ("BR_INST_RETIRED.ALL_BRANCHES", 190.0),
    ("BR_MISP_RETIRED.ALL_BRANCHES", 1.9),
    ("MEM_INST_RETIRED.ALL_LOADS", 290.0),
    ("MEM_INST_RETIRED.ALL_STORES", 140.0),
    ("MEM_LOAD_RETIRED.L1_MISS", 16.0),
    ("MEM_LOAD_RETIRED.L2_HIT", 11.0),
    ("MEM_LOAD_RETIRED.L2_MISS", 5.0),
    ("MEM_LOAD_RETIRED.L3_HIT", 3.1),
    ("MEM_LOAD_RETIRED.L3_MISS", 1.9),
    ("task_clock", 390.0),
    ("context_switches", 2.5e-4),
];

/// As a machine with counters gives them. Siblings make each other slower; the second query has a
/// row without a profile, and one slot of it was shared with another program.
pub(crate) fn collected() -> Results {
    let mut results = with(STUDY, &|cell, seen| Collection {
        counts: Some(counts(cell, seen, &[Privilege::User, Privilege::Kernel])),
        profile: (cell.case() != "one CPU").then(|| profile(cell, seen, Clock::Cycles)),
        functions: None,
        lacks: match cell.case() {
            "one CPU" => vec!["no function profile: sampling is forbidden".to_owned()],
            _ => Vec::new(),
        },
    });
    results.record.host.tier = "A".to_owned();
    results.record.host.tier_reason = String::new();
    results.record.host.counters = true;
    results.record.host.siblings = true;
    results
}

/// Cells along an axis of numbers, user and kernel counted together.
pub(crate) fn along() -> Results {
    let (head, rest) = STUDY.split_once("[axes]").unwrap();
    let (_, method) = rest.split_once("[method]").unwrap();
    let method = method.replace("{ case = \"siblings out\" }", "{ clients = 1 }");
    let text = format!("{head}[axes]\nclients = [1, 4, 16]\n[method]{method}");
    with(&text, &|cell, seen| Collection {
        counts: Some(counts(cell, seen, &[Privilege::Both])),
        profile: Some(profile(cell, seen, Clock::Cycles)),
        functions: None,
        lacks: Vec::new(),
    })
}

/// As one without counters gives them, where cases with siblings are unavailable.
pub(crate) fn uncollected() -> Results {
    let mut results = with(STUDY, &|cell, seen| Collection {
        counts: Some(software(seen)),
        profile: Some(profile(cell, seen, Clock::CpuClock)),
        functions: None,
        lacks: Vec::new(),
    });
    let cells = results.run_plan.cells.clone();
    for (need, cell) in results.record.needs.iter_mut().zip(&cells) {
        if cell.case() == "siblings on" {
            need.impossible = Some("the processor has no siblings".into());
        }
    }
    results.run_plan = results.run_plan.clone().skipping(&results.record.needs);
    let skipped = results.run_plan.skipped.clone();
    results.observations.retain(|seen| !skipped.contains(&seen.cell));
    results
}

/// Many cells with a profile each; the last but one is the best.
pub(crate) fn many() -> Results {
    let (head, rest) = STUDY.split_once("[axes]").unwrap();
    let (_, method) = rest.split_once("[method]").unwrap();
    let method = method.replace("{ case = \"siblings out\" }", "{ clients = 1 }");
    let clients: Vec<String> = (1..=24).map(|clients| clients.to_string()).collect();
    let text = format!("{head}[axes]\nclients = [{}]\n[method]{method}", clients.join(", "));
    let reach = |cell: &Cell| if cell.integer("clients") == Some(23) { 3.0 } else { 1.0 };
    let collection = |cell: &Cell, seen: &Observation| Collection {
        profile: Some(profile(cell, seen, Clock::Cycles)),
        ..Collection::default()
    };
    reaching(&text, &reach, &collection)
}

/// Cells with counts, more than a page has columns for.
pub(crate) fn counted(cells: usize) -> Results {
    let (head, rest) = STUDY.split_once("[axes]").unwrap();
    let (_, method) = rest.split_once("[method]").unwrap();
    let method = method.replace("{ case = \"siblings out\" }", "{ clients = 1 }");
    let clients: Vec<String> = (1..=cells).map(|clients| clients.to_string()).collect();
    let text = format!("{head}[axes]\nclients = [{}]\n[method]{method}", clients.join(", "));
    with(&text, &|_, seen| Collection { counts: Some(software(seen)), ..Collection::default() })
}

/// Each sample of a cell is by something else: time, misses of the last level, walks.
pub(crate) fn by_misses() -> Results {
    let method = "profile_hz = 99\nprofile_by = [\"time\", \"l3_misses\", \"dtlb_misses\"]";
    let text = STUDY.replace("profile_hz = 99", method);
    with(&text, &|cell, seen| {
        let event = |name: &str| Clock::Event(name.to_owned());
        let clock = match seen.repetition {
            0 => Clock::Cycles,
            1 => event("MEM_LOAD_RETIRED.L3_MISS"),
            _ => event("DTLB_LOAD_MISSES.WALK_COMPLETED"),
        };
        let mut profile = profile(cell, seen, clock);
        if seen.repetition > 0 {
            // The tuple's header is where misses are.
            let header = "HeapTupleSatisfiesMVCC";
            let found = profile.functions.iter_mut().find(|one| one.frame.name == header);
            let (more, found) = (profile.events, found.unwrap());
            found.self_events += more;
            found.total_events += more;
            profile.events += more;
            profile.functions.sort_by_key(|function| std::cmp::Reverse(function.self_events));
        }
        Collection { profile: Some(profile), ..Collection::default() }
    })
}

/// As a machine without counters does of the same study.
pub(crate) fn not_by_misses() -> Results {
    let method = "profile_hz = 99\nprofile_by = [\"time\", \"l3_misses\", \"dtlb_misses\"]";
    let text = STUDY.replace("profile_hz = 99", method);
    with(&text, &|cell, seen| Collection {
        profile: Some(profile(cell, seen, Clock::CpuClock)),
        lacks: vec![format!("no function profile by l3_misses, dtlb_misses: {LACKS}")],
        ..Collection::default()
    })
}

fn with(text: &str, collection: &dyn Fn(&Cell, &Observation) -> Collection) -> Results {
    reaching(text, &|_| 1.0, collection)
}

fn reaching(
    text: &str,
    reach: &dyn Fn(&Cell) -> f64,
    collection: &dyn Fn(&Cell, &Observation) -> Collection,
) -> Results {
    let mut results = results("demo/collected", text, reach);
    results.record.engine_version = "PostgreSQL 15.18".to_owned();
    let cells = results.run_plan.cells.clone();
    for seen in &mut results.observations {
        let collection = collection(&cells[seen.cell], seen);
        if let Outcome::Sample(sample) = &mut seen.outcome {
            sample.measures.clear();
            sample.collection = Some(Box::new(collection));
        }
    }
    results
}

/// Groups of some events beside those that are always there, user and kernel in turn.
fn counts(cell: &Cell, seen: &Observation, sides: &[Privilege]) -> Stream {
    let table = Table::named("intel/sapphire-rapids").unwrap();
    let always = table.always();
    let rated = |event: &&Event| {
        !always.contains(event) && RATES.iter().any(|(name, _)| *name == event.name)
    };
    let others: Vec<Event> = table.events().filter(rated).cloned().collect();
    let chunks = others.chunks(13).flat_map(|events| {
        let events: Vec<Event> = always.iter().chain(events).cloned().collect();
        sides.iter().map(move |side| Group { events: events.clone(), privilege: *side })
    });
    let header = Header {
        table: Some(table.name.clone()),
        metrics: vec!["all".to_owned()],
        machine: "a machine of this test".to_owned(),
        target: "a control group".to_owned(),
        constructed: Some("rates chosen for a test of this page".to_owned()),
        groups: chunks.collect(),
        slot_s: 0.25,
        left_out: vec![UncountedEvent {
            event: "BACLEARS.ANY".to_owned(),
            why: "this machine does not count it".to_owned(),
        }],
        ..Header::default()
    };
    let turns = (0..2).flat_map(|_| 0..header.groups.len()).enumerate();
    let slots = turns.map(|(at, group)| slot(cell, seen, &header.groups[group], (at, group)));
    let mut slots: Vec<Slot> = slots.collect();
    if seen.repetition == 1 && cell.text("query") == Some("unj") {
        slots[1].spoilt = Some(Spoilt::Multiplexed);
    }
    Stream { slots, header }
}

fn slot(cell: &Cell, seen: &Observation, of: &Group, (at, group): (usize, usize)) -> Slot {
    let value = |event: &Event| {
        let rate = RATES.iter().find(|(name, _)| *name == event.name).map_or(1.0, |(_, r)| *r);
        let is_work = event.name == "INST_RETIRED.ANY";
        let is_slow = event.name.contains("CPU_CLK") || event.name.contains("STALLS");
        let kernel = if of.privilege == Privilege::Kernel && is_slow { 1.7 } else { 1.0 };
        let siblings = match cell.case() {
            "siblings on" if event.name.contains("CPU_CLK") => 1.45,
            "siblings on" if event.name.contains("STALLS") => 1.8,
            "" if event.name.contains("CPU_CLK") => 1.0 + 0.2 * seen.cell as f64,
            _ => 1.0,
        };
        let argument = (seen.cell * 1000 + at * 10) as u64 + u64::from(seen.repetition);
        let scatter = if event.name == "RESOURCE_STALLS.SB" { 0.3 } else { 0.02 };
        let wobble = if is_work { 1.0 } else { 1.0 + scatter * unit(argument) };
        (INSTRUCTIONS * rate * kernel * siblings * wobble / 1000.0) as u64
    };
    let reading =
        Reading { enabled_ns: NS, running_ns: NS, values: of.events.iter().map(value).collect() };
    Slot {
        group,
        begun_s: at as f64 * 0.25,
        wall_s: 0.25,
        cpus: vec![OnCpu { cpu: Some(0), reading }],
        spoilt: None,
    }
}

/// The counts that the kernel keeps everywhere.
fn software(seen: &Observation) -> Stream {
    let names = ["task_clock", "context_switches", "cpu_migrations", "page_faults", "major_faults"];
    let events = names.map(|name| Table::software().event(name).unwrap().clone());
    let header = Header {
        metrics: vec!["all".to_owned()],
        machine: "AMD EPYC 7713".to_owned(),
        target: "the threads of a server".to_owned(),
        groups: vec![Group { events: events.to_vec(), privilege: Privilege::Both }],
        slot_s: 0.25,
        lacks: Some(LACKS.to_owned()),
        ..Header::default()
    };
    let switches = 40 + u64::from(seen.repetition);
    let reading = Reading { enabled_ns: NS, running_ns: NS, values: vec![NS, switches, 3, 512, 0] };
    let slot = Slot {
        group: 0,
        begun_s: 0.0,
        wall_s: 0.25,
        cpus: vec![OnCpu { cpu: Some(0), reading }],
        spoilt: None,
    };
    Stream { header, slots: vec![slot] }
}

/// Of a scan or a join; with siblings locks take longer. Stacks as the runner keeps them.
pub(crate) fn profile(cell: &Cell, seen: &Observation, clock: Clock) -> Profile {
    let siblings = u64::from(cell.case() == "siblings on");
    let join = u64::from(cell.text("query") == Some("unj"));
    let name = |name: &str| (name.to_owned(), "postgres", Kind::User);
    let frames = [
        name("main"),
        name("PostgresMain"),
        name("ExecSeqScan"),
        name("heapgettup_pagemode"),
        name("HeapTupleSatisfiesMVCC"),
        name("ExecInterpExpr"),
        name("slot_deform_heap_tuple"),
        name("LWLockAcquire"),
        name("comparetup_heap<long & wide>"),
        ("memcpy".to_owned(), "libc.so.6", Kind::User),
        ("copy_to_user".to_owned(), "[kernel]", Kind::Kernel),
        ("libssl.so.3+0x12f40".to_owned(), "libssl.so.3", Kind::Unresolved),
        ("[truncated]".to_owned(), "", Kind::Cut),
    ];
    let frames = frames.map(|(name, module, kind)| Frame { name, module: module.to_owned(), kind });
    let more = u64::from(seen.repetition);
    let stacks: [(&[u32], u64); 10] = [
        (&[0, 1, 2], 60),
        (&[0, 1, 2, 3], 420 + 30 * join),
        (&[0, 1, 2, 3, 4], 310 - 40 * siblings + more),
        (&[0, 1, 2, 5], 280),
        (&[0, 1, 2, 5, 6], 190),
        (&[0, 1, 2, 7], 40 + 60 * siblings),
        (&[0, 1, 8], 30),
        (&[0, 1, 2, 9], 45),
        (&[0, 1, 2, 9, 10], 25),
        (&[12, 11], 35),
    ];
    // As many events as the clock has in a sample at 99 Hz.
    let stack = |(frames, samples): &(&[u32], u64)| Stack {
        frames: frames.to_vec(),
        samples: *samples,
        events: samples * 10_101_010,
    };
    let stacks: Vec<Stack> = stacks.iter().map(stack).collect();
    let samples = stacks.iter().map(|stack| stack.samples).sum();
    let mut functions: Vec<Function> = (0..frames.len() as u32)
        .filter(|at| frames[*at as usize].kind != Kind::Cut)
        .map(|at| function(&frames[at as usize], at, &stacks))
        .collect();
    functions.sort_by_key(|function| std::cmp::Reverse(function.self_events));
    let is_first = seen.repetition == 0;
    Profile {
        clock,
        frequency_hz: 99,
        duration_s: 15.0,
        samples,
        events: samples * 10_101_010,
        kernel_samples: Some(25),
        lost: 0,
        truncated: 35,
        unsampled_threads: 0,
        functions,
        frames: if is_first { frames.to_vec() } else { Vec::new() },
        stacks: if is_first { stacks } else { Vec::new() },
    }
}

fn function(frame: &Frame, at: u32, stacks: &[Stack]) -> Function {
    let sum = |is_in: &dyn Fn(&Stack) -> bool| -> u64 {
        stacks.iter().filter(|stack| is_in(stack)).map(|stack| stack.samples).sum()
    };
    let own = sum(&|stack| stack.frames.last() == Some(&at));
    let total = sum(&|stack| stack.frames.contains(&at));
    Function {
        frame: frame.clone(),
        self_samples: own,
        total_samples: total,
        self_events: own * 10_101_010,
        total_events: total * 10_101_010,
    }
}
