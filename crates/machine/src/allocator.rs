//! Makes the C library's allocator give memory back.
//!
//! glibc raises the size from which an allocation is a mapping of its own with every such one that
//! is freed (mallopt(3), `M_MMAP_THRESHOLD`), up to 32 MiB, and keeps a heap for each thread: after
//! a while buffers of megabytes leave holes between small ones, and a process holds half as much
//! again as it uses. Who has promised to stay within a limit can't have that.

/// From this size on an allocation is a mapping of its own, gone when it is freed.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MAPPED_BYTES: libc::c_int = 256 << 10;

/// Has freed memory go back to the system from here on, for some system calls more: to be called
/// before threads are started. False where the allocator has no such setting; nothing is wrong
/// then.
pub fn give_back_what_is_freed() -> bool {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        let settings = [
            (libc::M_MMAP_THRESHOLD, MAPPED_BYTES),
            (libc::M_TRIM_THRESHOLD, MAPPED_BYTES),
            (libc::M_ARENA_MAX, 1),
        ];
        // SAFETY: mallopt(3) takes two integers, and may be called at any time: memory that was
        // given out before stays valid.
        settings.into_iter().all(|(what, value)| unsafe { libc::mallopt(what, value) } == 1)
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    false
}

#[cfg(test)]
mod tests {
    #[test]
    fn memory_is_there_before_and_after() {
        let before = vec![1_u8; 100_000];
        let reported = super::give_back_what_is_freed();
        // Another in glibc's place, such as a sanitizer's, need not listen.
        assert!(!reported || cfg!(all(target_os = "linux", target_env = "gnu")));
        let after = vec![2_u8; 100_000];
        assert_eq!((before[99_999], after[99_999]), (1, 2));
    }
}
