//! The loads: threads of a group that spin and yield, processes of one parent, and threads that
//! change their affinity.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use workahead_machine::pin;
use workahead_scheduler::{Load, Window, Work};

/// Turns of a spin between two moves.
const SPIN: u32 = 2_000;

/// Runs until the time is over and prints how many spins were done.
pub(crate) fn run(threads_per_cpu: usize, time: Duration, spins_per_yield: u64) -> Result<()> {
    println!("{} spins", done(Work::Yielding { spins: spins_per_yield }, threads_per_cpu, time)?);
    Ok(())
}

/// The same for threads that answer requests.
pub(crate) fn serve(threads_per_cpu: usize, time: Duration) -> Result<()> {
    println!("{} answers", done(Work::Answering, threads_per_cpu, time)?);
    Ok(())
}

/// Runs threads that never yield and stay on no CPU, and prints what CPU time they had.
pub(crate) fn spin(threads_per_cpu: usize, time: Duration) -> Result<()> {
    let load = Load { work: Work::Spinning, threads: threads_per_cpu, is_pinned: false };
    println!("{} s", load.run(Window { settle: time / 8, time: time / 8 * 7 })?.cpu_s);
    Ok(())
}

fn done(work: Work, threads: usize, time: Duration) -> Result<u64> {
    let load = Load { work, threads, is_pinned: true };
    Ok(load.run(Window { settle: Duration::ZERO, time })?.work)
}

/// Starts a number of processes on each CPU and waits for them: one group by their parent only.
pub(crate) fn fork(children_per_cpu: usize, ms: &str) -> Result<()> {
    let me = std::env::current_exe()?;
    let mut children = Vec::new();
    for cpu in pin::affinity()?.iter() {
        let pinned = pin::among(&[cpu].into_iter().collect(), &pin::affinity()?)?;
        for _ in 0..children_per_cpu {
            children.push(Command::new(&me).args(["work", "1", ms]).spawn()?);
        }
        drop(pinned);
    }
    for mut child in children {
        ensure!(child.wait()?.success(), "a child failed");
    }
    Ok(())
}

/// Threads that move themselves from CPU to CPU, in an order of their own.
pub(crate) fn roam(threads: usize, time: Duration) -> Result<()> {
    let cpus: Vec<usize> = pin::affinity()?.iter().collect();
    let start = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let cpus = &cpus;
            scope.spawn(move || {
                let mut turn = thread;
                while start.elapsed() < time {
                    turn += thread + 1;
                    let _ = pin::stay_on(&[cpus[turn % cpus.len()]].into_iter().collect());
                    for spin in 0..SPIN {
                        std::hint::black_box(spin);
                    }
                }
            });
        }
    });
    Ok(())
}
