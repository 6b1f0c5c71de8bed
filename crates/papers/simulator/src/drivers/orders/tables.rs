//! The rows: the columns that transactions compute with, and the place of each row on its page.
//!
//! Sizes of rows are those of the TPC-C specification (revision 5.11, clause 1.2.1); unused columns
//! are bytes only. Amounts are cents.

use workahead_walks::random::Random;

use super::options::{DISTRICTS, Sizes};
use super::space::{PAGE_BYTES, Space};

/// Bytes of a page header.
const HEADER_BYTES: u64 = 64;

/// Payment of every customer before the first order.
const PAID_BEFORE: i64 = 1_000;

/// A table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TableId {
    Warehouse,
    District,
    Customer,
    History,
    NewOrder,
    Order,
    OrderLine,
    Item,
    Stock,
}

/// Bytes of a row, by [`Name`].
const ROW_BYTES: [u64; 9] = [89, 95, 655, 46, 8, 24, 54, 82, 306];

/// Placement of a table's rows.
#[derive(Debug, Clone, Copy)]
struct Extent {
    base: u64,
    row_bytes: u64,
    rows_per_page: u64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct District {
    pub(super) ytd: i64,
    pub(super) next_order: u32,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Customer {
    pub(super) balance: i64,
    pub(super) paid: i64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Order {
    pub(super) district: u32,
    pub(super) number: u32,
    pub(super) customer: u32,
    pub(super) first_line: u32,
    pub(super) lines: u32,
    pub(super) carried: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    pub(super) stock: u32,
    pub(super) amount: i64,
    pub(super) delivered: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Stock {
    pub(super) quantity: i64,
    pub(super) ordered: i64,
}

/// All rows, by number within their table.
#[derive(Debug)]
pub(super) struct Tables {
    extents: [Extent; 9],
    data: u64,
    /// Received this year, by warehouse.
    pub(super) warehouses: Vec<i64>,
    pub(super) districts: Vec<District>,
    pub(super) customers: Vec<Customer>,
    /// Payments: customer, amount, and district.
    pub(super) history: Vec<(u32, i64, u32)>,
    /// Rows added so far, one for each order not delivered then.
    pub(super) new_orders: u32,
    pub(super) orders: Vec<Order>,
    pub(super) lines: Vec<Line>,
    /// Prices.
    pub(super) items: Vec<i64>,
    pub(super) stock: Vec<Stock>,
}

impl Tables {
    /// The initial rows, with room for `orders` more.
    pub(super) fn load(sizes: Sizes, seed: u64, orders: u64, space: &mut Space) -> Self {
        let Sizes { warehouses, items, customers } = sizes;
        let districts = warehouses * DISTRICTS;
        let people = u64::from(districts * customers);
        let rows = [
            u64::from(warehouses),
            u64::from(districts),
            people,
            people + orders,
            people + orders,
            people + orders,
            15 * (people + orders),
            u64::from(items),
            u64::from(warehouses * items),
        ];
        let data = space.reserve(0);
        let extents = std::array::from_fn(|table| {
            let row_bytes = ROW_BYTES[table];
            let rows_per_page = (PAGE_BYTES - HEADER_BYTES) / row_bytes;
            let pages = rows[table].div_ceil(rows_per_page);
            Extent { base: space.reserve(pages * PAGE_BYTES), row_bytes, rows_per_page }
        });
        let mut random = Random::of(seed);
        let mut tables = Self {
            extents,
            data,
            warehouses: vec![PAID_BEFORE * i64::from(DISTRICTS * customers); warehouses as usize],
            districts: vec![
                District {
                    ytd: PAID_BEFORE * i64::from(customers),
                    next_order: customers + 1
                };
                districts as usize
            ],
            customers: vec![Customer { balance: -PAID_BEFORE, paid: PAID_BEFORE }; people as usize],
            history: (0..people as u32)
                .map(|customer| (customer, PAID_BEFORE, customer / customers))
                .collect(),
            new_orders: 0,
            orders: Vec::new(),
            lines: Vec::new(),
            items: (0..items).map(|_| 100 + i64::from(random.below(9_901))).collect(),
            stock: Vec::new(),
        };
        let stock = (0..warehouses * items)
            .map(|_| Stock { quantity: 10 + i64::from(random.below(91)), ordered: 0 });
        tables.stock = stock.collect();
        for district in 0..districts {
            tables.load_orders(sizes, district, &mut random);
        }
        tables
    }

    /// An order of each customer in random order; the last three in ten are not delivered.
    fn load_orders(&mut self, sizes: Sizes, district: u32, random: &mut Random) {
        let customers = random.permutation(sizes.customers);
        for (number, customer) in (1..).zip(customers) {
            let carried = number < sizes.first_open();
            let lines = 5 + random.below(11);
            let first_line = self.lines.len() as u32;
            for _ in 0..lines {
                let item = random.below(sizes.items);
                let stock = district / DISTRICTS * sizes.items + item;
                // Orders delivered before the first transaction have amount 0 (clause 4.3.3.1).
                let amount = if carried { 0 } else { 1 + i64::from(random.below(999_999)) };
                self.lines.push(Line { stock, amount, delivered: carried });
            }
            self.new_orders += u32::from(!carried);
            let customer = district * sizes.customers + customer;
            self.orders.push(Order { district, number, customer, first_line, lines, carried });
        }
    }

    /// Address and bytes of a row.
    pub(super) fn row(&self, table: TableId, row: u32) -> (u64, u64) {
        let Extent { base, row_bytes, rows_per_page } = self.extents[table as usize];
        let (page, slot) = (u64::from(row) / rows_per_page, u64::from(row) % rows_per_page);
        (base + page * PAGE_BYTES + HEADER_BYTES + slot * row_bytes, row_bytes)
    }

    /// The number of the page at an address.
    pub(super) fn page(&self, address: u64) -> u32 {
        ((address - self.data) / PAGE_BYTES) as u32
    }
}

/// The key of an order in indexes.
pub(super) fn order_key(district: u32, number: u32) -> u32 {
    district << 20 | number
}
