//! Consistency conditions of the rows, whatever the order of transactions (TPC-C, clause 3.3.2).

use std::collections::BTreeMap;

use super::Answer;
use super::engine::{CUSTOMERS, Engine, ITEMS, LAST_ORDERS, NAMES, OPEN, ORDERS, STOCK};
use super::options::DISTRICTS;
use super::tables::{Tables, order_key};

/// A condition that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the order-entry engine lost its consistency: {0} does not hold")]
pub struct Inconsistency(pub &'static str);

impl Engine {
    /// Checks all conditions.
    pub(super) fn check(&self) -> Result<(), Inconsistency> {
        let tables = &self.tables;
        let conditions = [
            ("w_ytd = sum(d_ytd)", warehouses(tables)),
            ("d_ytd = sum(h_amount)", districts(tables)),
            ("d_next_o_id - 1 = max(o_id) = orders of the district", self.orders()),
            ("o_ol_cnt = rows of order_line", lines(tables)),
            ("ol_delivered = o_carried", delivered(tables)),
            ("c_balance = sum(delivered ol_amount) - sum(h_amount)", balances(tables)),
            ("rows of new_order = orders that are not carried", self.open()),
            ("stock is 10 to 100", stock(tables)),
            ("an index has a pair for each row", self.indexed()),
            ("all latches and locks are free at the end", self.is_quiet()),
        ];
        match conditions.into_iter().find(|(_, holds)| !holds) {
            Some((says, _)) => Err(Inconsistency(says)),
            None => Ok(()),
        }
    }

    fn orders(&self) -> bool {
        let tables = &self.tables;
        let mut last = vec![(0_u32, 0_u32); tables.districts.len()];
        for order in &tables.orders {
            let (largest, count) = &mut last[order.district as usize];
            *largest = order.number.max(*largest);
            *count += 1;
        }
        let next = tables.districts.iter().map(|district| district.next_order - 1);
        next.zip(last).all(|(next, (largest, count))| next == largest && next == count)
    }

    fn open(&self) -> bool {
        let tables = &self.tables;
        let rows = (0..).zip(&tables.orders).filter(|(_, order)| !order.carried);
        let mut open: Vec<(u32, u32)> =
            rows.map(|(row, order)| (order_key(order.district, order.number), row)).collect();
        open.sort_unstable();
        open.len() == tables.new_orders as usize && self.trees[OPEN].all() == open
    }

    fn indexed(&self) -> bool {
        let tables = &self.tables;
        let rows = |tree: usize, rows: usize| {
            let mut found: Vec<u32> = self.trees[tree].all().iter().map(|pair| pair.1).collect();
            found.sort_unstable();
            found.into_iter().eq(0..rows as u32)
        };
        let orders = self.trees[ORDERS].all();
        let right = |(key, row): &(u32, u32)| {
            let order = tables.orders[*row as usize];
            *key == order_key(order.district, order.number)
        };
        let of_their_own =
            |(customer, row): &(u32, u32)| tables.orders[*row as usize].customer == *customer;
        rows(ITEMS, tables.items.len())
            && rows(STOCK, tables.stock.len())
            && rows(CUSTOMERS, tables.customers.len())
            && rows(NAMES, tables.customers.len())
            && rows(ORDERS, tables.orders.len())
            && orders.iter().all(right)
            && self.trees[LAST_ORDERS].all().iter().all(of_their_own)
    }

    /// The number of rows and a checksum, independent of the order of transactions.
    pub(super) fn answer(&self) -> Answer {
        let tables = &self.tables;
        let numbers = tables.warehouses.iter().copied();
        let numbers = numbers.chain(tables.districts.iter().map(|district| district.ytd));
        let numbers = numbers.chain(tables.customers.iter().map(|customer| customer.paid));
        let numbers = numbers
            .chain(tables.stock.iter().map(|stock| stock.quantity * 1_000_003 + stock.ordered));
        let numbers = numbers.chain([i64::from(tables.new_orders), tables.lines.len() as i64]);
        let sum = numbers.fold(0_u64, |sum, number| {
            sum.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(number as u64)
        });
        let rows = (tables.orders.len() + tables.history.len()) as u64 + self.probed.0;
        let pairs = self.trees[super::engine::PROBED].all();
        let probed = pairs.iter().fold(self.probed.1, |sum, (key, rid)| {
            sum.wrapping_mul(31).wrapping_add(u64::from(*key) << 32 | u64::from(*rid))
        });
        Answer { rows, checksum: sum ^ probed }
    }
}

fn warehouses(tables: &Tables) -> bool {
    let districts = tables.districts.chunks(DISTRICTS as usize);
    let sums = districts.map(|of| of.iter().map(|district| district.ytd).sum::<i64>());
    tables.warehouses.iter().copied().eq(sums)
}

fn districts(tables: &Tables) -> bool {
    let mut paid = vec![0; tables.districts.len()];
    for (_, cents, district) in &tables.history {
        paid[*district as usize] += cents;
    }
    tables.districts.iter().map(|district| district.ytd).eq(paid)
}

fn lines(tables: &Tables) -> bool {
    let mut ends: BTreeMap<u32, u32> = BTreeMap::new();
    for order in &tables.orders {
        ends.insert(order.first_line, order.first_line + order.lines);
    }
    // Each order's lines end where the next order's begin, and every line has an order.
    let begins = ends.keys().copied().skip(1).chain([tables.lines.len() as u32]);
    ends.len() == tables.orders.len() && ends.values().copied().eq(begins)
}

fn delivered(tables: &Tables) -> bool {
    tables.orders.iter().all(|order| {
        let lines = order.first_line as usize..(order.first_line + order.lines) as usize;
        tables.lines[lines].iter().all(|line| line.delivered == order.carried)
    })
}

fn balances(tables: &Tables) -> bool {
    let mut owed = vec![0; tables.customers.len()];
    for (customer, cents, _) in &tables.history {
        owed[*customer as usize] -= cents;
    }
    for order in tables.orders.iter().filter(|order| order.carried) {
        let lines = order.first_line as usize..(order.first_line + order.lines) as usize;
        let cents: i64 = tables.lines[lines].iter().map(|line| line.amount).sum();
        owed[order.customer as usize] += cents;
    }
    tables.customers.iter().map(|customer| customer.balance).eq(owed)
}

fn stock(tables: &Tables) -> bool {
    tables.stock.iter().all(|stock| (10..=100).contains(&stock.quantity))
}
