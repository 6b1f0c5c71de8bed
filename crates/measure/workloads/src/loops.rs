//! Loops in the background: one for each CPU, endlessly touching a number of bytes.
//!
//! The paper of 2010 (Yamada et al., section 5.3) lets four of them, of 1 MB each and each bound to
//! a core, run beside the database, to see whether what helps the one harms others: their
//! throughput is passes per second of their own CPU time. A pass adds one to a word of every cache
//! line, so that afterwards each line tells how many passes there were.
//!
//! ```
//! use workahead_machine::pin;
//! use workahead_workloads::loops::Loops;
//! let allowed = pin::affinity()?;
//! let cpus: Vec<usize> = allowed.first().into_iter().collect();
//! let loops = Loops::start(&cpus, 1 << 20, &allowed)?;
//! let ran = loops.stop()?;
//! assert_eq!(ran[0].cpu, cpus[0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use workahead_machine::clock::Moment;
use workahead_machine::pages::{PageBuffer, Pages};
use workahead_machine::{CpuSet, pin};

use crate::WorkloadError;

/// Bytes of the loops of Yamada et al. (2010).
pub const PAPER_BYTES: usize = 1 << 20;

/// Words of a cache line of 64 bytes, of which one is touched.
const LINE_WORDS: usize = 8;

/// Words after which a loop looks whether to stop: 64 MiB, tens of milliseconds.
const PART_WORDS: usize = 8 << 20;

/// Loops of at most this many bytes finish their first pass whatever stops them, well within a
/// second: without one, they have no throughput.
const FIRST_PASS_BYTES: usize = 1 << 30;

/// Loops that run until they are stopped or dropped.
#[derive(Debug)]
pub struct Loops {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Result<LoopRun, WorkloadError>>>,
}

/// The result of a loop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoopRun {
    /// Where.
    pub cpu: usize,
    /// Passes over its bytes.
    pub passes: u64,
    /// Its own CPU time.
    pub cpu_s: f64,
    /// The time that went by.
    pub wall_s: f64,
}

impl LoopRun {
    /// Passes per second of CPU time: what the paper compares.
    #[must_use]
    pub fn passes_per_cpu_s(&self) -> f64 {
        self.passes as f64 / self.cpu_s
    }
}

impl Loops {
    /// Starts a loop on each of the CPUs; all are at work when this returns.
    ///
    /// # Errors
    /// When a CPU is not allowed or memory is refused; those already started have stopped then.
    pub fn start(cpus: &[usize], bytes: usize, allowed: &CpuSet) -> Result<Self, WorkloadError> {
        if bytes < LINE_WORDS * size_of::<u64>() {
            let says = format!("loops over {bytes} bytes: give a cache line of 64 at least");
            return Err(WorkloadError::Memory(says));
        }
        let mut loops = Self { stop: Arc::default(), threads: Vec::new() };
        let (ready, at_work) = mpsc::channel();
        for &cpu in cpus {
            let (stop, allowed, ready) = (loops.stop.clone(), allowed.clone(), ready.clone());
            let run = move || one(cpu, bytes, &allowed, (&stop, ready));
            let named = thread::Builder::new().name(format!("loop on CPU {cpu}"));
            let thread = named.spawn(run);
            loops.threads.push(thread.map_err(|error| WorkloadError::Loop(error.to_string()))?);
        }
        drop(ready);
        // Every loop tells once that it began; one that failed hangs up instead.
        if at_work.iter().take(cpus.len()).count() < cpus.len() {
            return match loops.stop() {
                Err(error) => Err(error),
                Ok(_) => Err(WorkloadError::Loop("it ended before it began".to_owned())),
            };
        }
        Ok(loops)
    }

    /// Stops them; what each did.
    ///
    /// # Errors
    /// When one failed, or its lines do not tell as many passes as it counted.
    pub fn stop(mut self) -> Result<Vec<LoopRun>, WorkloadError> {
        self.stop.store(true, Ordering::Relaxed);
        let joined = self.threads.drain(..).map(|thread| match thread.join() {
            Ok(ran) => ran,
            Err(_) => Err(WorkloadError::Loop("it panicked".to_owned())),
        });
        joined.collect::<Vec<_>>().into_iter().collect()
    }
}

impl Drop for Loops {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // Its work was not queried.
            let _ = thread.join();
        }
    }
}

fn one(
    cpu: usize,
    bytes: usize,
    allowed: &CpuSet,
    (stop, ready): (&AtomicBool, mpsc::Sender<()>),
) -> Result<LoopRun, WorkloadError> {
    let pinned = pin::to(cpu, allowed).map_err(|error| WorkloadError::Loop(error.to_string()))?;
    let words = PageBuffer::<u64>::zeroed(bytes / size_of::<u64>(), Pages::Huge);
    let mut words = words.map_err(|error| WorkloadError::Memory(error.to_string()))?;
    // The listener is only gone when the start failed elsewhere; then a stop follows. It waits for
    // every sender, so none may be kept.
    let _ = ready.send(());
    drop(ready);
    let begun = Moment::now();
    let (passes, cut) = touch(&mut words, bytes <= FIRST_PASS_BYTES, stop);
    let elapsed = begun.elapsed();
    drop(pinned);
    let touched = |at: usize| passes + u64::from(cut.is_some_and(|cut| at < cut));
    let mut lines = words.iter().enumerate().step_by(LINE_WORDS);
    if let Some((at, _)) = lines.find(|(at, word)| **word != touched(*at)) {
        let says = format!("word {at} was not touched in each of {passes} passes");
        return Err(WorkloadError::Loop(says));
    }
    if passes == 0 {
        let says = "it was stopped within its first pass: give fewer `loop_bytes`, or longer \
                    repetitions";
        return Err(WorkloadError::Loop(says.to_owned()));
    }
    Ok(LoopRun { cpu, passes, cpu_s: elapsed.cpu_s, wall_s: elapsed.wall_s })
}

/// Passes until it is stopped, and where that ended one; the first is finished anyway where it is
/// short.
fn touch(words: &mut [u64], first_is_short: bool, stop: &AtomicBool) -> (u64, Option<usize>) {
    let never = AtomicBool::new(false);
    let (mut passes, mut cut) = (0, None);
    while cut.is_none() && (passes == 0 || !stop.load(Ordering::Relaxed)) {
        let stop = if first_is_short && passes == 0 { &never } else { stop };
        cut = pass(std::hint::black_box(&mut *words), stop);
        passes += u64::from(cut.is_none());
    }
    (passes, cut)
}

/// Touches each line; where it ended, if it was stopped meanwhile.
fn pass(words: &mut [u64], stop: &AtomicBool) -> Option<usize> {
    for (part, words) in words.chunks_mut(PART_WORDS).enumerate() {
        if part > 0 && stop.load(Ordering::Relaxed) {
            return Some(part * PART_WORDS);
        }
        for word in words.iter_mut().step_by(LINE_WORDS) {
            *word += 1;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_run_until_stopped_and_tell_what_they_did() {
        let allowed = pin::affinity().unwrap();
        let cpus: Vec<usize> = allowed.iter().take(2).collect();
        let loops = Loops::start(&cpus, 1 << 16, &allowed).unwrap();
        let ran = loops.stop().unwrap();
        assert_eq!(ran.iter().map(|ran| ran.cpu).collect::<Vec<_>>(), cpus);
        for ran in ran {
            assert!(ran.passes > 0 && ran.cpu_s > 0.0 && ran.wall_s > 0.0, "{ran:?}");
            assert_eq!(ran.passes_per_cpu_s(), ran.passes as f64 / ran.cpu_s);
        }
    }

    #[test]
    fn a_pass_ends_within_itself_when_it_is_stopped() {
        let mut words = vec![0; 2 * PART_WORDS + LINE_WORDS];
        assert_eq!(pass(&mut words, &AtomicBool::new(false)), None);
        assert_eq!(pass(&mut words, &AtomicBool::new(true)), Some(PART_WORDS));
        let touched = |word: usize| words[word];
        assert_eq!([0, PART_WORDS - LINE_WORDS, PART_WORDS].map(touched), [2, 2, 1]);
    }

    #[test]
    fn the_first_pass_is_finished_where_it_is_short() {
        let mut words = vec![0; 2 * PART_WORDS];
        let stop = AtomicBool::new(true);
        assert_eq!(touch(&mut words, true, &stop), (1, None));
        assert_eq!(touch(&mut words, false, &stop), (0, Some(PART_WORDS)));
        // Far more than it can touch before it is stopped.
        let allowed = pin::affinity().unwrap();
        let cpus: Vec<usize> = allowed.iter().take(1).collect();
        let ran = Loops::start(&cpus, 256 << 20, &allowed).unwrap().stop().unwrap();
        assert!(ran[0].passes > 0, "{ran:?}");
    }

    #[test]
    fn a_cpu_that_is_not_allowed_stops_the_others() {
        let allowed = pin::affinity().unwrap();
        let stranger = allowed.iter().last().unwrap() + 1;
        let cpus = [allowed.first().unwrap(), stranger];
        let error = Loops::start(&cpus, 1 << 16, &allowed).unwrap_err().to_string();
        assert!(error.contains("is not allowed"), "{error}");
        assert!(Loops::start(&cpus[..1], 8, &allowed).is_err());
        drop(Loops::start(&cpus[..1], 1 << 12, &allowed).unwrap());
    }
}
