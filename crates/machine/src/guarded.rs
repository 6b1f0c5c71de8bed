//! Decoders of other people's bytes. One that panics is an error like any other: what it was given
//! is damaged.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    static DECODING: Cell<bool> = const { Cell::new(false) };
}

/// A decoder that panicked: the parts of what it was given contradict each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("its parts contradict each other")]
pub struct Contradiction;

/// Runs a decoder, whose state is not used again after an error. Nothing is printed of its panic.
///
/// # Errors
/// When it panics.
pub fn guarded<T>(decode: impl FnOnce() -> T) -> Result<T, Contradiction> {
    silence();
    let before = DECODING.replace(true);
    let decoded = panic::catch_unwind(AssertUnwindSafe(decode));
    DECODING.set(before);
    decoded.map_err(|_| Contradiction)
}

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
        assert_eq!(guarded(|| 1), Ok(1));
        assert_eq!(guarded(|| -> u8 { panic!("index out of bounds") }), Err(Contradiction));
        assert!(!DECODING.get());
    }
}
