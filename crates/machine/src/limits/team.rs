//! Threads that start at the same moment, each on its own CPU.
//!
//! The bandwidth of two threads together can only be measured while both run, so all wait at a
//! line that opens when the last has arrived. Waiting spins (a sleeping thread would start tens of
//! microseconds late) and soon lets others run, since this machine may have fewer idle CPUs than
//! threads.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::cpus::CpuSet;
use crate::error::Error;
use crate::pin;

/// Runs `work(i)` on `cpus[i]`, all at once, and returns the results in the same order.
///
/// # Errors
/// When a CPU is not allowed or the system has no more threads; nothing is run then.
pub(crate) fn together<T, W>(cpus: &[usize], allowed: &CpuSet, work: W) -> Result<Vec<T>, Error>
where
    T: Send,
    W: Fn(usize) -> T + Sync,
{
    if let &[cpu] = cpus {
        let _pinned = pin::to(cpu, allowed)?;
        return Ok(vec![work(0)]);
    }
    let line = StartingLine { missing: AtomicUsize::new(cpus.len()), is_whole: OnceLock::new() };
    let member = |i: usize| {
        let pinned = pin::to(cpus[i], allowed);
        // Arrive in any case: the others wait.
        line.arrive_and_wait().then(|| pinned.map(|_pinned| work(i)))
    };
    thread::scope(|scope| {
        let member = &member;
        let spawn = |i| thread::Builder::new().spawn_scoped(scope, move || member(i));
        let threads = (0..cpus.len()).map(spawn).collect::<Result<Vec<_>, _>>();
        line.is_whole.get_or_init(|| threads.is_ok());
        let results = threads.map_err(Error::Thread)?.into_iter();
        let results = results.filter_map(|thread| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        results.collect()
    })
}

struct StartingLine {
    missing: AtomicUsize,
    /// Whether the system had a thread for each member.
    is_whole: OnceLock<bool>,
}

impl StartingLine {
    /// Whether they start.
    fn arrive_and_wait(&self) -> bool {
        if !self.is_whole.wait() {
            return false;
        }
        self.missing.fetch_sub(1, Ordering::AcqRel);
        let mut spins = 0u32;
        while self.missing.load(Ordering::Acquire) > 0 {
            spins += 1;
            if spins.is_multiple_of(1 << 10) {
                thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;

    #[test]
    fn results_come_in_the_order_of_the_cpus() {
        let machine = Machine::here();
        let cpus = machine.cpus_for(machine.cpus.allowed.len().min(4)).unwrap();
        let on = together(&cpus, &machine.cpus.allowed, |i| (i, pin::affinity().unwrap())).unwrap();
        for (i, (own, affinity)) in on.into_iter().enumerate() {
            assert_eq!(own, i);
            assert_eq!(affinity, CpuSet::from_iter([cpus[i]]));
        }
        assert_eq!(pin::affinity().unwrap(), machine.cpus.allowed);
    }

    #[test]
    fn a_cpu_that_is_not_allowed_is_an_error_not_a_hang() {
        let allowed = pin::affinity().unwrap();
        let cpu = allowed.first().unwrap();
        let error = together(&[cpu, 50_000], &allowed, |i| i).unwrap_err();
        assert!(error.to_string().contains("CPU 50000 is not allowed"), "{error}");
    }
}
