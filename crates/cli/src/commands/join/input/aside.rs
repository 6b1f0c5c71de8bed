//! Decoders that may be busy for long, on a thread that nobody waits for once the user has
//! interrupted.

use std::io;
use std::panic::resume_unwind;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use workahead_machine::guarded::{Contradiction, guarded};

use super::interruptible::check;

/// Waited for a decoder before the next look whether the user has interrupted.
const WAIT: Duration = Duration::from_millis(50);

/// Runs a decoder. Its thread ends with the process if it is left behind; a panic goes on here.
pub(super) fn aside<T: Send + 'static>(
    interrupted: &AtomicBool,
    decode: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let (done, decoded) = sync_channel(1);
    // Nobody may be waiting any more.
    thread::Builder::new().spawn(move || drop(done.send(guarded(decode))))?;
    loop {
        match decoded.recv_timeout(WAIT) {
            Ok(Ok(decoded)) => return Ok(decoded),
            Ok(Err(panic)) => resume_unwind(Box::new(panic)),
            Err(RecvTimeoutError::Timeout) => check(interrupted)?,
            Err(RecvTimeoutError::Disconnected) => resume_unwind(Box::new(Contradiction)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn an_interruption_leaves_a_decoder_behind() {
        let flag = AtomicBool::new(false);
        assert_eq!(aside(&flag, || 7).unwrap(), 7);
        flag.store(true, Ordering::Relaxed);
        let (end, never) = channel::<()>();
        let says = aside(&flag, move || never.recv()).unwrap_err().to_string();
        assert_eq!(says, "interrupted");
        drop(end);
    }

    #[test]
    fn a_panic_is_one_here() {
        let flag = AtomicBool::new(false);
        let panicked = guarded(|| aside(&flag, || -> u8 { panic!("row 7") }).unwrap());
        assert_eq!(panicked, Err(Contradiction));
    }
}
