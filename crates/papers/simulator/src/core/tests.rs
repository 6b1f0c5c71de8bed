//! Operations by hand, one structure at a time.

mod sharing;

use super::*;
use crate::counts::Cause;
use crate::preset::tests::small;

const FAR: u64 = 1 << 20;

fn load(address: u64) -> Op {
    Op::Load { address, bytes: 4, after: Dependence::None }
}

fn chained(address: u64) -> Op {
    Op::Load { address, bytes: 4, after: Dependence::Load }
}

/// Cycles of operations on CPU 0, and their counts.
fn run(edit: impl FnOnce(&mut Preset), ops: &[Op]) -> (f64, Counts) {
    let mut preset = small();
    edit(&mut preset);
    let mut processor = Processor::new(&preset).unwrap();
    for op in ops {
        processor.run(0, *op);
    }
    processor.drain(0);
    let counts = processor.counts(0);
    (counts.cycles(), counts)
}

/// L1 takes 2 cycles, L2 10, memory 100, a translation 20; one operation begins a cycle.
#[test]
fn without_overlap_every_access_is_waited_for() {
    let (cycles, counts) = run(|_| {}, &[load(0), load(4), load(64), Op::Compute { uops: 7 }]);
    // A page and a line; the nearest cache; a line of the same page.
    assert_eq!(cycles, (1.0 + 20.0 + 100.0) + (1.0 + 2.0) + (1.0 + 100.0) + 7.0);
    assert_eq!((counts.loads, counts.uops, counts.data_tlb_misses), (3, 10, 1));
    assert_eq!(counts.non_overlapped_cycles(), cycles);
    assert_eq!(counts.stalled[Cause::Memory as usize] / 60, 2 * 98);
    assert_eq!(counts.stalled[Cause::DataTlb as usize] / 60, 20);
}

/// Two independent lines overlap; two of a chain come one after the other.
#[test]
fn a_window_overlaps_what_is_independent() {
    let warm = [load(0), Op::Pause { cycles: 1000 }];
    let cycles = |ops: [Op; 2]| {
        let all = [warm.to_vec(), ops.to_vec()].concat();
        run(|preset| preset.core.window = 64, &all).0
            - run(|preset| preset.core.window = 64, &warm).0
    };
    // The bus is taken for 8 cycles by the first.
    assert_eq!(cycles([load(128), load(256)]), 1.0 + 8.0 + 100.0);
    assert_eq!(cycles([load(128), chained(256)]), 1.0 + 100.0 + 100.0);
}

/// A chain of hits in the nearest cache proceeds at its latency, 2 cycles each, however wide the
/// machine; that is computation, not a stall.
#[test]
fn chains_go_at_the_pace_of_the_nearest_cache() {
    let warm = [load(0), Op::Pause { cycles: 1000 }];
    let loaded = [warm.to_vec(), vec![chained(0); 200]].concat();
    let run = |ops: &[Op]| run(|preset| (preset.core.window, preset.core.width) = (8, 4), ops);
    let ((before, _), (after, counts)) = (run(&warm), run(&loaded));
    assert!((after - before - 2.0 * 200.0).abs() <= 1.0, "{}", after - before);
    let stalled: Ticks = counts.stalled.iter().sum();
    assert_eq!(cycles_of(counts.computation + stalled), after);
}

/// A window of 4 holds a load and three operations; the fourth waits for the load.
#[test]
fn a_full_window_waits() {
    let ops = [load(0), Op::Compute { uops: 1 }, Op::Compute { uops: 1 }, Op::Compute { uops: 1 }];
    let last = [ops.to_vec(), vec![Op::Compute { uops: 1 }]].concat();
    let unfinished = |window, ops: &[Op]| {
        let mut preset = small();
        preset.core.window = window;
        let mut processor = Processor::new(&preset).unwrap();
        ops.iter().for_each(|op| processor.run(0, *op));
        processor.counts(0).cycles()
    };
    assert_eq!(unfinished(4, &ops), 4.0);
    assert_eq!(unfinished(4, &last), 121.0 + 1.0);
    assert_eq!(unfinished(5, &last), 5.0);
}

/// A load buffer of 2 has no room for a third load until the first, with its translation, is done
/// at 121; an operation that is not a load begins.
#[test]
fn a_full_load_buffer_waits() {
    let unfinished = |loads, ops: &[Op]| {
        let mut preset = small();
        (preset.core.window, preset.core.loads) = (64, loads);
        let mut processor = Processor::new(&preset).unwrap();
        ops.iter().for_each(|op| processor.run(0, *op));
        processor.counts(0).cycles()
    };
    let three = [load(0), load(4), load(8)];
    assert_eq!([2, 3, 0].map(|loads| unfinished(loads, &three)), [121.0, 3.0, 3.0]);
    let computing = [load(0), load(4), Op::Compute { uops: 9 }];
    assert_eq!(unfinished(2, &computing), 11.0);
}

/// A chain of hits takes the latency of its hits, not the time to begin them.
#[test]
fn chains_of_hits_are_waited_for() {
    let ops: Vec<Op> = std::iter::once(load(0)).chain((0..500).map(|_| chained(4))).collect();
    let (cycles, counts) = run(|preset| preset.core.window = 16, &ops);
    assert_eq!(cycles, 1.0 + 20.0 + 100.0 + 500.0 * 2.0);
    // While the first was outstanding, no more began than the window holds.
    assert_eq!(counts.stalled.iter().sum::<Ticks>() / 60, 20 + 98 - 13);
}

/// Overlap never makes a run longer than no overlap, and not shorter than its computation (A19).
#[test]
fn overlap_lowers_measured_below_non_overlapped() {
    let ops: Vec<Op> = (0..400_u64).map(|at| load(at * 7919 % 64 * 4096 + at % 64 * 64)).collect();
    let (blocking, one) = run(|_| {}, &ops);
    let (overlapped, two) = run(|preset| preset.core.window = 64, &ops);
    assert!((one.non_overlapped_cycles() / blocking - 1.0).abs() < 0.01);
    assert!(overlapped < 0.7 * two.non_overlapped_cycles(), "{overlapped} {blocking}");
    assert!(overlapped >= cycles_of(two.computation));
}

fn cycles_of(ticks: Ticks) -> f64 {
    crate::ticks::cycles(ticks)
}

#[test]
fn stores_wait_in_their_buffer() {
    let store = |line: u64| Op::Store { address: line * 64, bytes: 8 };
    let ops = [store(0), store(1), store(2)];
    let begun = |stores| {
        let mut preset = small();
        (preset.core.window, preset.core.stores) = (64, stores);
        let mut processor = Processor::new(&preset).unwrap();
        ops.iter().for_each(|op| processor.run(0, *op));
        processor.counts(0)
    };
    assert_eq!(begun(3).cycles(), 3.0);
    // The third waits until the first, with its translation, is done.
    assert_eq!(begun(2).cycles(), 121.0);
    assert_eq!(begun(2).stalled[Cause::Stores as usize] / 60, 118);
}

/// With one fill buffer the second waits for the first, as on a bus that takes one request.
#[test]
fn lines_on_their_way_are_limited() {
    let ops = [load(0), load(64)];
    let cycles = |outstanding| {
        run(|preset| (preset.core.window, preset.core.outstanding) = (64, outstanding), &ops)
    };
    let (two, _) = cycles(2);
    let (one, counts) = cycles(1);
    assert!(one > two + 70.0, "{one} {two}");
    assert!(counts.penalty[Cause::Outstanding as usize] > 0);
}

/// By hand: two loads of two pages are known at 1 and 2. Walks take 20 cycles, and lines come 100
/// later: at 121 and 129, after the first has left the bus for 8. With one walker the second walk
/// begins at 21.
#[test]
fn page_walks_are_limited() {
    let cycles = |walkers| {
        let edit = |preset: &mut Preset| (preset.core.window, preset.core.walkers) = (64, walkers);
        run(edit, &[load(0), load(FAR)])
    };
    assert_eq!([0, 1, 2].map(|walkers| cycles(walkers).0), [129.0, 141.0, 129.0]);
    let penalty = |walkers| cycles(walkers).1.penalty[Cause::DataTlb as usize] / 60;
    assert_eq!([penalty(0), penalty(1)], [20 + 20, 20 + 39]);
}

/// The threads of a core share its walker: the sibling's walk is waited for.
#[test]
fn siblings_share_a_page_walker() {
    let begun = |walkers| {
        let mut preset = small();
        (preset.cores, preset.threads) = (1, 2);
        (preset.core.window, preset.core.walkers) = (64, walkers);
        let mut processor = Processor::new(&preset).unwrap();
        processor.run(0, load(0));
        processor.run(1, load(FAR));
        processor.counts(1).penalty[Cause::DataTlb as usize] / 60
    };
    assert_eq!([begun(0), begun(1)], [20, 39]);
}

#[test]
fn hints_bring_lines_unless_their_page_is_unknown() {
    let cycles = |drops| {
        let ops = [
            load(0),
            Op::Announce { address: 64, hint: true },
            Op::Announce { address: FAR, hint: true },
            Op::Compute { uops: 300 },
            load(64),
            load(FAR),
        ];
        run(|preset| preset.core.drops_hints = drops, &ops)
    };
    let (kept, counts) = cycles(false);
    assert_eq!((counts.hints, counts.hints_dropped), (2, 0));
    let (dropped, counts) = cycles(true);
    assert_eq!(counts.hints_dropped, 1);
    // One line and one translation more.
    assert_eq!(dropped - kept, 98.0 + 20.0);
}

/// Two threads that only compute have half of the front each.
#[test]
fn siblings_share_the_front() {
    let mut preset = small();
    (preset.cores, preset.threads) = (1, 2);
    let mut processor = Processor::new(&preset).unwrap();
    for _ in 0..100 {
        processor.run(0, Op::Compute { uops: 1 });
        processor.run(1, Op::Compute { uops: 1 });
    }
    assert_eq!(processor.counts(0).cycles() + 1.0, processor.counts(1).cycles());
    assert_eq!(processor.counts(1).cycles(), 200.0);
    assert_eq!(processor.counts(1).stalled[Cause::Sibling as usize] / 60, 100);
}

/// A split window holds half as much; alone, a thread has all of it (A4).
#[test]
fn split_structures_are_whole_for_one_thread() {
    let overlapped = |threads| {
        let mut preset = small();
        (preset.cores, preset.threads, preset.core.window) = (1, threads, 8);
        preset.core.window_sharing = Sharing::Split;
        let mut processor = Processor::new(&preset).unwrap();
        processor.run(0, load(0));
        for line in 1..5 {
            processor.run(0, Op::Compute { uops: 1 });
            processor.run(0, load(line * 64));
        }
        processor.drain(0);
        processor.counts(0).cycles()
    };
    assert!(overlapped(2) > overlapped(1) + 50.0, "{} {}", overlapped(2), overlapped(1));
}

/// A TLB of four entries per thread keeps four pages of each; a shared one four of both; a split
/// one two of each.
#[test]
fn translations_are_shared_or_not() {
    let misses = |sharing, pages: u64| {
        let mut preset = small();
        (preset.cores, preset.threads) = (1, 2);
        preset.tlb.data.entries = 4;
        preset.tlb.data.threads = sharing;
        let mut processor = Processor::new(&preset).unwrap();
        for round in 0..3 {
            for page in 0..pages {
                for cpu in 0..2 {
                    processor.run(cpu, load((page << 12) + ((cpu as u64) << 24) + round * 64));
                }
            }
        }
        processor.counts(0).data_tlb_misses
    };
    assert_eq!(misses(Sharing::Duplicated, 4), 4);
    assert_eq!((misses(Sharing::Shared, 4), misses(Sharing::Shared, 2)), (12, 2));
    assert_eq!((misses(Sharing::Split, 4), misses(Sharing::Split, 2)), (12, 2));
}

#[test]
fn instructions_are_waited_for() {
    let (cycles, counts) = run(
        |preset| {
            preset.tlb.instructions =
                Some(crate::preset::TlbSizes { cost: 30.0, ..preset.tlb.data.clone() });
        },
        &[
            Op::Fetch { address: FAR, bytes: 64, density: 512 },
            Op::Compute { uops: 4 },
            Op::Fetch { address: FAR, bytes: 64, density: 512 },
            Op::Compute { uops: 4 },
        ],
    );
    assert_eq!(cycles, 30.0 + 98.0 + 4.0 + 4.0);
    assert_eq!(counts.code_tlb_misses, 1);
    assert_eq!(counts.stalled[Cause::Code as usize] / 60, 98);
}

#[test]
fn wrong_guesses_are_paid_for() {
    let branch = |taken| Op::Branch { at: 64, taken, back: true };
    let (cycles, counts) = run(
        |preset| {
            preset.branches = Some(crate::preset::Branches {
                targets: 512,
                ways: 4,
                history: 8,
                mispredict: 15.0,
                history_sharing: Sharing::Shared,
                targets_sharing: Sharing::Shared,
                histories: crate::preset::Histories::Global,
                history_tagged: false,
            });
        },
        &[branch(true), branch(false)],
    );
    // The second is in the buffer; its counter, of another history, is uncertain and predicts not
    // taken.
    assert_eq!((counts.branches, counts.target_misses), (2, 1));
    assert_eq!(cycles, 2.0 + 15.0 * counts.mispredicts as f64);
}
