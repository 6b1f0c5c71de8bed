//! Options of a run of order entry.

/// Districts of a warehouse.
pub(super) const DISTRICTS: u32 = 10;

/// Bytes of this process that a client takes: the state of its transaction, and its lists.
const CLIENT_BYTES: u64 = 16 << 10;

/// The same of a page of the buffer: its frame, up to two buckets, and a place in one.
const FRAME_BYTES: u64 = 112;

/// Sizes of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Warehouses, of ten districts each.
    pub warehouses: u32,
    /// Items, and rows of stock of each warehouse; 100,000 in the specification.
    pub items: u32,
    /// Customers of a district; 3,000 in the specification.
    pub customers: u32,
}

impl Sizes {
    /// Last names of a district; the specification has 1,000.
    pub(super) fn names(self) -> u32 {
        (self.customers / 3).clamp(1, 1_000)
    }

    /// The first undelivered order before the first transaction: 2,101 of 3,000.
    pub(super) fn first_open(self) -> u32 {
        self.customers - self.customers * 3 / 10 + 1
    }

    /// The least index key of a name.
    pub(super) fn name_key(self, district: u32, name: u32) -> u32 {
        (district * self.names() + name) * 8
    }
}

/// Concurrency control of indexes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Index {
    /// Latches.
    #[default]
    Latched,
    /// Versions: readers write nothing.
    LockFree,
}

/// The work of clients.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Work {
    /// The five transactions, 45, 43, 4, 4 and 4 of a hundred.
    #[default]
    Transactions,
    /// Searches of one index only.
    Reads,
    /// Insertions and searches, half each.
    Mixed,
}

/// Options of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Concurrency control of indexes.
    pub index: Index,
    /// The work of clients.
    pub work: Work,
    /// Sizes of the tables.
    pub sizes: Sizes,
    /// Clients of all servers.
    pub clients: u32,
    /// Pages of the buffer.
    pub buffer_pages: u32,
    /// Warm-up transactions.
    pub warmup: u64,
    /// Counted transactions.
    pub transactions: u64,
    /// Seed of rows and inputs.
    pub seed: u64,
}

impl Options {
    /// Keys of the probed index: one per row of stock.
    pub(super) fn probe_keys(&self) -> u32 {
        match self.work {
            Work::Transactions => 0,
            Work::Reads | Work::Mixed => self.sizes.warehouses * self.sizes.items,
        }
    }

    /// Approximate bytes of this process that a run needs.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let Sizes { warehouses, items, customers } = self.sizes;
        let districts = u64::from(warehouses) * u64::from(DISTRICTS);
        let people = districts.saturating_mul(customers.into());
        let stock = u64::from(warehouses) * u64::from(items);
        let done = self.warmup.saturating_add(self.transactions);
        // Pairs of trees take some 20 bytes, lines of orders 24, ten of them an order.
        let parts = [
            stock.saturating_add(items.into()).saturating_mul(120),
            people.saturating_add(done).saturating_mul(500),
            u64::from(self.clients) * CLIENT_BYTES,
            u64::from(self.buffer_pages) * FRAME_BYTES,
        ];
        parts.into_iter().fold(0, u64::saturating_add)
    }
}
