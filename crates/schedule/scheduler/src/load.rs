//! A test load: threads of one aggregation group that spin and yield, a number pinned to each CPU
//! (the paper's sysbench memory program, which yields after each pass over its block).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use workahead_machine::{CpuSet, pin};

/// Turns of a spin between two yields: some tens of microseconds.
const SPIN: u64 = 20_000;

/// Runs for `time` on all allowed CPUs; returns the number of spins. `spins_per_yield` lie between
/// two yields.
///
/// # Errors
///
/// If the allowed CPUs are unknown.
pub fn group_load(
    threads_per_cpu: usize,
    time: Duration,
    spins_per_yield: u64,
) -> Result<u64, workahead_machine::Error> {
    let over = AtomicBool::new(false);
    let spins = AtomicU64::new(0);
    let cpus: Vec<usize> = pin::affinity()?.iter().collect();
    std::thread::scope(|scope| {
        for cpu in cpus {
            for _ in 0..threads_per_cpu {
                let (over, spins) = (&over, &spins);
                scope.spawn(move || {
                    let here: CpuSet = [cpu].into_iter().collect();
                    if pin::stay_on(&here).is_err() {
                        return;
                    }
                    while !over.load(Ordering::Relaxed) {
                        for turn in 0..SPIN * spins_per_yield {
                            std::hint::black_box(turn);
                        }
                        spins.fetch_add(spins_per_yield, Ordering::Relaxed);
                        std::thread::yield_now();
                    }
                });
            }
        }
        std::thread::sleep(time);
        over.store(true, Ordering::Relaxed);
    });
    Ok(spins.load(Ordering::Relaxed))
}
