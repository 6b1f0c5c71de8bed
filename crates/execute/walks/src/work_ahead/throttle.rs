//! The instruction that a helper executes while there is nothing to load, by the CPU's features.
//!
//! A helper that spins takes slots of the pipeline from its main thread. Each of these gives them
//! up for a while (Ghost Threading, MICRO 2025, throttles its helpers by `serialize`, and finds a
//! helper without a throttle slower than none):
//!
//! ```text
//! pause      every x86: 10 to 140 cycles, by its maker and year; aarch64 `isb`, `yield`
//! serialize  x86 from 2023: fetches nothing until all before it has retired
//! tpause     x86 with WAITPKG: a light sleep until a time
//! umwait     the same, until then or until a line is written: the slot, as the main thread posts
//! wfe        aarch64: until a line held exclusively is written, or the kernel's event stream
//! ```

/// An instruction that gives the core to the sibling for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Throttle {
    /// `pause`, once.
    Pause,
    /// `serialize`.
    Serialize,
    /// `tpause`, for [`WAIT_TICKS`].
    TimedPause,
    /// `umonitor` and `umwait`, for [`WAIT_TICKS`] at most.
    MonitorWait,
    /// `ldxr` and `wfe`.
    WaitForEvent,
}

/// Ticks of the time-stamp counter: about two accesses to memory, in which a slot fills again.
const WAIT_TICKS: u64 = 500;

impl Throttle {
    /// All of them, as studies spell them.
    pub const ALL: [(&'static str, Throttle); 5] = [
        ("pause", Throttle::Pause),
        ("serialize", Throttle::Serialize),
        ("tpause", Throttle::TimedPause),
        ("umwait", Throttle::MonitorWait),
        ("wfe", Throttle::WaitForEvent),
    ];

    /// As studies spell it.
    #[must_use]
    pub fn name(self) -> &'static str {
        Throttle::ALL.iter().find(|(_, throttle)| *throttle == self).map_or("?", |(name, _)| name)
    }

    /// Whether this CPU has it.
    #[must_use]
    pub fn is_available(self) -> bool {
        let (serialize, waitpkg) = features();
        match self {
            Throttle::Pause => true,
            Throttle::Serialize => serialize,
            Throttle::TimedPause | Throttle::MonitorWait => waitpkg,
            Throttle::WaitForEvent => cfg!(target_arch = "aarch64"),
        }
    }

    /// The one of this CPU that gives up most.
    #[must_use]
    pub fn best() -> Throttle {
        let by_worth = [Throttle::MonitorWait, Throttle::WaitForEvent, Throttle::Serialize];
        by_worth.into_iter().find(|throttle| throttle.is_available()).unwrap_or(Throttle::Pause)
    }

    /// Waits once. `line` is what the main thread writes next; it is looked at and not read.
    ///
    /// One that this CPU lacks is a pause.
    #[inline(always)]
    pub(super) fn wait(self, line: *const u8) {
        if self == Throttle::Pause || cfg!(any(loom, miri)) {
            return super::helper::pause();
        }
        self.wait_longer(line);
    }

    #[inline(never)]
    fn wait_longer(self, line: *const u8) {
        match (self, self.is_available()) {
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            (Throttle::Serialize, true) => x86_64::serialize(),
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            (Throttle::TimedPause, true) => x86_64::tpause(WAIT_TICKS),
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            (Throttle::MonitorWait, true) => x86_64::umwait(line, WAIT_TICKS),
            #[cfg(all(target_arch = "aarch64", not(miri)))]
            (Throttle::WaitForEvent, true) => aarch64::wfe(line),
            _ => {
                let _ = (line, WAIT_TICKS);
                super::helper::pause();
            }
        }
    }
}

/// Whether there are `serialize` and WAITPKG (Intel's manual, volume 2, CPUID leaf 7).
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn features() -> (bool, bool) {
    static FOUND: std::sync::OnceLock<(bool, bool)> = std::sync::OnceLock::new();
    *FOUND.get_or_init(|| {
        // SAFETY: every x86-64 has the instruction; leaf 0 says whether there is a leaf 7.
        #[allow(unused_unsafe, reason = "safe in later versions of the standard library")]
        let leaf = |leaf| unsafe { std::arch::x86_64::__cpuid_count(leaf, 0) };
        if leaf(0).eax < 7 {
            return (false, false);
        }
        let found = leaf(7);
        (found.edx & 1 << 14 != 0, found.ecx & 1 << 5 != 0)
    })
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn features() -> (bool, bool) {
    (false, false)
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86_64 {
    use std::arch::asm;

    /// No fetch before everything older has retired.
    #[inline(always)]
    pub(super) fn serialize() {
        // SAFETY: the CPU has it, and it changes no register and no memory.
        unsafe { asm!("serialize", options(nostack, preserves_flags)) }
    }

    fn deadline(ticks: u64) -> (u32, u32) {
        // SAFETY: every x86-64 has a time-stamp counter.
        #[allow(unused_unsafe, reason = "safe in later versions of the standard library")]
        let until = unsafe { std::arch::x86_64::_rdtsc() }.wrapping_add(ticks);
        ((until >> 32) as u32, until as u32)
    }

    /// C0.1, the lighter of its two sleeps.
    const LIGHT: u32 = 1;

    #[inline(always)]
    pub(super) fn tpause(ticks: u64) {
        let (high, low) = deadline(ticks);
        // SAFETY: the CPU has it; it writes flags alone.
        unsafe {
            asm!("tpause {0:e}", in(reg) LIGHT, in("edx") high, in("eax") low, options(nostack));
        }
    }

    #[inline(always)]
    pub(super) fn umwait(line: *const u8, ticks: u64) {
        let (high, low) = deadline(ticks);
        // SAFETY: the CPU has both; an address is watched and not read, and flags are written.
        unsafe {
            asm!(
                "umonitor {0}", "umwait {1:e}",
                in(reg) line, in(reg) LIGHT, in("edx") high, in("eax") low, options(nostack)
            );
        }
    }
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
mod aarch64 {
    use std::arch::asm;

    /// Until the line is written, or the kernel's event stream ticks (10 kHz on Linux).
    #[inline(always)]
    pub(super) fn wfe(line: *const u8) {
        // SAFETY: the caller's line is mapped: it is a slot or a counter that both threads share.
        unsafe {
            asm!(
                "ldxrb {value:w}, [{line}]", "wfe",
                value = out(reg) _, line = in(reg) line, options(nostack, preserves_flags)
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whichever_the_cpu_has_returns() {
        let line = [0_u8; 64];
        for (name, throttle) in Throttle::ALL {
            assert_eq!(throttle.name(), name);
            for _ in 0..100 {
                throttle.wait(line.as_ptr());
            }
        }
        assert!(Throttle::best().is_available() && Throttle::Pause.is_available());
    }
}
