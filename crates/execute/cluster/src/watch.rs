//! Whether all executors that a query began with are still there.
//!
//! Ballista takes up what a dead executor left behind, but not always: its adaptive planner can
//! lose the stage that a remade file belongs to, and then the query waits for ever. Its rows come
//! when the last stage is done and not before, so a query can be run again without harm: an
//! answer is given up as soon as the scheduler counts fewer executors than before the query.

use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use workahead_sql::session::Answer;

use crate::{Address, ClusterError, probe};

/// A question of some hundred bytes, beside a query.
const LOOK: Duration = Duration::from_millis(200);

/// The number of executors before a query. Counted later, an executor that was lost in between
/// would not be missed.
#[derive(Debug, Clone)]
pub struct Counted {
    address: Address,
    executors: usize,
}

impl Counted {
    pub(crate) fn now(address: Address) -> Result<Self, ClusterError> {
        let executors = probe::executors(&address)?;
        Ok(Self { address, executors })
    }

    /// A scheduler that does not answer is not a reason to start again.
    fn are_fewer(&self) -> bool {
        probe::executors(&self.address).is_ok_and(|executors| executors < self.executors)
    }

    /// Has the answer given up once there are fewer executors.
    ///
    /// # Errors
    /// When there can't be a thread for it.
    pub fn watch(self, answer: &Answer) -> Result<Watch, ClusterError> {
        let (end, ended) = mpsc::channel();
        let (counted, given_up) = (self.clone(), answer.given_up());
        let look = move || {
            while ended.recv_timeout(LOOK) == Err(mpsc::RecvTimeoutError::Timeout) {
                if counted.are_fewer() {
                    given_up.store(true, Ordering::Relaxed);
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("watch".into()).spawn(look);
        let thread = Some(thread.map_err(ClusterError::Threads)?);
        Ok(Watch { counted: self, end: Some(end), thread })
    }
}

/// Looks at the cluster from time to time, until it is dropped.
#[derive(Debug)]
pub struct Watch {
    counted: Counted,
    end: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Whether an executor was lost; asked of a query that failed, it waits until the scheduler
    /// could know.
    #[must_use]
    pub fn lost(&self) -> bool {
        (0..5).any(|look| {
            if look > 0 {
                std::thread::sleep(LOOK);
            }
            self.counted.are_fewer()
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.end = None;
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
