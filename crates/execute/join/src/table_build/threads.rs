//! Runs work on several threads, one of them the caller's.

use std::thread;

use crate::JoinError;

/// Runs `work` on a number of threads and returns the results in order.
pub(super) fn on_threads<T: Send>(
    threads: usize,
    work: impl Fn(usize) -> Result<T, JoinError> + Sync,
) -> Result<Vec<T>, JoinError> {
    let work = &work;
    thread::scope(|scope| {
        let spawned = |number| {
            let spawned = thread::Builder::new().spawn_scoped(scope, move || work(number));
            spawned.map_err(|source| JoinError::Threads { threads, source })
        };
        let others: Vec<_> = (1..threads).map(spawned).collect();
        let own = work(0);
        let others = others.into_iter().map(|thread| match thread?.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        std::iter::once(own).chain(others).collect()
    })
}
