//! Decoders of other people's bytes. One that panics is an error like any other: what it was given
//! is damaged.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether panics of all threads are reported by who waits for them.
static EVERYWHERE: AtomicBool = AtomicBool::new(false);

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

/// Runs what other threads take part in, also such as wait for more of it.
///
/// # Errors
/// When a thread panics and that ends it: with what it says.
pub fn guarded_everywhere<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    silence();
    EVERYWHERE.store(true, Ordering::Relaxed);
    let done = panic::catch_unwind(AssertUnwindSafe(run));
    EVERYWHERE.store(false, Ordering::Relaxed);
    done.map_err(|payload| {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        text.unwrap_or_else(|| "no reason given".to_owned())
    })
}

fn silence() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |about| {
            if !DECODING.get() && !EVERYWHERE.load(Ordering::Relaxed) {
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
        let other = || std::thread::spawn(|| -> u8 { panic!("row 7") }).join();
        let run = || other().map_err(panic::resume_unwind).unwrap_or_default();
        assert_eq!(guarded_everywhere(run), Err("row 7".to_owned()));
        assert_eq!(guarded_everywhere(|| 2), Ok(2));
    }
}
