//! State shared by the clients of an engine: rows, indexes, buffer, locks, log.

use std::rc::Rc;

use super::buffer::Buffer;
use super::latch::{Latch, LatchId, Mode};
use super::locks::Locks;
use super::options::{Options, Work};
use super::session::HEAP_BYTES;
use super::space::Space;
use super::tables::{Order, Tables, order_key};
use super::tree::Tree;
use crate::drivers::orders::footprint::{FOOTPRINT, STATEMENTS};
use crate::ticks::Ticks;

/// The trees.
pub(super) const ITEMS: usize = 0;
pub(super) const STOCK: usize = 1;
pub(super) const CUSTOMERS: usize = 2;
/// Customers by district, last name, and number within that name.
pub(super) const NAMES: usize = 3;
pub(super) const ORDERS: usize = 4;
/// The last order of each customer.
pub(super) const LAST_ORDERS: usize = 5;
/// Orders that are not delivered.
pub(super) const OPEN: usize = 6;
/// The index of probes.
pub(super) const PROBED: usize = 7;

/// Bytes of the log buffer: a default.
pub(super) const LOG_BYTES: u64 = 256 << 10;

/// Bytes of a statement's plan, and of a table's description in it.
pub(super) const PLAN_BYTES: u64 = 1024;

/// Events of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Events {
    /// Polls of held latches.
    pub spins: u64,
    /// Searches restarted because of concurrent changes.
    pub restarts: u64,
    /// Waits for a lock of another transaction.
    pub lock_waits: u64,
    /// Switches between clients.
    pub switches: u64,
    /// Pages read from disk.
    pub page_reads: u64,
    /// Pages requested.
    pub page_requests: u64,
}

/// CustomerSelector took a latch and gave it up, and when.
#[derive(Debug)]
#[cfg_attr(not(test), expect(dead_code, reason = "only tests read the events"))]
pub(super) struct LatchEvent {
    pub(super) now: Ticks,
    pub(super) latch: LatchId,
    pub(super) mode: Mode,
    pub(super) client: u32,
    /// Whether it was taken, or else given up.
    pub(super) taken: bool,
}

/// The engine.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) options: Options,
    pub(super) tables: Tables,
    pub(super) trees: Vec<Tree>,
    pub(super) buffer: Buffer,
    pub(super) locks: Locks,
    log: Latch,
    log_base: u64,
    /// Bytes written to the log.
    pub(super) log_end: u64,
    ends: [(Latch, u64); 9],
    clients: u64,
    /// The ready queue of the servers.
    pub(super) queue: u64,
    /// Plans of statements.
    pub(super) plans: u64,
    /// Transactions begun, and their final number.
    pub(super) begun: u64,
    pub(super) limit: u64,
    /// Rows found by probes, and their checksum.
    pub(super) probed: (u64, u64),
    pub(super) events: Events,
    pub(super) now: Ticks,
    /// All latch events, recorded for tests.
    pub(super) latch_events: Option<Vec<LatchEvent>>,
}

impl Engine {
    pub(super) fn new(options: &Options) -> Self {
        let mut space = Space::new();
        let options = *options;
        let more = options.warmup + options.transactions;
        let sizes = options.sizes;
        let queue = space.reserve(64);
        let plans = space.reserve(STATEMENTS as u64 * PLAN_BYTES);
        let log_base = space.reserve(LOG_BYTES + 64);
        let ends = std::array::from_fn(|_| (Latch::default(), space.reserve(64)));
        let locks = Locks::new(&mut space);
        let buffer = Buffer::new(options.buffer_pages, &mut space);
        let own = HEAP_BYTES + FOOTPRINT.own_bytes;
        let clients = space.reserve(u64::from(options.clients) * own);
        let tables = Tables::load(sizes, options.seed, more, &mut space);
        let trees = trees(&options, &tables, &mut space);
        Self {
            options,
            tables,
            trees,
            buffer,
            locks,
            log: Latch::default(),
            log_base,
            log_end: 0,
            ends,
            clients,
            queue,
            plans,
            begun: 0,
            limit: 0,
            probed: (0, 0),
            events: Events::default(),
            now: 0,
            latch_events: None,
        }
    }

    /// Address of a client's own bytes.
    pub(super) fn own(&self, client: u32) -> u64 {
        self.clients + u64::from(client) * (HEAP_BYTES + FOOTPRINT.own_bytes)
    }

    /// Current end of the log in its buffer.
    pub(super) fn log_tail(&self) -> u64 {
        self.log_base + 64 + self.log_end % LOG_BYTES
    }

    /// A latch, and its address.
    pub(super) fn latch(&mut self, at: LatchId) -> (&mut Latch, u64) {
        match at {
            LatchId::Group(tree, group) => {
                let tree = &mut self.trees[tree];
                let address = tree.address(group);
                (&mut tree.groups[group as usize].latch, address)
            }
            LatchId::Page(bucket) => self.buffer.bucket_latch(bucket),
            LatchId::Frame(frame) => self.buffer.frame_latch(frame),
            LatchId::Hand => self.buffer.hand_latch(),
            LatchId::Lock(bucket) => self.locks.latch(bucket),
            LatchId::Log => (&mut self.log, self.log_base),
            LatchId::End(table) => {
                let (latch, address) = &mut self.ends[table];
                (latch, *address)
            }
        }
    }

    /// Whether all latches and locks are free.
    pub(super) fn is_quiet(&self) -> bool {
        let groups = self.trees.iter().flat_map(|tree| &tree.groups);
        groups.into_iter().all(|group| group.latch.is_free())
            && self.log.is_free()
            && self.ends.iter().all(|(latch, _)| latch.is_free())
            && self.locks.is_quiet()
            && self.buffer.is_quiet()
    }
}

/// Builds the indexes.
fn trees(options: &Options, tables: &Tables, space: &mut Space) -> Vec<Tree> {
    let sizes = options.sizes;
    let more = (options.warmup + options.transactions) as usize;
    let numbered = |rows: usize| (0..rows as u32).map(|row| (row, row)).collect::<Vec<_>>();
    let orders = |wanted: fn(&Order) -> bool| {
        let numbers = (0..).zip(&tables.orders).filter(|(_, order)| wanted(order));
        numbers.map(|(row, order)| (order_key(order.district, order.number), row)).collect()
    };
    let names = (0..tables.customers.len() as u32).map(|customer| {
        let (district, at) = (customer / sizes.customers, customer % sizes.customers);
        (sizes.name_key(district, at % sizes.names()) + at / sizes.names(), customer)
    });
    let last = (0..).zip(&tables.orders).map(|(row, order)| (order.customer, row));
    let probes = options.probe_keys();
    let loaded: [Vec<(u32, u32)>; 8] = [
        numbered(tables.items.len()),
        numbered(tables.stock.len()),
        numbered(tables.customers.len()),
        sorted(names.collect()),
        orders(|_| true),
        sorted(last.collect()),
        orders(|order| !order.carried),
        (0..probes).map(|key| (2 * key, key)).collect(),
    ];
    let inserts = if matches!(options.work, Work::Transactions) { more } else { probes as usize };
    let load = |pairs: &Vec<(u32, u32)>| {
        let base = space.reserve(Tree::bytes(pairs.len() + inserts));
        Tree::load(pairs, base)
    };
    loaded.iter().map(load).collect()
}

fn sorted(mut pairs: Vec<(u32, u32)>) -> Vec<(u32, u32)> {
    pairs.sort_unstable();
    pairs
}

/// An engine shared by its clients.
pub(super) type SharedEngine = Rc<std::cell::RefCell<Engine>>;
