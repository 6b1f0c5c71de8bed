//! Waiting for a bounded time, on runtimes without timers too: whose runtime it is, we don't know.

use std::pin::pin;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use futures::future::{Either, select};
use tokio::sync::oneshot;

/// The output of a future, if it comes in time. While it is waited for, a thread sleeps.
pub(crate) async fn within<T>(time: Duration, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    if let std::task::Poll::Ready(done) = futures::poll!(&mut future) {
        return Some(done);
    }
    let (late, is_late) = oneshot::channel();
    // Dropped with this future, which wakes the thread.
    let (_waiting, waits) = channel::<()>();
    let sleep = move || {
        if waits.recv_timeout(time) == Err(RecvTimeoutError::Timeout) {
            let _ = late.send(());
        }
    };
    thread::Builder::new().spawn(sleep).ok()?;
    match select(future, is_late).await {
        Either::Left((done, _)) => Some(done),
        Either::Right(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use futures::executor::block_on;
    use futures::future::pending;

    use super::*;

    #[test]
    fn what_comes_in_time_is_there_and_what_does_not_is_given_up() {
        assert_eq!(block_on(within(Duration::ZERO, async { 1 })), Some(1));
        assert_eq!(block_on(within(Duration::from_millis(10), pending::<()>())), None);
        let (sender, receiver) = oneshot::channel();
        thread::spawn(move || sender.send(2));
        let start = Instant::now();
        assert_eq!(block_on(within(Duration::from_secs(60), receiver)), Some(Ok(2)));
        assert!(start.elapsed() < Duration::from_secs(30));
    }
}
