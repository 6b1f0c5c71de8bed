//! Test loads, of threads of one aggregation group with a number pinned to each CPU: those that
//! spin and yield (the paper's sysbench memory program, which yields after each pass over its
//! block), and those that sleep until a request comes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

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
    pinned_threads(threads_per_cpu, time, || {
        spin(SPIN * spins_per_yield);
        std::thread::yield_now();
        spins_per_yield
    })
}

/// The same for threads that sleep for 3 ms and answer, which takes a spin: returns the answers.
///
/// # Errors
///
/// If the allowed CPUs are unknown.
pub fn request_load(
    threads_per_cpu: usize,
    time: Duration,
) -> Result<u64, workahead_machine::Error> {
    pinned_threads(threads_per_cpu, time, || {
        std::thread::sleep(Duration::from_millis(3));
        spin(SPIN);
        1
    })
}

fn spin(turns: u64) {
    for turn in 0..turns {
        std::hint::black_box(turn);
    }
}

/// Repeats a piece of work on every CPU until the time is over; returns the sum of what it gives.
fn pinned_threads(
    threads_per_cpu: usize,
    time: Duration,
    work: impl Fn() -> u64 + Sync,
) -> Result<u64, workahead_machine::Error> {
    let (start, done) = (Instant::now(), AtomicU64::new(0));
    let cpus: Vec<usize> = pin::affinity()?.iter().collect();
    std::thread::scope(|scope| {
        for cpu in cpus {
            for _ in 0..threads_per_cpu {
                let (done, work) = (&done, &work);
                scope.spawn(move || {
                    let here: CpuSet = [cpu].into_iter().collect();
                    if pin::stay_on(&here).is_err() {
                        return;
                    }
                    // Each looks at the clock: threads that another one has to end would never end
                    // if they kept it from running.
                    while start.elapsed() < time {
                        done.fetch_add(work(), Ordering::Relaxed);
                    }
                });
            }
        }
    });
    Ok(done.load(Ordering::Relaxed))
}
