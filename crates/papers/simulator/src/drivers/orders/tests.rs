//! The whole engine: consistency, latches, and the paper's trends.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;

use super::latch::{LatchId, Mode};
use super::*;
use crate::op::Script as _;
use crate::preset::Preset;

fn options(index: Index) -> Options {
    Options {
        index,
        work: Work::Transactions,
        sizes: Sizes { warehouses: 2, items: 400, customers: 60 },
        clients: 12,
        buffer_pages: 120,
        warmup: 10,
        transactions: 30,
        seed: 1998,
    }
}

fn ordered(machine: &str, options: &Options) -> OrderEntryResult {
    let preset = Preset::named(machine).unwrap();
    let mut processor = Processor::new(&preset).unwrap();
    let cpus: Vec<usize> = (0..preset.cpus() as usize).collect();
    run_orders(&mut processor, &cpus, options, &AtomicBool::new(false)).unwrap()
}

/// The conditions hold on every machine and with both kinds of index, and both give the same answer
/// (A52).
#[test]
fn answers_do_not_depend_on_the_order_of_clients() {
    for machine in ["ppro-quad/4p-1m", "e3-1240/ht-on"] {
        let one = ordered(machine, &options(Index::Latched));
        let other = ordered(machine, &options(Index::LockFree));
        assert_eq!(one.answer, other.answer, "{machine}");
        assert!(one.answer.rows > 1200, "orders and payments: {:?}", one.answer);
        assert_eq!(one.events.restarts, 0, "latched searches never begin again");
        assert!(one.events.page_reads > 0 && one.events.switches > 50);
        assert!(one.instructions > 30 * 30_000, "{}", one.instructions);
    }
    // Another seed has another answer.
    let other = Options { seed: 7, ..options(Index::Latched) };
    let answers = [options(Index::Latched), other].map(|it| ordered("ppro-quad/2p-1m", &it).answer);
    assert_ne!(answers[0], answers[1]);
    // The answer doesn't depend on the number of clients.
    assert_eq!(answers[0], ordered("ppro-quad/1p-256k", &options(Index::Latched)).answer);
}

/// Clients are in the middle of transactions, with latches and locks: that is not an error.
#[test]
fn a_stopped_run_is_not_checked() {
    let preset = Preset::named("ppro-quad/4p-1m").unwrap();
    let mut processor = Processor::new(&preset).unwrap();
    let options = Options { transactions: 20_000, ..options(Index::Latched) };
    let stop = AtomicBool::new(false);
    let ordered = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(20));
            stop.store(true, Ordering::Relaxed);
        });
        run_orders(&mut processor, &[0, 1, 2, 3], &options, &stop)
    });
    assert_eq!(ordered.unwrap().answer, Answer::default());
}

/// What a client does next is with its server: of thousands of clients it would fill the memory.
#[test]
fn clients_keep_no_operations() {
    let engine = Rc::new(RefCell::new(Engine::new(&options(Index::Latched))));
    engine.borrow_mut().limit = 3;
    let (session, port) = Session::new(&engine, 0);
    let life = Box::pin(session.live());
    let clients = Rc::new(RefCell::new(Clients::default()));
    clients.borrow_mut().ready.push_back(Client { port: Rc::clone(&port), life });
    clients.borrow_mut().alive = 1;
    let mut server = Server::new(engine, clients);
    let mut done = 0;
    while server.next(done).is_some() {
        done += 1;
    }
    assert!(done > 10_000, "{done}");
    assert_eq!(port.ops.borrow().capacity(), 0);
}

#[test]
fn clients_and_frames_take_memory_too() {
    let of = |clients, buffer_pages| {
        Options { clients, buffer_pages, ..options(Index::Latched) }.bytes()
    };
    assert_eq!(of(1_012, 120) - of(12, 120), 1_000 * 16_384);
    assert_eq!(of(12, 1_120) - of(12, 120), 112_000);
    let all = Options { warmup: u64::MAX, transactions: u64::MAX, ..options(Index::Latched) };
    assert_eq!(all.bytes(), u64::MAX);
}

#[test]
fn the_same_run_is_the_same() {
    let run = || {
        let OrderEntryResult { driven, instructions, answer, events } =
            ordered("ppro-quad/4p-512k", &options(Index::Latched));
        (driven.run, driven.found, driven.bus, instructions, answer, events)
    };
    assert_eq!(run(), run());
}

/// Probes find all keys, while other clients insert more.
#[test]
fn probes_of_a_growing_index_agree() {
    for work in [Work::Reads, Work::Mixed] {
        let sizes = Sizes { warehouses: 1, items: 3000, customers: 30 };
        let run = |index| {
            let options = Options { work, sizes, warmup: 0, transactions: 120, ..options(index) };
            ordered("ppro-quad/4p-256k", &options)
        };
        let (latched, free) = (run(Index::Latched), run(Index::LockFree));
        assert_eq!(latched.answer, free.answer);
        if work == Work::Reads {
            // Latch-free readers write no shared line.
            let taken = |ordered: &OrderEntryResult| {
                ordered.driven.found.iter().map(|found| found.invalidated).sum::<u64>()
            };
            assert!(5 * taken(&free) < taken(&latched), "{} {}", taken(&free), taken(&latched));
        } else {
            assert!(free.events.restarts > 0, "somebody changed what another read");
        }
    }
}

/// Checks that an exclusive latch has one holder; counts exclusive holders, and the most holders
/// of one latch.
fn check_holders(events: &[engine::LatchEvent]) -> (usize, usize) {
    let mut holders: BTreeMap<LatchId, Vec<(Mode, u32)>> = BTreeMap::new();
    let (mut alone, mut most) = (0, 0);
    let mut before = 0;
    for engine::LatchEvent { now, latch, mode, client, taken } in events {
        assert!(*now >= before, "the machine's time goes on");
        before = *now;
        let here = holders.entry(*latch).or_default();
        if *taken {
            here.push((*mode, *client));
        } else {
            let position = here.iter().position(|holder| *holder == (*mode, *client));
            here.remove(position.expect("only who has it gives it up"));
        }
        let writers = here.iter().filter(|(mode, _)| *mode == Mode::Exclusive).count();
        assert!(writers == 0 || here.len() == 1, "{latch:?}: {here:?}");
        alone += writers;
        most = most.max(here.len());
    }
    assert!(holders.values().all(Vec::is_empty), "all are given up");
    (alone, most)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    /// However clients, CPUs and latencies interleave them.
    #[test]
    fn latches_have_one_holder(
        seed in any::<u64>(),
        clients in 1_u32..20,
        latency in 20_u32..400,
        cpus in 1_u32..6,
        lock_free in any::<bool>(),
        work in prop_oneof![Just(Work::Transactions), Just(Work::Mixed)],
    ) {
        let preset = Preset::named("ppro-quad").unwrap();
        let preset = preset.with_override(&format!("cores={cpus}")).unwrap();
        let preset = preset.with_override(&format!("memory.latency={latency}")).unwrap();
        let mut processor = Processor::new(&preset).unwrap();
        let index = if lock_free { Index::LockFree } else { Index::Latched };
        let sizes = Sizes { warehouses: 1, items: 150, customers: 30 };
        let options = Options {
            work, sizes, clients, seed, warmup: 5, transactions: 40, ..options(index)
        };
        let engine = Rc::new(RefCell::new(Engine::new(&options)));
        engine.borrow_mut().latch_events = Some(Vec::new());
        let all: Vec<usize> = (0..cpus as usize).collect();
        run_in(&mut processor, &all, &engine, &AtomicBool::new(false));
        let engine = engine.borrow();
        prop_assert_eq!(engine.check(), Ok(()));
        let (alone, _) = check_holders(engine.latch_events.as_ref().unwrap());
        prop_assert!(alone > 100);
    }
}

/// A22: a larger L2 has fewer misses and a less busy bus; a larger share of misses hits modified
/// lines of other CPUs, as with more CPUs. A24: latency rises with CPUs.
#[test]
fn the_trends_of_the_quad() {
    let run = |cpus: u32, l2: &str| {
        let sizes = Sizes { warehouses: cpus, items: 2000, customers: 120 };
        let each = u64::from(cpus);
        let options = Options {
            sizes,
            clients: 6 * cpus,
            buffer_pages: 800 * cpus,
            warmup: 8 * each,
            transactions: 10 * each,
            ..options(Index::Latched)
        };
        let ordered = ordered(&format!("ppro-quad/{cpus}p-{l2}"), &options);
        let bus = ordered.driven.bus;
        let reads = bus.reads as f64 / ordered.instructions as f64;
        let used = bus.utilisation(ordered.driven.run.ticks).unwrap();
        (reads, bus.dirty as f64 / bus.reads as f64, used, bus.memory_latency().unwrap())
    };
    let by = [1, 2, 4].map(|cpus| ["256k", "512k", "1m"].map(|l2| run(cpus, l2)));
    for sizes in &by {
        for pair in sizes.windows(2) {
            assert!(pair[1].0 < pair[0].0, "misses: {by:?}");
            assert!(pair[1].2 < pair[0].2, "utilisation: {by:?}");
            assert!(pair[1].1 >= pair[0].1, "dirty share: {by:?}");
        }
    }
    for size in 0..3 {
        assert_eq!(by[0][size].1, 0.0, "alone, nobody else changes anything");
        assert!(by[1][size].1 > 0.0 && by[2][size].1 > by[1][size].1, "dirty share: {by:?}");
        assert!(by[1][size].2 > by[0][size].2 && by[2][size].2 > by[1][size].2, "{by:?}");
        assert!(by[1][size].3 > by[0][size].3 && by[2][size].3 > by[1][size].3, "{by:?}");
    }
}
