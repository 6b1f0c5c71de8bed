//! Memory that this process really holds, as the kernel counts it (proc(5)): page by page, huge
//! ones whole, only what was touched. To be used by a test that is alone in its process.

use std::fs;

/// The effect of a piece of work on the memory of the process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Growth {
    /// Bytes more than before when it was done (`RssAnon`).
    pub(crate) stays_bytes: usize,
    /// Bytes more than before at the most (`VmHWM`); `None` where the kernel does not let the mark
    /// be set back.
    pub(crate) peak_bytes: Option<usize>,
}

/// Does the work, and weighs what it leaves and what it needed. What it borrows was there before.
pub(crate) fn weighed<T>(work: impl FnOnce() -> T) -> (T, Growth) {
    // `5` sets the high-water mark back to what is resident now (Linux 4.0).
    let is_reset = fs::write("/proc/self/clear_refs", "5").is_ok();
    let before = [status("RssAnon"), status("VmHWM")];
    let made = work();
    let [stays_bytes, peak_bytes] = [status("RssAnon") - before[0], status("VmHWM") - before[1]]
        .map(|more| more.max(0) as usize);
    (made, Growth { stays_bytes, peak_bytes: is_reset.then_some(peak_bytes) })
}

/// A line of `/proc/self/status` in bytes.
fn status(field: &str) -> isize {
    let status = fs::read_to_string("/proc/self/status").expect("a process has a status");
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let kib = line.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<isize>().ok());
    kib.unwrap_or_else(|| panic!("no {field} in /proc/self/status (Linux 4.5)")) << 10
}
