//! Detection of executors lost during a query.
//!
//! Ballista recomputes the results of a dead executor, but not always: its adaptive planner can
//! lose the stage that a recomputed file belongs to, and then the query waits for ever. A query
//! returns rows only after its last stage, so it can be restarted before: an answer is abandoned as
//! soon as the scheduler counts fewer executors than before the query.

use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use workahead_sql::session::Answer;

use crate::{Address, ClusterError, readiness};

/// Each check is a request of some hundred bytes.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// The number of executors before a query. A later count would miss an executor that was lost in
/// between.
#[derive(Debug, Clone)]
pub struct ExecutorCount {
    address: Address,
    executors: usize,
}

impl ExecutorCount {
    pub(crate) fn now(address: Address) -> Result<Self, ClusterError> {
        let executors = readiness::executors(&address)?;
        Ok(Self { address, executors })
    }

    /// Whether executors were lost; false if the scheduler does not answer.
    fn has_dropped(&self) -> bool {
        readiness::executors(&self.address).is_ok_and(|executors| executors < self.executors)
    }

    /// Abandons the answer once there are fewer executors.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn watch(self, answer: &Answer) -> Result<ExecutorWatch, ClusterError> {
        let (end, ended) = mpsc::channel();
        let (count, abandoned) = (self.clone(), answer.abandon_flag());
        let check = move || {
            while ended.recv_timeout(CHECK_INTERVAL) == Err(mpsc::RecvTimeoutError::Timeout) {
                if count.has_dropped() {
                    abandoned.store(true, Ordering::Relaxed);
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("watch".into()).spawn(check);
        let thread = Some(thread.map_err(ClusterError::Threads)?);
        Ok(ExecutorWatch { count: self, end: Some(end), thread })
    }
}

/// Checks the cluster at intervals, until it is dropped.
#[derive(Debug)]
pub struct ExecutorWatch {
    count: ExecutorCount,
    end: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ExecutorWatch {
    /// Whether an executor was lost, for a query that failed: waits until the scheduler can have
    /// noticed.
    #[must_use]
    pub fn lost(&self) -> bool {
        (0..5).any(|check| {
            if check > 0 {
                std::thread::sleep(CHECK_INTERVAL);
            }
            self.count.has_dropped()
        })
    }
}

impl Drop for ExecutorWatch {
    fn drop(&mut self) {
        self.end = None;
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
