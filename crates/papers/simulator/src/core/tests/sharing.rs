//! A47: the effect of each structure's sharing, all else equal. Two threads of one core.

use super::*;
use crate::preset::{Branches, TlbSizes};

const ALL: [Sharing; 3] = [Sharing::Shared, Sharing::Duplicated, Sharing::Split];

/// Two threads of one core; memory has no queue.
fn two(edit: impl FnOnce(&mut Preset)) -> Processor {
    let mut preset = small();
    (preset.cores, preset.threads) = (1, 2);
    (preset.memory.transfer, preset.memory.message) = (0.0, 0.0);
    edit(&mut preset);
    Processor::new(&preset).unwrap()
}

/// Number of operations that a CPU begins before one waits for long.
fn begun(processor: &mut Processor, cpu: usize, ops: impl Iterator<Item = Op>) -> usize {
    let mut waits = |op: &Op| {
        let before = processor.now(cpu);
        processor.run(cpu, *op);
        processor.now(cpu) - before > 60 * 20
    };
    let mut ops = ops.take(100);
    ops.position(|op| waits(&op)).unwrap_or(100)
}

fn store(address: u64) -> Op {
    Op::Store { address, bytes: 8 }
}

/// A window of eight holds a load and seven more; split, half of it; shared, what the sibling
/// leaves: a load and four more.
#[test]
fn windows() {
    let room = |sharing, is_busy: bool| {
        let mut processor = two(|preset| {
            (preset.core.window, preset.core.window_sharing) = (8, sharing);
        });
        if is_busy {
            processor.run(1, load(FAR));
            processor.run(1, Op::Compute { uops: 4 });
        }
        let one = Op::Compute { uops: 1 };
        begun(&mut processor, 0, std::iter::once(load(0)).chain(std::iter::repeat(one)))
    };
    assert_eq!(ALL.map(|sharing| room(sharing, false)), [8, 8, 4]);
    assert_eq!(ALL.map(|sharing| room(sharing, true)), [3, 8, 4]);
}

/// Alone, a thread has all of a split window of eight and four stores where siblings halt.
#[test]
fn halting_siblings_leave_their_part() {
    let room = |halts, is_busy| {
        let mut processor = two(|preset| {
            (preset.core.window, preset.core.window_sharing) = (8, Sharing::Split);
            (preset.core.stores, preset.core.stores_sharing) = (4, Sharing::Split);
            preset.core.halts = halts;
        });
        processor.set_busy(1, is_busy);
        let begun = begun(&mut processor, 0, {
            let one = Op::Compute { uops: 1 };
            std::iter::once(load(0)).chain(std::iter::repeat(one))
        });
        (begun, processor.cpus[0].stores)
    };
    assert_eq!([room(true, false), room(true, true)], [(8, 4), (4, 2)]);
    assert_eq!([room(false, false), room(false, true)], [(4, 2), (4, 2)]);
}

/// A thread with a full window leaves the front end to its sibling.
#[test]
fn a_waiting_thread_leaves_the_front_end() {
    let mut processor = two(|preset| {
        (preset.core.window, preset.core.window_sharing) = (4, Sharing::Duplicated);
    });
    processor.run(1, load(FAR));
    (0..4).for_each(|_| processor.run(1, Op::Compute { uops: 1 }));
    assert!(processor.now(1) > 60 * 100);
    (0..50).for_each(|_| processor.run(0, Op::Compute { uops: 1 }));
    // Four operations of the sibling, which began before it had to wait.
    assert_eq!(processor.counts(0).cycles(), 54.0);
    assert_eq!(processor.counts(0).stalled[Cause::Sibling as usize] / 60, 4);
}

/// A buffer of four stores; the sibling has three in it.
#[test]
fn store_buffers() {
    let room = |sharing, is_busy: bool| {
        let mut processor = two(|preset| {
            preset.core.window = 64;
            (preset.core.stores, preset.core.stores_sharing) = (4, sharing);
        });
        let busy = if is_busy { 3 } else { 0 };
        (0..busy).for_each(|line| processor.run(1, store(FAR + line * 64)));
        begun(&mut processor, 0, (0..).map(|line| store(line * 64)))
    };
    // Split, the sibling itself waits, for its third.
    assert_eq!(ALL.map(|sharing| room(sharing, false)), [4, 4, 2]);
    assert_eq!([Sharing::Shared, Sharing::Duplicated].map(|sharing| room(sharing, true)), [1, 4]);
}

/// Four fill buffers; the sibling uses two of them.
#[test]
fn lines_on_their_way() {
    let waited = |sharing, is_busy: bool| {
        let mut processor = two(|preset| {
            preset.core.window = 64;
            (preset.core.outstanding, preset.core.outstanding_sharing) = (4, sharing);
            preset.tlb.data.cost = 0.0;
        });
        let busy = if is_busy { 2 } else { 0 };
        (0..busy).for_each(|line| processor.run(1, load(FAR + line * 64)));
        let lines = (0..4).map(|line| {
            let before = processor.counts(0).penalty[Cause::Outstanding as usize];
            processor.run(0, load(line * 64));
            processor.counts(0).penalty[Cause::Outstanding as usize] > before
        });
        lines.take_while(|waited| !waited).count()
    };
    assert_eq!(ALL.map(|sharing| waited(sharing, false)), [4, 4, 2]);
    assert_eq!(ALL.map(|sharing| waited(sharing, true)), [2, 4, 2]);
}

/// A46: one outstanding line against four. Independent loads gain, a chain doesn't.
#[test]
fn one_outstanding_line_or_four() {
    let cycles = |variant: &str, after| {
        let preset = Preset::named(&format!("ppro-quad/1p-256k+{variant}")).unwrap();
        let mut processor = Processor::new(&preset).unwrap();
        for line in 0..20_000_u64 {
            let address = line * 7919 % 20_000 * 32;
            processor.run(0, Op::Load { address, bytes: 4, after });
        }
        processor.drain(0);
        let latency = processor.hierarchy.bus.counts.memory_latency().unwrap();
        (processor.counts(0).cycles(), latency)
    };
    let both = |after| (cycles("outstanding-1", after), cycles("outstanding-4", after));
    let (one, four) = both(Dependence::None);
    assert!(one.0 > 1.2 * four.0, "{one:?} {four:?}");
    // They wait for each other instead, as their latency shows.
    assert!(four.1 > one.1, "{one:?} {four:?}");
    let (one, four) = both(Dependence::Load);
    assert_eq!(one, four);
}

/// The sibling's branches evict this thread's from a shared buffer of four, not from duplicated or
/// split ones.
#[test]
fn target_buffers() {
    let kept = |sharing, is_busy: bool| {
        let mut processor = two(|preset| {
            let mut branches = branches();
            (branches.targets, branches.targets_sharing) = (4, sharing);
            preset.branches = Some(branches);
        });
        let taken = |at| Op::Branch { at, taken: true, back: true };
        let others = if is_busy { 100..104 } else { 0..0 };
        (0..4).for_each(|at| processor.run(0, taken(at)));
        others.for_each(|at| processor.run(1, taken(at)));
        let before = processor.counts(0).target_misses;
        (0..4).rev().for_each(|at| processor.run(0, taken(at)));
        4 - (processor.counts(0).target_misses - before)
    };
    assert_eq!(ALL.map(|sharing| kept(sharing, false)), [4, 4, 2]);
    assert_eq!(ALL.map(|sharing| kept(sharing, true)), [0, 4, 2]);
}

fn branches() -> Branches {
    Branches {
        targets: 64,
        ways: 4,
        history: 1,
        mispredict: 10.0,
        history_sharing: Sharing::Shared,
        targets_sharing: Sharing::Duplicated,
        histories: crate::preset::Histories::Global,
        history_tagged: false,
    }
}

/// Two counters. An always-taken branch uses one of them, and the sibling's never-taken branch the
/// same one if shared; a branch taken every other time needs both.
#[test]
fn histories() {
    let wrong = |sharing, is_busy: bool, period: u64| {
        let mut processor = two(|preset| {
            let history_sharing = sharing;
            preset.branches = Some(Branches { history_sharing, ..branches() });
        });
        for turn in 0..120 {
            processor.run(0, Op::Branch { at: 64, taken: turn % period == 0, back: true });
            if is_busy {
                processor.run(1, Op::Branch { at: 65, taken: false, back: false });
            }
        }
        processor.counts(0).mispredicts > 20
    };
    assert_eq!(ALL.map(|sharing| wrong(sharing, false, 1)), [false, false, false]);
    assert_eq!(ALL.map(|sharing| wrong(sharing, true, 1)), [true, false, false]);
    assert_eq!(ALL.map(|sharing| wrong(sharing, false, 2)), [false, false, true]);
}

fn fetch(address: u64) -> Op {
    Op::Fetch { address, bytes: 4, density: 512 }
}

/// Four translations of instructions: this thread's four pages, and as many of the sibling's.
#[test]
fn instruction_tlbs() {
    let missed = |sharing, is_busy: bool| {
        let mut processor = two(|preset| {
            let entries = 4;
            preset.tlb.instructions =
                Some(TlbSizes { entries, threads: sharing, ..preset.tlb.data.clone() });
        });
        let pages = |from: u64| (from..from + 4).map(|page| fetch(page << 12));
        pages(0).for_each(|op| processor.run(0, op));
        if is_busy {
            pages(64).for_each(|op| processor.run(1, op));
        }
        let before = processor.counts(0).code_tlb_misses;
        pages(0).rev().for_each(|op| processor.run(0, op));
        processor.counts(0).code_tlb_misses - before
    };
    assert_eq!(ALL.map(|sharing| missed(sharing, false)), [0, 0, 2]);
    assert_eq!(ALL.map(|sharing| missed(sharing, true)), [4, 0, 2]);
}

/// Four lines of instructions: evicted by the sibling's, kept, or halved; and shared code is
/// fetched once where the cache is shared.
#[test]
fn instruction_caches() {
    let stalled = |sharing, others: Option<u64>| {
        let mut processor = two(|preset| preset.cache[1].threads = sharing);
        let lines = |from: u64| (from..from + 4).map(|line| fetch(line * 64));
        lines(0).for_each(|op| processor.run(0, op));
        if let Some(from) = others {
            lines(from).for_each(|op| processor.run(1, op));
        }
        let found = |processor: &Processor, cpu: usize| {
            processor.hierarchy.found[cpu].at[crate::hierarchy::AccessKind::Fetch as usize][0]
        };
        let (before, sibling) = (found(&processor, 0), found(&processor, 1));
        lines(0).rev().for_each(|op| processor.run(0, op));
        (found(&processor, 0) - before, sibling)
    };
    assert_eq!(ALL.map(|sharing| stalled(sharing, None).0), [4, 4, 2]);
    assert_eq!(ALL.map(|sharing| stalled(sharing, Some(4)).0), [0, 4, 2]);
    assert_eq!(ALL.map(|sharing| stalled(sharing, Some(0)).1), [4, 0, 0]);
}

/// Tagged lines of the same code are two lines: two of each fill a cache of four, and a store to it
/// invalidates both threads'.
#[test]
fn tagged_lines_are_of_one_thread() {
    let found = |tagged: bool, is_written: bool| {
        let mut processor = two(|preset| preset.cache[1].tagged = tagged);
        let lines = || (0..2).map(|line| fetch(line * 64));
        lines().for_each(|op| processor.run(0, op));
        lines().for_each(|op| processor.run(1, op));
        if is_written {
            (0..2).for_each(|line| processor.run(0, store(line * 64)));
        }
        let at = |processor: &Processor, cpu: usize| {
            processor.hierarchy.found[cpu].at[crate::hierarchy::AccessKind::Fetch as usize][0]
        };
        let before = [0, 1].map(|cpu| at(&processor, cpu));
        lines().for_each(|op| processor.run(1, op));
        (before, at(&processor, 1) - before[1])
    };
    assert_eq!(found(false, false), ([0, 2], 2));
    assert_eq!(found(true, false), ([0, 0], 2));
    assert_eq!([found(true, true).1, found(false, true).1], [0, 0]);
}
