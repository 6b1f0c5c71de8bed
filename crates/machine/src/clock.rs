//! Wall time and the CPU time of the calling thread, always taken together.
//!
//! Wall time is what a user waits for; a thread's CPU time leaves out the moments in which the
//! system ran something else, so that ratios stay sound on a machine that is not idle. Two clocks
//! that disagree are themselves a finding: the machine was busy.

use std::time::Instant;

/// A counter that ticks at a constant rate on every CPU alike: the time-stamp counter of x86, the
/// generic timer of ARM. Not core cycles: those change with the clock speed.
#[must_use]
pub fn ticks() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction only reads a counter; Linux leaves it open to user programs.
    return Some(unsafe { std::arch::x86_64::_rdtsc() });
    #[cfg(target_arch = "aarch64")]
    {
        let ticks: u64;
        // SAFETY: reads a counter register that Linux leaves open to user programs.
        unsafe {
            std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack));
        }
        return Some(ticks);
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    None
}

/// Seconds of CPU time the calling thread has used so far.
#[must_use]
pub fn thread_cpu_s() -> f64 {
    cpu_s(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Seconds of CPU time all threads of this process have used so far, those that ended included.
#[must_use]
pub fn process_cpu_s() -> f64 {
    cpu_s(libc::CLOCK_PROCESS_CPUTIME_ID)
}

fn cpu_s(clock: libc::clockid_t) -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one `timespec`, which is alive and large enough.
    let status = unsafe { libc::clock_gettime(clock, &raw mut time) };
    // Refused only for an unknown clock, and Linux has had both since 2.6.12.
    assert_eq!(status, 0, "this system has no clock of CPU time");
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// A moment on both clocks.
///
/// ```
/// use workahead_machine::clock::Moment;
/// let start = Moment::now();
/// let sum: u64 = (0..1000).sum();
/// let elapsed = start.elapsed();
/// assert_eq!(sum, 499_500);
/// assert!(elapsed.wall_s > 0.0 && elapsed.cpu_s >= 0.0);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    wall: Instant,
    cpu_s: f64,
}

impl Moment {
    /// Reads both clocks.
    #[must_use]
    pub fn now() -> Self {
        Self { wall: Instant::now(), cpu_s: thread_cpu_s() }
    }

    /// Seconds on the wall since: cheap enough to ask inside a measurement.
    #[must_use]
    pub fn wall_s(&self) -> f64 {
        self.wall.elapsed().as_secs_f64()
    }

    /// The time since. Only the thread that took the moment can ask for its CPU time.
    #[must_use]
    pub fn elapsed(&self) -> ElapsedTime {
        ElapsedTime {
            wall_s: self.wall.elapsed().as_secs_f64(),
            cpu_s: thread_cpu_s() - self.cpu_s,
        }
    }
}

/// A span of time on both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize, serde::Deserialize)]
pub struct ElapsedTime {
    /// Seconds on the wall.
    pub wall_s: f64,
    /// Seconds of the thread's own CPU time.
    pub cpu_s: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_sleeping_thread_uses_no_cpu_time() {
        let start = Moment::now();
        std::thread::sleep(Duration::from_millis(30));
        let elapsed = start.elapsed();
        assert!(elapsed.wall_s >= 0.03);
        assert!(elapsed.cpu_s < elapsed.wall_s / 2.0, "{elapsed:?}");
    }

    #[test]
    fn a_working_thread_uses_cpu_time() {
        let start = Moment::now();
        while start.elapsed().cpu_s < 0.002 {
            std::hint::black_box(0);
        }
        assert!(start.elapsed().wall_s >= 0.002 * 0.9);
    }

    #[test]
    fn other_threads_do_not_count() {
        let start = Moment::now();
        std::thread::spawn(|| {
            let own = Moment::now();
            while own.elapsed().cpu_s < 0.02 {
                std::hint::black_box(0);
            }
        })
        .join()
        .unwrap();
        assert!(start.elapsed().cpu_s < 0.02);
    }
}
