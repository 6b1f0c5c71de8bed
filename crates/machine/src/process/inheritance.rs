//! State that processes inherit from this one, which starts them.

/// Keeps files that are open now from them, except the three standard ones. An old kernel
/// (before Linux 5.11) does not.
pub fn keep_files() {
    #[cfg(target_os = "linux")]
    // SAFETY: close_range(2) takes numbers only; with this flag it closes nothing in this process.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
    }
}

/// Lets them, and this process, write to a terminal in whose background they run, where that would
/// stop them otherwise (`stty tostop`).
pub fn write_in_background() {
    // SAFETY: signal(2) with a disposition of its own runs no code of ours.
    unsafe {
        libc::signal(libc::SIGTTOU, libc::SIG_IGN);
    }
}
