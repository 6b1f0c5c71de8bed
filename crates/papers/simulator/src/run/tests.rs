//! Threads in the order of time, and in turn.

mod scaling;

use super::*;
use crate::op::{Dependence, Op};
use crate::preset::tests::small;

fn computes(times: u64, uops: u32) -> Thread<'static> {
    let script = (0..times).map(move |_| Op::Compute { uops });
    Thread { script: Box::new(script), space: 0, attends: false }
}

/// A run that nobody stops.
fn to_end(
    processor: &mut Processor,
    threads: Vec<Thread<'_>>,
    placement: &[usize],
    slices: Slices,
) -> RunResult {
    run(processor, threads, placement, slices, &AtomicBool::new(false))
}

#[test]
fn cores_do_not_disturb_each_other() {
    let mut processor = Processor::new(&small()).unwrap();
    let ran =
        to_end(&mut processor, vec![computes(10, 3), computes(5, 4)], &[0, 2], Slices::default());
    assert_eq!(
        (ran.cpus[0].cycles(), ran.cpus[2].cycles(), ran.cpus[1].cycles()),
        (30.0, 20.0, 0.0)
    );
    assert_eq!((ran.ticks, ran.threads[1].finished), (30 * 60, 20 * 60));
    assert_eq!(ran.threads[0].counts.uops, 30);
}

#[test]
fn threads_of_a_cpu_take_turns() {
    let mut processor = Processor::new(&small()).unwrap();
    let slices = Slices { quantum: 10.0, switch: 3.0 };
    let ran = to_end(&mut processor, vec![computes(20, 1), computes(20, 1)], &[1, 1], slices);
    // Two switches: after 10 cycles of the first and 10 of the second; then the first has finished,
    // and the second continues at once.
    assert_eq!(ran.threads[0].finished / 60, 10 + 3 + 10 + 3 + 10);
    assert_eq!(ran.ticks / 60, 46);
    assert_eq!(ran.cpus[1].uops, 40);
    assert_eq!((ran.threads[0].counts.uops, ran.threads[1].counts.uops), (20, 20));
}

/// Another address space finds no translations; the same one does.
#[test]
fn address_spaces_cost_translations() {
    let misses = |space| {
        let mut processor = Processor::new(&small()).unwrap();
        let thread = |space| {
            let loads = (0..20).map(|_| Op::Load { address: 0, bytes: 8, after: Dependence::None });
            Thread { script: Box::new(loads), space, attends: false }
        };
        let slices = Slices { quantum: 9.0, switch: 0.0 };
        let ran = to_end(&mut processor, vec![thread(0), thread(space)], &[0, 0], slices);
        ran.cpus[0].data_tlb_misses
    };
    assert_eq!(misses(0), 1);
    assert!(misses(1) > 5, "{}", misses(1));
}

/// A helper that never ends doesn't keep the run from ending.
#[test]
fn a_helper_is_not_waited_for() {
    let mut processor = Processor::new(&small()).unwrap();
    let helper = Thread { attends: true, ..computes(u64::MAX, 1) };
    let ran = to_end(&mut processor, vec![computes(10, 1), helper], &[0, 1], Slices::default());
    assert_eq!(ran.ticks / 60, 10);
    assert!(ran.threads[1].counts.uops >= 9);
}

/// A thread that sets the flag at its hundredth operation, far from its end.
fn stopping(stop: &AtomicBool) -> Thread<'_> {
    let script = (0..100_000).map(move |at| {
        if at == 100 {
            stop.store(true, Ordering::Relaxed);
        }
        Op::Compute { uops: 1 }
    });
    Thread { script: Box::new(script), space: 0, attends: false }
}

/// For a single thread no other's turn comes, of several on CPUs of their own each does one
/// operation in turn, and of two on a CPU one waits.
#[test]
fn a_run_ends_when_it_is_stopped() {
    for placement in [&[0][..], &[0, 1, 2], &[1, 1]] {
        let stop = AtomicBool::new(false);
        let threads = placement.iter().map(|_| stopping(&stop)).collect();
        let mut processor = Processor::new(&small()).unwrap();
        let ran = run(&mut processor, threads, placement, Slices::default(), &stop);
        let uops: u64 = ran.cpus.iter().map(|counts| counts.uops).sum();
        assert!((100..1000).contains(&uops), "{placement:?}: {uops}");
        assert_eq!(uops, ran.threads.iter().map(|thread| thread.counts.uops).sum::<u64>());
    }
}
