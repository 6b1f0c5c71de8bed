//! The load: a process of sibling threads, so many pinned to each CPU, which spin and yield (the
//! paper's sysbench memory program, changed to yield after each block).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use workahead_machine::{CpuSet, pin};

/// Turns of a spin between two yields: some tens of microseconds.
const SPIN: u32 = 20_000;

/// Runs until the time is over and prints how many spins were done.
pub(crate) fn run(threads_per_cpu: usize, time: Duration) -> Result<()> {
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
                        for turn in 0..SPIN {
                            std::hint::black_box(turn);
                        }
                        spins.fetch_add(1, Ordering::Relaxed);
                        std::thread::yield_now();
                    }
                });
            }
        }
        std::thread::sleep(time);
        over.store(true, Ordering::Relaxed);
    });
    println!("{} spins", spins.load(Ordering::Relaxed));
    Ok(())
}
