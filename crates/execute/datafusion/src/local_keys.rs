//! Keys on their way between the nodes of a plan that runs in one process.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::key_set::{KeyExchange, KeyScope, KeySet};
use crate::patience::within;

/// After this time, only publishers all of whose partitions are executed are waited for: a
/// consumer that reads one partition after the other would wait for those that it will read later.
const START_TIME: Duration = Duration::from_millis(100);

/// The known part of a filter; `None` if it will never be known.
type KnownKeys = Option<Option<Arc<KeySet>>>;

#[derive(Debug, Default)]
struct Filter {
    known: watch::Sender<KnownKeys>,
    /// Partitions of the publisher that are not executed yet, once one is.
    idle: Option<usize>,
}

/// The filters of one plan.
#[derive(Debug, Default)]
pub(crate) struct LocalKeys(Mutex<HashMap<u32, Filter>>);

impl LocalKeys {
    /// Counts one of a publisher's partitions as executed.
    pub(crate) fn start(&self, filter: u32, partitions: usize) {
        let mut filters = self.0.lock();
        let idle = &mut filters.entry(filter).or_default().idle;
        *idle = Some(idle.unwrap_or(partitions).saturating_sub(1));
    }

    /// Gives up on a filter that may wait forever. Its next reader does not wait.
    fn give_up_idle(&self, filter: u32) {
        let mut filters = self.0.lock();
        let filter = filters.entry(filter).or_default();
        if filter.idle != Some(0) {
            filter.settle(None);
        }
    }
}

impl Filter {
    /// Says what is known, if that was open: rows have passed where it was given up.
    fn settle(&self, keys: Option<Arc<KeySet>>) {
        self.known.send_if_modified(|known| {
            let is_open = known.is_none();
            known.get_or_insert(keys);
            is_open
        });
    }
}

impl KeyExchange for Arc<LocalKeys> {
    fn publish(&self, filter: u32, keys: Option<KeySet>, _: KeyScope) {
        let mut filters = self.0.lock();
        filters.entry(filter).or_default().settle(keys.map(Arc::new));
    }

    fn keys(&self, filter: u32, _: KeyScope) -> BoxFuture<'static, Option<Arc<KeySet>>> {
        let own = Arc::clone(self);
        let mut known = self.0.lock().entry(filter).or_default().known.subscribe();
        async move {
            if within(START_TIME, known.wait_for(Option::is_some)).await.is_none() {
                own.give_up_idle(filter);
            }
            known.wait_for(Option::is_some).await.ok()?.clone().flatten()
        }
        .boxed()
    }
}
