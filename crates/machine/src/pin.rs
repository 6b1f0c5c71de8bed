//! Keeping a thread on one logical CPU.
//!
//! The set of allowed CPUs is an argument, never guessed: a thread that is already pinned would
//! otherwise take its own pin for the limit of the process, and the kernel alone would let a thread
//! leave the CPUs that `taskset` gave it.

use std::io;
use std::marker::PhantomData;

use crate::cpus::{CPUS_MAX, CpuSet};
use crate::error::Error;

/// The calling thread stays on one CPU while this lives; dropping it gives the thread back the
/// CPUs it had. Not `Send`: a pin belongs to the thread that made it.
///
/// ```
/// use workahead_machine::pin;
/// let allowed = pin::affinity().unwrap();
/// let cpu = allowed.first().unwrap();
/// {
///     let _pinned = pin::to(cpu, &allowed).unwrap();
///     assert_eq!(pin::affinity().unwrap().len(), 1);
/// }
/// assert_eq!(pin::affinity().unwrap(), allowed);
/// ```
#[derive(Debug)]
#[must_use = "the thread is released as soon as this is dropped"]
pub struct PinGuard {
    before: CpuSet,
    _thread_bound: PhantomData<*const ()>,
}

/// Moves the calling thread to `cpu` and keeps it there.
///
/// # Errors
/// When `cpu` is not in `allowed`, or the system refuses.
pub fn to(cpu: usize, allowed: &CpuSet) -> Result<PinGuard, Error> {
    if !allowed.contains(cpu) {
        return Err(Error::CpuNotAllowed { cpu, allowed: allowed.clone() });
    }
    let before = affinity()?;
    set_affinity(&CpuSet::from_iter([cpu])).map_err(|source| Error::Pin { cpu, source })?;
    Ok(PinGuard { before, _thread_bound: PhantomData })
}

impl Drop for PinGuard {
    fn drop(&mut self) {
        // Refused only when every CPU of the old set has since been taken away; the kernel then
        // chooses for us, and there is nobody to tell.
        let _ = set_affinity(&self.before);
    }
}

/// Moves the calling thread to a set of CPUs and keeps it among them; whatever it starts in the
/// meantime, threads and processes, is born there (sched_setaffinity(2)).
///
/// # Errors
/// When a CPU is not in `allowed`, or the system refuses.
pub fn among(cpus: &CpuSet, allowed: &CpuSet) -> Result<PinGuard, Error> {
    let stray = cpus.iter().find(|&cpu| !allowed.contains(cpu));
    let Some(first) = cpus.first().filter(|_| stray.is_none()) else {
        let cpu = stray.unwrap_or(CPUS_MAX);
        return Err(Error::CpuNotAllowed { cpu, allowed: allowed.clone() });
    };
    let before = affinity()?;
    set_affinity(cpus).map_err(|source| Error::Pin { cpu: first, source })?;
    Ok(PinGuard { before, _thread_bound: PhantomData })
}

const WORD_BITS: usize = u64::BITS as usize;

/// Keeps the calling thread, and every thread and process it starts from now on, on these CPUs.
///
/// # Errors
/// When the set is empty, or the system refuses it.
pub fn stay_on(cpus: &CpuSet) -> Result<(), Error> {
    set_affinity(cpus).map_err(|source| Error::StayOn { cpus: cpus.clone(), source })
}

/// The CPUs the calling thread may run on now (sched_getaffinity(2)).
///
/// # Errors
/// When the system does not tell.
pub fn affinity() -> Result<CpuSet, Error> {
    // The kernel wants room for every CPU it was built for, and says only "invalid" when there is
    // too little: ask with more.
    let mut words = 16;
    loop {
        let mut mask = vec![0u64; words];
        let bytes = words * size_of::<u64>();
        // SAFETY: writes at most `bytes` bytes into `mask`, which has that many.
        let status = unsafe { libc::sched_getaffinity(0, bytes, mask.as_mut_ptr().cast()) };
        if status == 0 {
            let has = |cpu: &usize| mask[cpu / WORD_BITS] >> (cpu % WORD_BITS) & 1 == 1;
            return Ok((0..words * WORD_BITS).filter(has).collect());
        }
        let refusal = io::Error::last_os_error();
        if refusal.raw_os_error() != Some(libc::EINVAL) || words * WORD_BITS >= CPUS_MAX {
            return Err(Error::Affinity(refusal));
        }
        words *= 2;
    }
}

/// The CPU the calling thread runs on now: unless it is pinned, it may be another the moment after.
/// `None` where the system does not tell (getcpu(2)).
#[must_use]
pub fn current_cpu() -> Option<usize> {
    // SAFETY: the call takes nothing, and gives a number or -1.
    usize::try_from(unsafe { libc::sched_getcpu() }).ok()
}

fn set_affinity(cpus: &CpuSet) -> io::Result<()> {
    let words = cpus.iter().last().unwrap_or(0) / WORD_BITS + 1;
    let mut mask = vec![0u64; words];
    for cpu in cpus.iter() {
        mask[cpu / WORD_BITS] |= 1 << (cpu % WORD_BITS);
    }
    // SAFETY: reads `words` words from `mask`, which has that many.
    let status =
        unsafe { libc::sched_setaffinity(0, words * size_of::<u64>(), mask.as_ptr().cast()) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_that_is_not_allowed_is_refused_by_name() {
        let allowed: CpuSet = "0-1,4".parse().unwrap();
        let message = to(9, &allowed).unwrap_err().to_string();
        assert_eq!(message, "CPU 9 is not allowed: choose one of 0-1,4");
    }

    #[test]
    fn what_a_thread_starts_is_born_among_its_cpus() {
        let allowed = affinity().unwrap();
        let last = CpuSet::from_iter(allowed.iter().last());
        let pinned = among(&last, &allowed).unwrap();
        let born = std::thread::spawn(|| affinity().unwrap()).join().unwrap();
        assert_eq!(born, last);
        drop(pinned);
        assert_eq!(affinity().unwrap(), allowed);
        let stray = CpuSet::from_iter([allowed.first().unwrap(), CPUS_MAX - 1]);
        assert!(among(&stray, &allowed).is_err());
        assert!(among(&CpuSet::default(), &allowed).is_err());
    }

    #[test]
    fn a_cpu_the_system_does_not_have_is_refused() {
        let wishful = CpuSet::from_iter([CPUS_MAX - 1]);
        let before = affinity().unwrap();
        let message = to(CPUS_MAX - 1, &wishful).unwrap_err().to_string();
        assert!(message.contains("choose another CPU"), "{message}");
        assert_eq!(affinity().unwrap(), before);
    }

    #[test]
    fn what_a_thread_starts_stays_where_the_thread_does() {
        let allowed = affinity().unwrap();
        let last = CpuSet::from_iter(allowed.iter().last());
        let stayed = last.clone();
        let inherited = std::thread::spawn(move || {
            stay_on(&stayed).unwrap();
            std::thread::spawn(|| affinity().unwrap()).join().unwrap()
        });
        assert_eq!(inherited.join().unwrap(), last);
        assert_eq!(affinity().unwrap(), allowed);
        assert!(stay_on(&CpuSet::default()).is_err());
    }

    #[test]
    fn pins_nest_and_are_undone_in_order() {
        let allowed = affinity().unwrap();
        let (first, last) = (allowed.first().unwrap(), allowed.iter().last().unwrap());
        let outer = to(first, &allowed).unwrap();
        let inner = to(last, &allowed).unwrap();
        assert_eq!(affinity().unwrap(), CpuSet::from_iter([last]));
        assert_eq!(current_cpu(), Some(last));
        drop(inner);
        assert_eq!(affinity().unwrap(), CpuSet::from_iter([first]));
        drop(outer);
        assert_eq!(affinity().unwrap(), allowed);
    }
}
