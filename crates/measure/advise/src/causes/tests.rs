//! Captures of servers whose causes are known, because they were made so.

use std::collections::BTreeMap;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use workahead_study::capture::{Capture, FORMAT, Figures, Index, WORKING, Window};

use super::*;

/// A server at work: what a transaction spends, in milliseconds, and what surrounds it.
#[derive(Clone)]
struct Server {
    per_s: f64,
    cpu_ms: f64,
    /// Waiting for a CPU.
    delay_ms: f64,
    waits_ms: Vec<(&'static str, f64)>,
    /// CPUs that others had.
    others: f64,
    throttled: f64,
    counts: Vec<(&'static str, f64)>,
    settings: Vec<(&'static str, &'static str)>,
    facts: Vec<(&'static str, &'static str)>,
    indexes: Vec<&'static str>,
    seq_scans: f64,
    /// Standard deviation of what a window has, relative.
    noise: f64,
}

impl Server {
    fn usual() -> Server {
        Server {
            per_s: 500.0,
            cpu_ms: 1.0,
            delay_ms: 0.3,
            waits_ms: vec![("log", 0.5), ("locks", 0.1)],
            others: 0.2,
            throttled: 0.0,
            counts: vec![("tup_returned", 20.0), ("blks_hit", 30.0), ("temp_bytes", 0.0)],
            settings: vec![("fsync", "on"), ("work_mem", "4096 kB"), ("port", "5432")],
            facts: vec![("server", "PostgreSQL 15.1"), ("kernel", "6.1")],
            indexes: vec!["orders_by_customer", "orders_pkey"],
            seq_scans: 0.0,
            noise: 0.05,
        }
    }

    fn captured(&self, seed: u64) -> Capture {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut noisy = |value: f64| {
            // The sum of uniform draws is near enough to normal.
            let normal: f64 = (0..12).map(|_| random.random_range(0.0..1.0)).sum::<f64>() - 6.0;
            (value * (1.0 + self.noise * normal)).max(0.0)
        };
        const SECONDS: f64 = 10.0;
        let window = |_| {
            let ended = noisy(self.per_s * SECONDS);
            let cpu_s = noisy(ended * self.cpu_ms * 1e-3);
            let delay_s = noisy(ended * self.delay_ms * 1e-3);
            let others_s = noisy(self.others * SECONDS);
            let mut sessions = Figures::from([(WORKING.to_owned(), (cpu_s + delay_s) / SECONDS)]);
            for (kind, ms) in &self.waits_ms {
                sessions.insert((*kind).to_owned(), noisy(ended * ms * 1e-3) / SECONDS);
            }
            let counts = [
                ("server_cpu_s", cpu_s),
                ("run_delay_s", delay_s),
                ("machine_cpu_s", 2.0 * SECONDS),
                ("machine_idle_s", (2.0 * SECONDS - cpu_s - others_s).max(0.0)),
                ("steal_s", 0.0),
                ("throttled_s", noisy(self.throttled * SECONDS)),
            ];
            let of_server = self.counts.iter().map(|(name, each)| (*name, noisy(ended * each)));
            let counts = counts.into_iter().chain(of_server.collect::<Vec<_>>());
            let counts = counts.map(|(name, value)| (name.to_owned(), value)).collect();
            Window { seconds: SECONDS, ended, sessions, counts }
        };
        let windows: Vec<Window> = (0..12).map(window).collect();
        let ended: f64 = windows.iter().map(|window| window.ended).sum();
        let texts = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let index = |name: &&str| {
            let definition = format!("CREATE INDEX {name} ON shop.orders USING btree ({name}_of)");
            let index = Index { table: "shop.orders".to_owned(), definition, scans: None };
            ((*name).to_owned(), index)
        };
        let table = Figures::from([
            ("seq_scans".to_owned(), self.seq_scans * ended),
            ("seq_rows".to_owned(), self.seq_scans * ended * 1e4),
            ("rows".to_owned(), 1e4),
        ]);
        Capture {
            format: FORMAT,
            software: "postgres".to_owned(),
            counted: "transactions".to_owned(),
            settings: texts(&self.settings),
            facts: texts(&self.facts),
            windows,
            indexes: self.indexes.iter().map(index).collect(),
            tables: BTreeMap::from([("shop.orders".to_owned(), table)]),
            ..Capture::default()
        }
    }

    fn with(change: impl Fn(&mut Server)) -> Server {
        let mut server = Server::usual();
        change(&mut server);
        server
    }
}

fn against_usual(after: &Server) -> Causes {
    Causes::of(&Server::usual().captured(1), &after.captured(2)).unwrap()
}

/// The cause with the largest share.
fn first(causes: &Causes) -> &Cause {
    assert!(causes.is_shown, "{}", causes.sentence);
    &causes.causes[0]
}

#[test]
fn the_same_server_twice_has_no_cause() {
    let mut named = 0;
    for seed in 0..200 {
        let usual = Server { noise: 0.15, ..Server::usual() };
        let causes = Causes::of(&usual.captured(2 * seed), &usual.captured(2 * seed + 1)).unwrap();
        named += u32::from(causes.is_shown);
        assert!(causes.is_shown || causes.causes.is_empty());
    }
    assert_eq!(named, 0);
}

#[test]
fn a_setting_of_the_log_has_what_the_log_takes() {
    let before = Server::with(|server| {
        server.settings[0] = ("fsync", "off");
        server.waits_ms = vec![("log", 0.02), ("locks", 0.1)];
    });
    let after = Server::with(|server| server.waits_ms = vec![("log", 0.6), ("locks:log", 1.2)]);
    let causes = Causes::of(&before.captured(1), &after.captured(2)).unwrap();
    let cause = first(&causes);
    assert_eq!(cause.says, "fsync: off, then on");
    assert_eq!((cause.basis, &cause.parts[..]), (Basis::Shown, &[Part::Log][..]));
    // 1.78 ms more for the log of 1.68 more in all.
    assert!((cause.share - 1.06).abs() < 0.1, "{}", cause.share);
    let holds = |seed: &u64| {
        let (one, other) = (before.captured(2 * seed + 100), after.captured(2 * seed + 101));
        let causes = Causes::of(&one, &other).unwrap();
        first(&causes).interval.unwrap().includes(1.78 / 1.68)
    };
    // The interval is one of 95 %.
    let held = (0..100).filter(holds).count();
    assert!((88..=100).contains(&held), "{held}");
    assert_eq!(causes.changed, []);
    assert!(causes.sentence.contains("by fsync: off, then on"), "{}", causes.sentence);
}

#[test]
fn a_dropped_index_is_distinguished_from_a_changed_setting() {
    let after = Server::with(|server| {
        server.indexes.remove(0);
        server.settings[1] = ("work_mem", "64 kB");
        (server.cpu_ms, server.delay_ms, server.seq_scans) = (5.0, 4.0, 1.0);
        server.counts = vec![("tup_returned", 1e4), ("blks_hit", 300.0), ("temp_bytes", 0.0)];
    });
    let causes = against_usual(&after);
    let cause = first(&causes);
    assert_eq!(cause.says, "the index orders_by_customer of shop.orders is gone");
    assert!(cause.evidence[0].starts_with("sequential scans of shop.orders: 0.00 a transaction"));
    assert!(cause.or.is_empty() && cause.share > 0.8, "{cause:?}");
}

#[test]
fn the_last_index_is_gone_unless_indexes_could_not_be_read() {
    let after = Server::with(|server| {
        server.indexes.clear();
        (server.cpu_ms, server.delay_ms, server.seq_scans) = (5.0, 4.0, 1.0);
    });
    assert!(first(&against_usual(&after)).says.contains("is gone"));
    let unread = Capture { missing: vec!["indexes (denied)".to_owned()], ..after.captured(2) };
    let causes = Causes::of(&Server::usual().captured(1), &unread).unwrap();
    assert!(!first(&causes).says.contains("is gone"), "{:?}", causes.causes);
}

#[test]
fn an_index_by_another_name_is_the_same() {
    let mut after =
        Server::with(|server| (server.cpu_ms, server.seq_scans) = (5.0, 1.0)).captured(2);
    let index = after.indexes.remove("orders_by_customer").unwrap();
    after.indexes.insert("orders_by_customer_1".to_owned(), index);
    let causes = Causes::of(&Server::usual().captured(1), &after).unwrap();
    assert!(!first(&causes).says.contains("orders_by_customer"), "{:?}", causes.causes);
}

#[test]
fn other_programs_and_quotas_have_the_time_that_they_take() {
    let neighbour = Server::with(|server| (server.others, server.delay_ms) = (1.4, 3.0));
    let causes = against_usual(&neighbour);
    let says = &first(&causes).says;
    assert!(says.starts_with("other programs on the machine: 0."), "{says}");
    let quota = Server::with(|server| {
        (server.throttled, server.delay_ms) = (1.4, 3.0);
        server.facts.push(("server's CPU quota", "0.60 CPUs"));
    });
    let causes = against_usual(&quota);
    let says = &first(&causes).says;
    assert!(says.starts_with("the CPU quota of the server's control group"), "{says}");
}

/// Builds run beside it before and after: an index that is gone is not theirs.
#[test]
fn those_who_are_always_there_are_not_to_blame() {
    let busy = Server::with(|server| (server.others, server.delay_ms) = (1.4, 3.0));
    let after = Server {
        cpu_ms: 5.0,
        delay_ms: 15.0,
        per_s: 100.0,
        seq_scans: 1.0,
        indexes: vec!["orders_pkey"],
        counts: vec![("tup_returned", 1e4), ("blks_hit", 300.0)],
        ..busy.clone()
    };
    let causes = Causes::of(&busy.captured(1), &after.captured(2)).unwrap();
    let cause = first(&causes);
    assert_eq!(cause.says, "the index orders_by_customer of shop.orders is gone");
    assert!(cause.share > 0.9, "{:?}", causes.causes);
}

/// Sessions that wait for a CPU to take the next statement are not at work yet.
#[test]
fn what_the_kernel_counts_beyond_the_sessions_is_in_the_time() {
    let mut before = Server::usual().captured(1);
    let mut after =
        Server::with(|server| (server.others, server.delay_ms) = (1.4, 6.0)).captured(2);
    for window in before.windows.iter_mut().chain(&mut after.windows) {
        window.sessions.insert(WORKING.to_owned(), 0.1);
    }
    let causes = Causes::of(&before, &after).unwrap();
    assert!(first(&causes).says.starts_with("other programs on the machine"), "{causes:?}");
    assert!((causes.time.after_s / 7.6e-3 - 1.0).abs() < 0.1, "{}", causes.sentence);
    assert!(causes.parts.iter().all(|part| part.part != Part::Rest), "{:?}", causes.parts);
}

#[test]
fn a_holder_of_locks_is_named() {
    let after = Server::with(|server| {
        server.waits_ms = vec![("log", 0.5), ("locks:idle_in_transaction", 8.0)];
    });
    let mut after = after.captured(2);
    after.holders.insert("loop of ada, idle in transaction: lock table orders".to_owned(), 90.0);
    let causes = Causes::of(&Server::usual().captured(1), &after).unwrap();
    let cause = first(&causes);
    assert!(cause.says.starts_with("locks held by loop of ada, idle in transaction"), "{cause:?}");
    assert!(cause.share > 0.9, "{cause:?}");
}

#[test]
fn more_cpu_time_for_more_work_without_a_change_is_a_place() {
    let after = Server::with(|server| {
        (server.cpu_ms, server.delay_ms) = (3.0, 0.9);
        server.counts[0].1 = 900.0;
    });
    let causes = against_usual(&after);
    let cause = first(&causes);
    assert_eq!(cause.basis, Basis::Place);
    assert!(cause.evidence[0].starts_with("rows read by scans: 2"), "{cause:?}");
}

#[test]
fn a_version_is_documented_only_and_ruled_out_by_nothing() {
    let after = Server::with(|server| {
        (server.cpu_ms, server.delay_ms) = (2.0, 0.6);
        server.facts[0] = ("server", "PostgreSQL 16.1");
        server.settings[2] = ("port", "5433");
    });
    let causes = against_usual(&after);
    let cause = first(&causes);
    assert_eq!(cause.says, "server: PostgreSQL 15.1, then PostgreSQL 16.1");
    assert_eq!(cause.basis, Basis::Documented);
    let names: Vec<&str> = causes.changed.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["port"]);
}

#[test]
fn work_mem_is_none_where_temporary_files_stayed() {
    let spilling = Server::with(|server| {
        (server.cpu_ms, server.delay_ms) = (3.0, 0.9);
        server.settings[1] = ("work_mem", "64 kB");
    });
    let causes = against_usual(&spilling);
    assert!(!first(&causes).says.starts_with("work_mem"), "{:?}", causes.causes);
    let spilling = Server {
        counts: vec![("tup_returned", 20.0), ("blks_hit", 30.0), ("temp_bytes", 5e6)],
        ..spilling
    };
    let causes = against_usual(&spilling);
    assert_eq!(first(&causes).says, "work_mem: 4096 kB, then 64 kB");
}

#[test]
fn an_improvement_has_causes_too() {
    let slow = Server::with(|server| {
        server.settings[0] = ("fsync", "on");
        server.waits_ms[0].1 = 9.0;
    });
    let fast = Server::with(|server| {
        server.settings[0] = ("fsync", "off");
        server.waits_ms[0].1 = 0.01;
    });
    let causes = Causes::of(&slow.captured(1), &fast.captured(2)).unwrap();
    assert_eq!(first(&causes).says, "fsync: on, then off");
    assert!(causes.ratio < 0.3 && first(&causes).share > 0.9, "{}", causes.sentence);
}

#[test]
fn shares_are_a_sum() {
    for seed in 0..20 {
        let after = Server::with(|server| {
            (server.cpu_ms, server.delay_ms, server.others) = (1.5, 2.0, 0.8);
            server.waits_ms = vec![("log", 1.5), ("locks", 0.8), ("disk", 0.4)];
        });
        let causes = Causes::of(&Server::usual().captured(seed), &after.captured(99)).unwrap();
        let sum: f64 = causes.causes.iter().map(|cause| cause.share).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{sum}");
        let parts: f64 = causes.parts.iter().map(|part| part.change.difference_s()).sum();
        assert!((parts / causes.time.difference_s() - 1.0).abs() < 1e-9, "{parts}");
    }
}

#[test]
fn incomparable_results_are_refused_with_a_remedy() {
    let capture = Server::usual().captured(1);
    let other = Capture { software: "mariadb".to_owned(), ..capture.clone() };
    let refused = |after: &Capture| Causes::of(&capture, after).unwrap_err().to_string();
    assert!(refused(&other).contains("capture the same server twice"));
    let short = Capture { windows: capture.windows[..3].to_vec(), ..capture.clone() };
    assert!(refused(&short).contains("has 3 windows"), "{}", refused(&short));
    let mut idle = capture.clone();
    idle.windows.iter_mut().for_each(|window| {
        window.sessions.clear();
        window.counts.clear();
    });
    assert!(refused(&idle).contains("no session was at work"));
    idle.windows.iter_mut().for_each(|window| window.ended = 0.0);
    assert!(refused(&idle).contains("while the server has work"));
}

#[test]
fn without_the_kernel_s_account_the_parts_are_those_of_the_server() {
    let hidden = |server: &Server, seed: u64| {
        let mut capture = server.captured(seed);
        capture.windows.iter_mut().for_each(|window| {
            window.counts.retain(|name, _| !name.ends_with("_s"));
        });
        capture
    };
    let slow = Server::with(|server| server.waits_ms[0].1 = 5.0);
    let causes = Causes::of(&hidden(&Server::usual(), 1), &hidden(&slow, 2)).unwrap();
    assert_eq!(first(&causes).parts, [Part::Log]);
    assert!(causes.parts.iter().any(|part| part.part == Part::Working));
}

/// Its series would never end.
#[test]
fn an_interval_of_endless_degrees_is_found() {
    let normal = parts::half(1.0, 1e6, 0.05);
    assert!((normal - 1.96).abs() < 0.01, "{normal}");
    assert_eq!(parts::half(1.0, f64::INFINITY, 0.05), normal);
    assert_eq!(parts::half(1.0, f64::NAN, 0.05), parts::half(1.0, 1.0, 0.05));
}
