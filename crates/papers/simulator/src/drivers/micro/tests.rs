//! Queries against a scan of the rows, and effects of machines.

use workahead_walks::random::Random;

use super::*;

/// T1 with a1 from T2's keys, all values of a2 equally often, any a3.
fn rows(count: u32, t2_rows: u32) -> Vec<[u32; 3]> {
    let mut random = Random::of(7);
    let a2 = random.permutation(count);
    let row = |place| [random.below(t2_rows) + 1, place % (count / 2) + 1, random.below(500) + 1];
    a2.into_iter().map(row).collect()
}

fn machine() -> Preset {
    Preset::named("p4-ht-2m").unwrap()
}

fn options(query: Query) -> Options {
    Options {
        query,
        range: (300, 500),
        clients: 1,
        queries: 1,
        warmup: 0,
        set_size: 0,
        slices: Slices { quantum: 1e5, switch: 100.0 },
        offsets: false,
        seed: 1,
    }
}

fn results(preset: &Preset, options: &Options) -> QueryResults {
    results_of_servers(1, preset, options)
}

fn results_of_servers(servers: usize, preset: &Preset, options: &Options) -> QueryResults {
    let servers = Database::servers(&rows(2000, 300), 300, options.clients, servers);
    let cpus = preset.cpus() as usize;
    run_queries(preset, &servers, options, |client| client % cpus, &AtomicBool::new(false)).unwrap()
}

/// The answer by a scan of the rows.
fn oracle(query: Query, rows: &[[u32; 3]], (low, high): (u32, u32)) -> QueryAnswer {
    let meant = rows.iter().filter(|[_, a2, _]| low < *a2 && *a2 < high);
    let mut a3: Vec<u32> = meant.map(|row| row[2]).collect();
    let (rows, sum) = (a3.len() as u64, a3.iter().map(|a3| u64::from(*a3)).sum());
    match query {
        Query::Uss => {
            a3.sort_unstable();
            a3.dedup();
            QueryAnswer { rows, sum: 0, distinct: a3 }
        }
        Query::Utpcc | Query::Unj => QueryAnswer { rows, sum, distinct: Vec::new() },
    }
}

const QUERIES: [Query; 3] = [Query::Utpcc, Query::Uss, Query::Unj];

/// k clients all get the oracle's answer, with and without siblings, in short slices.
#[test]
fn answers_are_those_of_the_rows() {
    for query in QUERIES {
        let expected = oracle(query, &rows(2000, 300), options(query).range);
        assert_eq!(expected.rows, 2 * 199);
        for (preset, clients) in [(machine(), 3), (machine().without_siblings(), 2)] {
            let options = Options { clients, queries: 2, ..options(query) };
            let results = results(&preset, &options);
            assert_eq!(results.found.len(), 2 * clients);
            assert!(results.found.iter().all(|found| *found == expected), "{query:?}");
        }
    }
}

/// The core's structures don't change the executed instructions (A4: within 4 %).
#[test]
fn siblings_change_no_instruction() {
    for query in QUERIES {
        let options = Options { clients: 4, ..options(query) };
        let on = results(&machine(), &options);
        let off = results(&machine().without_siblings(), &options);
        let change = on.instructions as f64 / off.instructions as f64;
        assert!((0.96..=1.04).contains(&change), "{query:?} {change}");
        let share = |results: &QueryResults| results.driven.run.cpus[0].uops as f64;
        assert!(share(&on) < 0.6 * share(&off));
    }
}

#[test]
fn every_run_is_the_same() {
    let options = Options { clients: 3, queries: 2, ..options(Query::Unj) };
    let [one, two] = [0, 1].map(|_| results(&machine(), &options));
    assert_eq!(one.driven.run, two.driven.run);
    assert_eq!(one.driven.found, two.driven.found);
}

/// A query after a warm-up query finds its lines in the caches (S0.10).
#[test]
fn warming_up_leaves_lines_behind() {
    let misses = |warmup| {
        let results = results(&machine(), &Options { warmup, ..options(Query::Utpcc) });
        let at = |depth| results.driven.found.iter().map(|found| found.at[1][depth]).sum::<u64>();
        (at(2), results.instructions)
    };
    let [(cold, before), (warm, after)] = [0, 1].map(misses);
    assert_eq!(before, after);
    assert!(warm * 4 < cold, "{warm} of {cold}");
}

/// The mix is that of the paper, and the footprint names its source.
#[test]
fn instructions_are_of_the_papers_mix() {
    for query in QUERIES {
        let results = results(&machine(), &options(query));
        let footprint = footprint::of(query);
        let counts = results.driven.run.cpus[0];
        let of = |count: u64| count as f64 / results.instructions as f64;
        let near = |share: f64, wanted: f64| (share / wanted - 1.0).abs() < 0.05;
        assert!(near(of(counts.loads), footprint.mix.loads), "{query:?} {}", of(counts.loads));
        assert!(near(of(counts.stores), footprint.mix.stores), "{}", of(counts.stores));
        assert!(near(of(counts.uops), footprint.mix.uops_per_instruction));
        assert!(footprint.origin.contains("synthetic"));
    }
}

/// Clients of one server share cached rows; clients of two servers share none.
#[test]
fn servers_share_nothing() {
    let misses = |servers| {
        let options = Options { clients: 2, ..options(Query::Uss) };
        let results = results_of_servers(servers, &machine(), &options);
        let found = results.driven.found.iter();
        (found.map(|found| found.at[1][2]).sum::<u64>(), results.found)
    };
    let ((together, one), (apart, two)) = (misses(1), misses(2));
    assert_eq!(one, two);
    assert!(apart as f64 > 1.5 * together as f64, "{apart} {together}");
}

/// A helper changes no answer; it takes misses from the process, and the set is empty at the end.
#[test]
fn a_helper_loads_and_answers_nothing() {
    let results = |set_size| {
        let options = Options { set_size, range: (300, 900), ..options(Query::Unj) };
        let servers = Database::servers(&rows(2000, 100_000), 100_000, 1, 1);
        run_queries(&machine(), &servers, &options, |place| place % 2, &AtomicBool::new(false))
            .unwrap()
    };
    let [alone, helped] = [0, 16].map(results);
    // Some keys are the first of their leaf, as the index has many.
    let expected = oracle(Query::Unj, &rows(2000, 100_000), (300, 900));
    assert_eq!(alone.found, std::slice::from_ref(&expected));
    assert_eq!(helped.found, [expected]);
    let misses = |results: &QueryResults| results.driven.found[0].at[1][2];
    assert_eq!(alone.driven.found[1].at[1][2], 0);
    assert!(misses(&helped) < misses(&alone), "{} {}", misses(&helped), misses(&alone));
}

/// Two clients on two CPUs, drawn apart: each still has its answer, nothing runs alone, and the
/// counts are as much as went on in the time.
#[test]
fn clients_out_of_step_are_never_alone() {
    let run = |seed, offsets| {
        let options = Options { clients: 2, warmup: 1, seed, offsets, ..options(Query::Uss) };
        results(&machine(), &options)
    };
    let expected = oracle(Query::Uss, &rows(2000, 300), options(Query::Uss).range);
    let together = run(1, false);
    assert_eq!(together.executed, together.instructions);
    let apart: Vec<QueryResults> = (1..4).map(|seed| run(seed, true)).collect();
    for results in &apart {
        assert_eq!(results.found, [expected.clone(), expected.clone()]);
        assert_eq!(results.instructions, together.instructions);
        // Both CPUs were busy to the end, and with as much as in the other's time.
        let [one, two] = &results.driven.run.cpus[..] else { panic!("two CPUs") };
        assert!(one.ticks.abs_diff(two.ticks) * 100 < one.ticks, "{} {}", one.ticks, two.ticks);
        let uops = (one.uops + two.uops) as f64 / results.executed as f64;
        let whole = together.driven.run.cpus.iter().map(|counts| counts.uops).sum::<u64>() as f64;
        assert!((uops / (whole / together.executed as f64) - 1.0).abs() < 0.02, "{uops}");
    }
    let times: Vec<Ticks> = apart.iter().map(|results| results.driven.run.ticks).collect();
    assert!(times.iter().any(|time| *time != times[0]), "{times:?}");
}

/// A statement by itself keeps at most what a run is said to need for it.
#[test]
fn a_process_keeps_no_more_than_its_bytes() {
    let (rows, count) = (rows(2000, 300), [2000, 300]);
    let servers = Database::servers(&rows, 300, 1, 1);
    for query in QUERIES {
        let options = Options { range: (0, 1001), ..options(query) };
        let append = Rc::default();
        let process_of = ClientProcess { database: &servers[0], append, client: 0, cpu: 0 };
        let progress = Rc::new(ClientProgress::new(1, 1));
        progress.joins(0);
        let mut statement = Statement::new(0, process_of, &options, Rc::clone(&progress));
        while statement.next(0).is_some() {}
        assert_eq!(progress.found.borrow()[0].answer, oracle(query, &rows, options.range));
        let kept = (statement.process.ops.capacity() * size_of::<Op>()) as u64;
        let of_query = options.bytes(count, 2000, 1) - Database::bytes(2000, 300);
        assert!(kept <= PROCESS_BYTES && kept <= of_query, "{query:?}: {kept} of {of_query}");
    }
}
