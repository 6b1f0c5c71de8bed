//! The helper's load: a real load, not a hint, whose value nobody uses.
//!
//! The paper's `temp += *((int*)p)` (§4). A prefetch may be dropped, on a TLB miss for one; a load
//! may not. The line may be written by the main thread at the same moment (the output record of a
//! join index), which in Rust's memory model no ordinary or volatile load may race with: the load
//! is therefore an instruction whose result never enters the program.

/// Loads one byte at `address` and forgets it.
///
/// # Safety
/// `address` must lie in memory that stays mapped during the call.
#[inline(always)]
pub unsafe fn touch(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: the caller keeps the page mapped; the loaded value is discarded.
    unsafe {
        std::arch::asm!(
            "movzx {value:e}, byte ptr [{address}]",
            value = out(reg) _, address = in(reg) address,
            options(nostack, preserves_flags, readonly)
        );
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!(
            "ldrb {value:w}, [{address}]",
            value = out(reg) _, address = in(reg) address,
            options(nostack, preserves_flags, readonly)
        );
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    // SAFETY: as above; elsewhere a relaxed atomic load is the nearest thing.
    unsafe {
        let byte = std::sync::atomic::AtomicU8::from_ptr(address.cast_mut());
        std::hint::black_box(byte.load(std::sync::atomic::Ordering::Relaxed));
    }
}
