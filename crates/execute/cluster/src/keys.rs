//! Keys of build sides on their way between the workers of a query.
//!
//! A query has a number of its own, at random. A worker keeps its keys from the first message or
//! task of the query until the last task has ended.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ::url::Url;
use datafusion::common::exec_datafusion_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use http::{HeaderMap, HeaderName, HeaderValue};
use prost::bytes::Bytes;
use tokio::sync::watch;
use workahead_datafusion::{KeyExchange, KeyScope, KeySet};

use crate::channels::Channels;
use crate::service;

const QUERY: HeaderName = HeaderName::from_static("x-workahead-query");
const WORKERS: HeaderName = HeaderName::from_static("x-workahead-workers");
/// A bitmap, and what is said with it.
pub(crate) const MESSAGE_BYTES_MAX: usize = 17 << 20;
/// Keys of a query none of whose stages has come are kept so long.
const UNCLAIMED_TIME: Duration = Duration::from_secs(60);
/// A query has fewer filters, and a filter fewer parts.
const FILTERS_MAX: usize = 1 << 10;
const PARTS_MAX: u32 = 1 << 16;
/// The charge of a filter, and of each of its parts, beside their keys.
const FILTER_BYTES: usize = 1 << 10;
const PART_BYTES: usize = 32;
/// More queries than this, none of whose stages has come, are refused.
const UNCLAIMED_MAX: usize = 256;
/// Workers that are sent keys at a time.
const SENT_AT_A_TIME: usize = 8;

/// A query's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct QueryId(u128);

/// One task's part of a filter.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct Part {
    #[prost(bytes = "vec", tag = "1")]
    query: Vec<u8>,
    #[prost(uint32, tag = "2")]
    filter: u32,
    #[prost(uint32, tag = "3")]
    part: u32,
    #[prost(uint32, tag = "4")]
    parts: u32,
    /// A [`KeySet`]; none if the keys will never be known.
    #[prost(bytes = "bytes", optional, tag = "5")]
    keys: Option<Bytes>,
}

/// The known part of one filter.
#[derive(Debug, Clone, Default)]
enum KnownKeys {
    #[default]
    NotYet,
    Never,
    Keys(Arc<KeySet>),
}

#[derive(Debug, Default)]
struct Filter {
    parts: BTreeSet<u32>,
    merged: Option<KeySet>,
    known: watch::Sender<KnownKeys>,
}

impl Filter {
    fn is_known(&self) -> bool {
        !matches!(*self.known.borrow(), KnownKeys::NotYet)
    }
}

/// The filters of a query.
#[derive(Debug, Default)]
struct Filters {
    of: HashMap<u32, Filter>,
    memory: Option<MemoryReservation>,
}

impl Filters {
    fn add(&mut self, part: &Part) -> Result<()> {
        if part.parts > PARTS_MAX || part.part >= part.parts {
            return Err(exec_datafusion_err!("part {} of {} keys", part.part, part.parts));
        }
        if self.of.len() >= FILTERS_MAX && !self.of.contains_key(&part.filter) {
            return Err(exec_datafusion_err!("a query of more than {FILTERS_MAX} filters"));
        }
        let filter = self.of.entry(part.filter).or_default();
        if filter.is_known() || !filter.parts.insert(part.part) {
            return Ok(());
        }
        let merged = part.keys.as_deref().map(|keys| {
            let keys = KeySet::from_bytes(keys)?;
            match filter.merged.take() {
                None => Ok(keys),
                Some(merged) => merged.merge(keys),
            }
        });
        filter.merged = match merged {
            Some(Ok(merged)) => Some(merged),
            Some(Err(error)) => {
                filter.known.send_replace(KnownKeys::Never);
                return Err(error);
            }
            None => None,
        };
        let complete = filter.parts.len() == part.parts as usize;
        match &filter.merged {
            None => drop(filter.known.send_replace(KnownKeys::Never)),
            Some(_) if complete => {
                let merged = filter.merged.take().map(Arc::new);
                filter.known.send_replace(merged.map_or(KnownKeys::Never, KnownKeys::Keys));
            }
            Some(_) => {}
        }
        self.charge();
        Ok(())
    }

    /// Charges what is held, or gives up what the limit has no room for.
    fn charge(&mut self) {
        let bytes = |filter: &Filter| {
            let known = match &*filter.known.borrow() {
                KnownKeys::Keys(keys) => keys.bytes(),
                KnownKeys::NotYet | KnownKeys::Never => 0,
            };
            known + filter.merged.as_ref().map_or(0, KeySet::bytes)
        };
        let Some(memory) = &mut self.memory else { return };
        let parts = |filter: &Filter| PART_BYTES * filter.parts.len() + FILTER_BYTES;
        let all = self.of.values().map(|filter| bytes(filter) + parts(filter)).sum();
        if memory.try_resize(all).is_ok() {
            return;
        }
        self.give_up();
    }

    /// Forgets all keys: tasks that wait for them go on without.
    fn give_up(&mut self) {
        for filter in self.of.values_mut() {
            filter.merged = None;
            filter.known.send_replace(KnownKeys::Never);
        }
        if let Some(memory) = &mut self.memory {
            memory.free();
        }
    }
}

#[derive(Debug)]
struct Query {
    filters: Arc<Mutex<Filters>>,
    /// Tasks that run here.
    tasks: usize,
    since: Instant,
}

/// The keys that have come to a process.
#[derive(Debug)]
pub(crate) struct Registry {
    pool: Arc<dyn MemoryPool>,
    queries: Mutex<Queries>,
}

type Queries = HashMap<QueryId, Query>;

fn forget_unclaimed(queries: &mut Queries) {
    queries.retain(|_, query| query.tasks > 0 || query.since.elapsed() < UNCLAIMED_TIME);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Registry {
    /// Charges the keys to a pool.
    pub(crate) fn new(pool: Arc<dyn MemoryPool>) -> Self {
        Self { pool, queries: Mutex::default() }
    }

    /// A query, new if nothing is known of it.
    fn query<'a>(&self, queries: &'a mut Queries, id: QueryId) -> &'a mut Query {
        queries.entry(id).or_insert_with(|| {
            let memory = MemoryConsumer::new("keys of other stages").register(&self.pool);
            let filters = Filters { memory: Some(memory), ..Filters::default() };
            Query { filters: Arc::new(Mutex::new(filters)), tasks: 0, since: Instant::now() }
        })
    }

    /// Of a query, and one task more of it or none.
    fn filters(&self, query: QueryId, tasks: usize) -> Arc<Mutex<Filters>> {
        let mut queries = lock(&self.queries);
        let query = self.query(&mut queries, query);
        query.tasks += tasks;
        Arc::clone(&query.filters)
    }

    /// Forgets the keys of queries none of whose stages has come.
    pub(crate) fn sweep(&self) {
        forget_unclaimed(&mut lock(&self.queries));
    }

    /// Counts a task of a query, until it is dropped.
    pub(crate) fn start_task(registry: &Arc<Self>, route: &Route) -> Task {
        registry.filters(route.query, 1);
        Task { registry: Arc::clone(registry), query: route.query }
    }

    /// Tasks that are here.
    pub(crate) fn tasks(&self) -> usize {
        lock(&self.queries).values().map(|query| query.tasks).sum()
    }

    fn end_task(&self, query: QueryId) {
        let mut queries = lock(&self.queries);
        if let Some(found) = queries.get_mut(&query) {
            found.tasks = found.tasks.saturating_sub(1);
            if found.tasks == 0 {
                lock(&found.filters).give_up();
                queries.remove(&query);
            }
        }
    }

    /// Adds what a task says.
    ///
    /// # Errors
    /// If it says nonsense.
    pub(crate) fn add(&self, part: &Part) -> Result<()> {
        let query = part.query.as_slice().try_into();
        let query = query.map_err(|_| exec_datafusion_err!("a query's number has 16 bytes"))?;
        let query = QueryId(u128::from_le_bytes(query));
        let filters = {
            let mut queries = lock(&self.queries);
            forget_unclaimed(&mut queries);
            let unclaimed = queries.values().filter(|query| query.tasks == 0).count();
            if unclaimed >= UNCLAIMED_MAX && !queries.contains_key(&query) {
                return Err(exec_datafusion_err!("keys of {UNCLAIMED_MAX} queries without stages"));
            }
            Arc::clone(&self.query(&mut queries, query).filters)
        };
        lock(&filters).add(part)
    }
}

/// A task of a query, from its start to its end.
#[derive(Debug)]
pub(crate) struct Task {
    registry: Arc<Registry>,
    query: QueryId,
}

impl Drop for Task {
    fn drop(&mut self) {
        self.registry.end_task(self.query);
    }
}

/// Where the keys of a query go, as the client says it to the workers.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    query: QueryId,
    workers: Arc<[Url]>,
}

impl Route {
    /// Of a new query.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub(crate) fn new(workers: impl IntoIterator<Item = Url>) -> std::io::Result<Self> {
        let query = QueryId(u128::from_le_bytes(crate::token::random()?));
        Ok(Self { query, workers: workers.into_iter().collect() })
    }

    pub(crate) fn put(&self, headers: &mut HeaderMap) -> Result<()> {
        let value = |text: String| {
            HeaderValue::from_str(&text).map_err(|error| DataFusionError::External(error.into()))
        };
        let workers: Vec<&str> = self.workers.iter().map(Url::as_str).collect();
        headers.insert(QUERY, value(format!("{:032x}", self.query.0))?);
        headers.insert(WORKERS, value(workers.join(" "))?);
        Ok(())
    }

    /// As the headers of a stage say it, if they do.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let text = |name| headers.get(name)?.to_str().ok();
        let query = QueryId(u128::from_str_radix(text(QUERY)?, 16).ok()?);
        let workers = text(WORKERS)?.split(' ').map(Url::parse);
        Some(Self { query, workers: workers.collect::<Result<_, _>>().ok()? })
    }
}

/// The keys of a query, as one of its tasks exchanges them.
pub(crate) struct TaskKeys {
    pub(crate) route: Route,
    pub(crate) channels: Channels,
    filters: Arc<Mutex<Filters>>,
    /// Those that only this task reads.
    own: Mutex<HashMap<u32, watch::Sender<KnownKeys>>>,
    part: u32,
    parts: u32,
}

impl fmt::Debug for TaskKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TaskKeys({} of {})", self.part, self.parts)
    }
}

impl TaskKeys {
    /// Of a task, by its number and that of all tasks of its stage.
    pub(crate) fn new(
        registry: &Registry,
        channels: Channels,
        route: Route,
        (task, tasks): (usize, usize),
    ) -> Self {
        let filters = registry.filters(route.query, 0);
        let [part, parts] = [task, tasks].map(|number| u32::try_from(number).unwrap_or(u32::MAX));
        Self { channels, filters, own: Mutex::default(), route, part, parts }
    }
}

impl KeyExchange for TaskKeys {
    fn publish(&self, filter: u32, keys: Option<KeySet>, scope: KeyScope) {
        let (part, parts) = match scope {
            KeyScope::Task => {
                let mut own = lock(&self.own);
                let known = keys.map_or(KnownKeys::Never, |keys| KnownKeys::Keys(Arc::new(keys)));
                own.entry(filter).or_default().send_replace(known);
                return;
            }
            // One has to say it.
            KeyScope::Whole if self.part > 0 => return,
            KeyScope::Whole => (0, 1),
            KeyScope::Parts => (self.part, self.parts),
        };
        let keys = keys.and_then(|keys| keys.to_bytes().ok());
        let keys = keys.filter(|keys| keys.len() < MESSAGE_BYTES_MAX - (1 << 10));
        let keys = keys.map(Bytes::from);
        let query = self.route.query.0.to_le_bytes().to_vec();
        let part = Part { query, filter, part, parts, keys };
        // Without a runtime there is nobody left to read them.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (workers, channels) = (Arc::clone(&self.route.workers), self.channels.clone());
        runtime.spawn(async move {
            let publish = |worker: &Url| {
                let (channels, worker, part) = (channels.clone(), worker.clone(), part.clone());
                async move { service::publish(&channels, &worker, part).await }
            };
            let sent: Vec<_> = workers.iter().map(publish).collect();
            let mut sent = futures::stream::iter(sent).buffer_unordered(SENT_AT_A_TIME);
            while let Some(sent) = sent.next().await {
                if let Err(error) = sent {
                    // Its rows pass unfiltered.
                    log::warn!("keys did not reach a worker: {error}");
                }
            }
        });
    }

    fn keys(&self, filter: u32, scope: KeyScope) -> BoxFuture<'static, Option<Arc<KeySet>>> {
        let mut known = match scope {
            KeyScope::Task => lock(&self.own).entry(filter).or_default().subscribe(),
            _ => lock(&self.filters).of.entry(filter).or_default().known.subscribe(),
        };
        async move {
            let known = known.wait_for(|known| !matches!(known, KnownKeys::NotYet)).await.ok()?;
            match &*known {
                KnownKeys::Keys(keys) => Some(Arc::clone(keys)),
                KnownKeys::NotYet | KnownKeys::Never => None,
            }
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use datafusion::execution::memory_pool::{GreedyMemoryPool, UnboundedMemoryPool};

    use super::*;

    fn part(query: u128, part: u32, parts: u32, keys: Option<Vec<u8>>) -> Part {
        let keys = keys.map(Bytes::from);
        Part { query: query.to_le_bytes().to_vec(), filter: 7, part, parts, keys }
    }

    /// The bytes of a set of no keys.
    fn none() -> Vec<u8> {
        let mut bytes = 5_u64.to_le_bytes().to_vec();
        bytes.extend_from_slice(b"Int64");
        bytes.extend_from_slice(&[0; 8 + 1 + 3]);
        bytes
    }

    fn registry() -> Registry {
        Registry::new(Arc::new(UnboundedMemoryPool::default()))
    }

    fn known(registry: &Registry, query: u128) -> KnownKeys {
        let filters = registry.filters(QueryId(query), 0);
        let filters = lock(&filters);
        filters.of.get(&7).map_or(KnownKeys::NotYet, |filter| filter.known.borrow().clone())
    }

    #[test]
    fn keys_are_known_when_each_task_has_said_its_own_once() {
        let registry = registry();
        registry.add(&part(1, 0, 2, Some(none()))).unwrap();
        registry.add(&part(1, 0, 2, Some(none()))).unwrap();
        registry.add(&part(2, 1, 2, Some(none()))).unwrap();
        assert!(matches!(known(&registry, 1), KnownKeys::NotYet));
        registry.add(&part(1, 1, 2, Some(none()))).unwrap();
        assert!(matches!(known(&registry, 1), KnownKeys::Keys(_)));
        assert!(matches!(known(&registry, 2), KnownKeys::NotYet), "another query's");
    }

    #[test]
    fn they_are_never_known_when_a_task_does_not_know_its_own_or_says_nonsense() {
        for wrong in [None, Some(b"nonsense".to_vec())] {
            let registry = registry();
            registry.add(&part(1, 0, 2, Some(none()))).unwrap();
            assert_eq!(registry.add(&part(1, 1, 2, wrong.clone())).is_err(), wrong.is_some());
            assert!(matches!(known(&registry, 1), KnownKeys::Never));
            registry.add(&part(1, 1, 2, Some(none()))).unwrap();
            assert!(matches!(known(&registry, 1), KnownKeys::Never), "and stay so");
        }
    }

    #[test]
    fn wrong_messages_are_refused() {
        let registry = registry();
        for (number, parts) in [(2, 2), (0, 0), (0, u32::MAX)] {
            assert!(registry.add(&part(1, number, parts, Some(none()))).is_err());
        }
        let short = Part { query: vec![1], ..part(1, 0, 1, None) };
        assert!(registry.add(&short).is_err());
        for filter in 0..2 * FILTERS_MAX as u32 {
            drop(registry.add(&Part { filter, ..part(1, 0, 2, Some(none())) }));
        }
        assert_eq!(lock(&registry.filters(QueryId(1), 0)).of.len(), FILTERS_MAX);
    }

    #[test]
    fn a_query_is_forgotten_after_its_last_task_and_what_has_no_room_is_never_known() {
        let registry = Registry::new(Arc::new(GreedyMemoryPool::new(1)));
        registry.filters(QueryId(1), 2);
        registry.add(&part(1, 0, 1, Some(none()))).unwrap();
        assert!(matches!(known(&registry, 1), KnownKeys::Never));
        registry.end_task(QueryId(1));
        assert_eq!(lock(&registry.queries).len(), 1);
        registry.end_task(QueryId(1));
        assert_eq!(lock(&registry.queries).len(), 0);
    }

    #[test]
    fn queries_whose_stages_never_come_are_few_and_charged() {
        let pool: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
        let registry = Registry::new(Arc::clone(&pool));
        let added = |query| registry.add(&part(query, 0, 2, Some(none()))).is_ok();
        let many = 2 * UNCLAIMED_MAX;
        assert_eq!((0..many as u128).filter(|query| added(*query)).count(), UNCLAIMED_MAX);
        assert!(pool.reserved() >= UNCLAIMED_MAX * FILTER_BYTES);
        assert!(added(0), "one that is there already");
    }

    #[test]
    fn a_route_is_read_as_it_is_written() {
        let url = |text| Url::parse(text).unwrap();
        let route = Route::new([url("http://10.0.0.1:5"), url("http://[::1]:6")]).unwrap();
        let mut headers = HeaderMap::new();
        assert!(Route::of(&headers).is_none());
        route.put(&mut headers).unwrap();
        let read = Route::of(&headers).unwrap();
        assert_eq!((read.query, read.workers), (route.query, route.workers));
    }
}
