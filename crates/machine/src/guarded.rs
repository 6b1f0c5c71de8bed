//! Decoders of other people's bytes. One that panics is an error like any other: what it was given
//! is damaged.

use std::any::Any;
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
    done.map_err(|panic| panic_text(panic.as_ref()).unwrap_or("no reason given").to_owned())
}

/// What a panic says, where that is a text.
#[must_use]
pub fn panic_text(panic: &(dyn Any + Send)) -> Option<&str> {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
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
