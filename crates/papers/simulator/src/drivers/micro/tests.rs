//! Queries against the rows looked at one by one, and what machines do to them.

use workahead_walks::random::Random;

use super::*;

/// T1 with a1 of T2's keys, all values of a2 as often, any a3.
fn rows(count: u32, t2_rows: u32) -> Vec<[u32; 3]> {
    let mut draws = Random::of(7);
    let a2 = draws.permutation(count);
    let row = |place| [draws.below(t2_rows) + 1, place % (count / 2) + 1, draws.below(500) + 1];
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
        stagger: 1000,
        seed: 1,
    }
}

fn asked(preset: &Preset, options: &Options) -> Asked {
    asked_of(1, preset, options)
}

fn asked_of(servers: usize, preset: &Preset, options: &Options) -> Asked {
    let servers = Database::servers(&rows(2000, 300), 300, options.clients, servers);
    let cpus = preset.cpus() as usize;
    ask(preset, &servers, options, |client| client % cpus).unwrap()
}

/// The answer by looking at each row.
fn oracle(query: Query, rows: &[[u32; 3]], (low, high): (u32, u32)) -> Found {
    let meant = rows.iter().filter(|[_, a2, _]| low < *a2 && *a2 < high);
    let mut a3: Vec<u32> = meant.map(|row| row[2]).collect();
    let (rows, sum) = (a3.len() as u64, a3.iter().map(|a3| u64::from(*a3)).sum());
    match query {
        Query::Uss => {
            a3.sort_unstable();
            a3.dedup();
            Found { rows, sum: 0, distinct: a3 }
        }
        Query::Utpcc | Query::Unj => Found { rows, sum, distinct: Vec::new() },
    }
}

const QUERIES: [Query; 3] = [Query::Utpcc, Query::Uss, Query::Unj];

/// k clients all get the oracle's answer, with siblings and without, in short slices.
#[test]
fn answers_are_those_of_the_rows() {
    for query in QUERIES {
        let expected = oracle(query, &rows(2000, 300), options(query).range);
        assert_eq!(expected.rows, 2 * 199);
        for (preset, clients) in [(machine(), 3), (machine().without_siblings(), 2)] {
            let options = Options { clients, queries: 2, ..options(query) };
            let asked = asked(&preset, &options);
            assert_eq!(asked.found.len(), 2 * clients);
            assert!(asked.found.iter().all(|found| *found == expected), "{query:?}");
        }
    }
}

/// Which structures a core has does not change what is executed (A4: within 4 %).
#[test]
fn siblings_change_no_instruction() {
    for query in QUERIES {
        let options = Options { clients: 4, ..options(query) };
        let on = asked(&machine(), &options);
        let off = asked(&machine().without_siblings(), &options);
        let change = on.instructions as f64 / off.instructions as f64;
        assert!((0.96..=1.04).contains(&change), "{query:?} {change}");
        let share = |asked: &Asked| asked.driven.ran.cpus[0].uops as f64;
        assert!(share(&on) < 0.6 * share(&off));
    }
}

#[test]
fn every_run_is_the_same() {
    let options = Options { clients: 3, queries: 2, ..options(Query::Unj) };
    let [one, two] = [0, 1].map(|_| asked(&machine(), &options));
    assert_eq!(one.driven.ran, two.driven.ran);
    assert_eq!(one.driven.found, two.driven.found);
}

/// After a query that isn't counted, another finds what it left (S0.10).
#[test]
fn warming_up_leaves_lines_behind() {
    let misses = |warmup| {
        let asked = asked(&machine(), &Options { warmup, ..options(Query::Utpcc) });
        let at = |depth| asked.driven.found.iter().map(|found| found.at[1][depth]).sum::<u64>();
        (at(2), asked.instructions)
    };
    let [(cold, before), (warm, after)] = [0, 1].map(misses);
    assert_eq!(before, after);
    assert!(warm * 4 < cold, "{warm} of {cold}");
}

/// The mix is the one that the seed prints, and the footprint says where it is from.
#[test]
fn instructions_are_of_the_seeds_mix() {
    for query in QUERIES {
        let asked = asked(&machine(), &options(query));
        let footprint = footprint::of(query);
        let counts = asked.driven.ran.cpus[0];
        let of = |count: u64| count as f64 / asked.instructions as f64;
        let near = |share: f64, wanted: f64| (share / wanted - 1.0).abs() < 0.05;
        assert!(near(of(counts.loads), footprint.mix.loads), "{query:?} {}", of(counts.loads));
        assert!(near(of(counts.stores), footprint.mix.stores), "{}", of(counts.stores));
        assert!(near(of(counts.uops), footprint.mix.uops_per_instruction));
        assert!(footprint.origin.contains("synthetic"));
    }
}

/// Clients of one server find what the other has read; clients of two servers share no row.
#[test]
fn servers_share_nothing() {
    let misses = |servers| {
        let options = Options { clients: 2, ..options(Query::Uss) };
        let asked = asked_of(servers, &machine(), &options);
        let found = asked.driven.found.iter();
        (found.map(|found| found.at[1][2]).sum::<u64>(), asked.found)
    };
    let ((together, one), (apart, two)) = (misses(1), misses(2));
    assert_eq!(one, two);
    assert!(apart as f64 > 1.5 * together as f64, "{apart} {together}");
}

/// A helper changes no answer; it takes misses away from the process, whose set makes it wait for
/// no row at the end.
#[test]
fn a_helper_loads_and_answers_nothing() {
    let asked = |set_size| {
        let options = Options { set_size, range: (300, 900), ..options(Query::Unj) };
        let servers = Database::servers(&rows(2000, 100_000), 100_000, 1, 1);
        ask(&machine(), &servers, &options, |place| place % 2).unwrap()
    };
    let [alone, helped] = [0, 16].map(asked);
    // Of an index of many leaves, some keys are the first of theirs.
    let expected = oracle(Query::Unj, &rows(2000, 100_000), (300, 900));
    assert_eq!(alone.found, std::slice::from_ref(&expected));
    assert_eq!(helped.found, [expected]);
    let misses = |asked: &Asked| asked.driven.found[0].at[1][2];
    assert_eq!(alone.driven.found[1].at[1][2], 0);
    assert!(misses(&helped) < misses(&alone), "{} {}", misses(&helped), misses(&alone));
}
