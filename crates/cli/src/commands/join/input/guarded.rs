//! Decoders of other people's bytes. One that panics is an error like any other: what it was given
//! is damaged.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    static DECODING: Cell<bool> = const { Cell::new(false) };
}

/// Runs a decoder, which is not used again after an error.
pub(crate) fn guarded<T>(decode: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    silence();
    let before = DECODING.replace(true);
    let decoded = panic::catch_unwind(AssertUnwindSafe(decode));
    DECODING.set(before);
    decoded.unwrap_or_else(|_| Err(anyhow::anyhow!("its parts contradict each other")))
}

/// Nothing is printed of a panic that is caught here.
fn silence() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |about| {
            if !DECODING.get() {
                usual(about);
            }
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error() {
        assert_eq!(guarded(|| Ok(1)).unwrap(), 1);
        let says = guarded::<()>(|| panic!("index out of bounds")).unwrap_err().to_string();
        assert_eq!(says, "its parts contradict each other");
        assert!(!DECODING.get());
    }
}
