//! Work by several threads, of which the caller's is one.

use std::thread;

use crate::JoinError;

/// Does work on so many threads, and gives what each came to, in their order.
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
