//! What a run of order entry is asked to do.

/// Districts of a warehouse.
pub(super) const DISTRICTS: u32 = 10;

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

    /// The first order that is not delivered before the first transaction: 2,101 of 3,000.
    pub(super) fn first_open(self) -> u32 {
        self.customers - self.customers * 3 / 10 + 1
    }

    /// The least key of those of a name.
    pub(super) fn name_key(self, district: u32, name: u32) -> u32 {
        (district * self.names() + name) * 8
    }
}

/// How trees are shared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Index {
    /// By latches.
    #[default]
    Latched,
    /// By versions: readers write nothing.
    LockFree,
}

/// What clients do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Work {
    /// The five transactions, 45, 43, 4, 4 and 4 of a hundred.
    #[default]
    Transactions,
    /// Only searches of one index.
    Reads,
    /// As many insertions as searches.
    Mixed,
}

/// What is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// How indexes are shared.
    pub index: Index,
    /// What clients do.
    pub work: Work,
    /// Sizes of the tables.
    pub sizes: Sizes,
    /// Clients of all servers.
    pub clients: u32,
    /// Pages of the buffer.
    pub buffer_pages: u32,
    /// Transactions that are run before, so that caches and buffer are warm.
    pub warmup: u64,
    /// Transactions that count.
    pub transactions: u64,
    /// Determines rows and what terminals type.
    pub seed: u64,
}

impl Options {
    /// Keys of the index that is probed: as many as there is stock.
    pub(super) fn probe_keys(&self) -> u32 {
        match self.work {
            Work::Transactions => 0,
            Work::Reads | Work::Mixed => self.sizes.warehouses * self.sizes.items,
        }
    }

    /// Bytes that a run takes of this process, about.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let Sizes { warehouses, items, customers } = self.sizes;
        let people = u64::from(warehouses) * u64::from(DISTRICTS) * u64::from(customers);
        let stock = u64::from(warehouses) * u64::from(items);
        // Pairs of trees take some 20 bytes, lines of orders 24, ten of them an order.
        120 * (stock + u64::from(items)) + 500 * (people + self.warmup + self.transactions)
    }
}
