//! The five transactions (TPC-C, revision 5.11, clauses 2.4 to 2.8), and their inputs.
//!
//! Inputs depend on the transaction's number alone, not on its client or time: in any order of
//! clients, the same is paid, ordered and delivered. Queries read the current rows, committed or
//! not, and a delivery is a transaction per district, as the clauses allow.

use workahead_walks::random::Random;

use super::engine::{CUSTOMERS, Engine, ITEMS, LAST_ORDERS, NAMES, OPEN, ORDERS, PROBED, STOCK};
use super::footprint::{BEGIN, COMMIT, PROCEDURE, RECEIVE, REPLY};
use super::inputs::{
    CustomerSelector, OrderedItem, customer, customer_of, ordered_items, payment_customer,
};
use super::locks::Row;
use super::options::{DISTRICTS, Options, Sizes, Work};
use super::session::Session;
use super::tables::{Line, Order, TableId, order_key};
use crate::op::Op;

/// Operations of a probe transaction.
const PROBES: u32 = 32;

/// Bytes of a commit record.
const COMMIT_BYTES: u64 = 0;

impl Session {
    /// Runs transactions until none is left.
    pub(super) async fn live(self) {
        while let Some(number) = self.next() {
            let Options { seed, work, .. } = self.engine().options;
            let mut random = Random::of(seed ^ (number + 1).wrapping_mul(0xD129_42F0_57A3_5B41));
            match work {
                Work::Transactions => self.serve(&mut random).await,
                Work::Reads => self.probe(&mut random, 0).await,
                Work::Mixed => self.probe(&mut random, 50).await,
            }
        }
    }

    fn next(&self) -> Option<u64> {
        let mut engine = self.engine();
        let number = engine.begun;
        (number < engine.limit).then(|| {
            engine.begun += 1;
            number
        })
    }

    async fn serve(&self, random: &mut Random) {
        let request = super::space::reads(self.heap(7168), 128);
        self.call(RECEIVE, &request.collect::<Vec<Op>>());
        match random.below(100) {
            0..45 => self.new_order(random).await,
            45..88 => self.payment(random).await,
            88..92 => self.order_status(random).await,
            92..96 => self.delivery(random).await,
            _ => self.stock_level(random).await,
        }
        let answer = super::space::writes(self.heap(7424), 256);
        self.call(REPLY, &answer.collect::<Vec<Op>>());
        self.give_way().await;
    }

    fn begin(&self, procedure: usize) {
        self.call(PROCEDURE + procedure, &[]);
        self.call(BEGIN, &[]);
    }

    /// Commits a transaction; another client runs until the log is on disk.
    async fn commit(&self, locked: Vec<Row>) {
        self.log(COMMIT_BYTES).await;
        self.call(COMMIT, &[]);
        self.unlock(locked).await;
        self.give_way().await;
    }

    fn sizes(&self) -> Sizes {
        self.engine().options.sizes
    }

    async fn new_order(&self, random: &mut Random) {
        let sizes = self.sizes();
        let warehouse = random.below(sizes.warehouses);
        let district = warehouse * DISTRICTS + random.below(DISTRICTS);
        let customer = district * sizes.customers + customer(random, sizes);
        let items = ordered_items(random, sizes, warehouse);
        let fails = random.below(100) == 0;
        self.begin(0);
        let mut locked = Vec::new();
        self.statement(0);
        self.read_row(TableId::Warehouse, warehouse).await;
        self.lock(&mut locked, (TableId::District, district)).await;
        self.statement(1);
        self.read_row(TableId::District, district).await;
        self.statement(3);
        self.find(CUSTOMERS, customer).await;
        self.read_row(TableId::Customer, customer).await;
        let mut lines = Vec::new();
        for (stock, quantity) in &items {
            self.statement(4);
            let item = stock % sizes.items;
            self.find(ITEMS, item).await;
            self.read_row(TableId::Item, item).await;
            let price = self.engine().tables.items[item as usize];
            self.take_stock(&mut locked, (*stock, *quantity)).await;
            lines.push(Line { stock: *stock, amount: price * quantity, delivered: false });
        }
        match fails {
            true => self.undo(&items).await,
            false => self.enter(district, customer, lines).await,
        }
        self.commit(locked).await;
    }

    /// Reduces stock; below ten it is refilled by 91 (clause 2.4.2.2).
    async fn take_stock(&self, locked: &mut Vec<Row>, (stock, quantity): OrderedItem) {
        self.statement(5);
        self.find(STOCK, stock).await;
        self.lock(locked, (TableId::Stock, stock)).await;
        self.read_row(TableId::Stock, stock).await;
        self.statement(6);
        self.change_stock(stock, quantity).await;
    }

    async fn change_stock(&self, stock: u32, by: i64) {
        let take = move |engine: &mut Engine| {
            let stock = &mut engine.tables.stock[stock as usize];
            stock.ordered += by;
            // 10 to 100 again, so that the rest doesn't depend on the order of orders.
            stock.quantity = (stock.quantity - by - 10).rem_euclid(91) + 10;
        };
        self.change_row((TableId::Stock, stock), take).await;
    }

    /// Rolls back: the last item does not exist.
    async fn undo(&self, items: &[OrderedItem]) {
        self.find(ITEMS, u32::MAX).await;
        for (stock, quantity) in items.iter().rev() {
            self.change_stock(*stock, -quantity).await;
        }
    }

    async fn enter(&self, district: u32, customer: u32, lines: Vec<Line>) {
        self.statement(2);
        let take = |engine: &mut Engine| {
            let district = &mut engine.tables.districts[district as usize];
            district.next_order += 1;
            district.next_order - 1
        };
        let number = self.change_row((TableId::District, district), take).await;
        self.statement(9);
        let count = lines.len() as u32;
        let add = |engine: &mut Engine| {
            let first = engine.tables.lines.len() as u32;
            engine.tables.lines.extend(lines);
            first
        };
        let first_line = self.add_rows(TableId::OrderLine, count, add).await;
        self.statement(7);
        let order = Order { district, number, customer, first_line, lines: count, carried: false };
        let add = |engine: &mut Engine| {
            engine.tables.orders.push(order);
            engine.tables.orders.len() as u32 - 1
        };
        let row = self.add_rows(TableId::Order, 1, add).await;
        self.put(ORDERS, (order_key(district, number), row)).await;
        self.put(LAST_ORDERS, (customer, row)).await;
        self.statement(8);
        let add = |engine: &mut Engine| {
            engine.tables.new_orders += 1;
            row
        };
        self.add_rows(TableId::NewOrder, 1, add).await;
        self.put(OPEN, (order_key(district, number), row)).await;
    }

    async fn payment(&self, random: &mut Random) {
        let sizes = self.sizes();
        let warehouse = random.below(sizes.warehouses);
        let district = warehouse * DISTRICTS + random.below(DISTRICTS);
        let selector = payment_customer(random, sizes, warehouse, district);
        let cents = 100 + i64::from(random.below(499_901));
        self.begin(1);
        let mut locked = Vec::new();
        self.lock(&mut locked, (TableId::Warehouse, warehouse)).await;
        self.statement(10);
        let pay = |engine: &mut Engine| engine.tables.warehouses[warehouse as usize] += cents;
        self.change_row((TableId::Warehouse, warehouse), pay).await;
        self.lock(&mut locked, (TableId::District, district)).await;
        self.statement(11);
        let pay = |engine: &mut Engine| engine.tables.districts[district as usize].ytd += cents;
        self.change_row((TableId::District, district), pay).await;
        let customer = self.customer(selector, 12).await;
        self.lock(&mut locked, (TableId::Customer, customer)).await;
        self.statement(14);
        let pay = |engine: &mut Engine| {
            let customer = &mut engine.tables.customers[customer as usize];
            customer.balance -= cents;
            customer.paid += cents;
        };
        self.change_row((TableId::Customer, customer), pay).await;
        self.statement(15);
        let add = |engine: &mut Engine| {
            engine.tables.history.push((customer, cents, district));
            engine.tables.history.len() as u32 - 1
        };
        self.add_rows(TableId::History, 1, add).await;
        self.commit(locked).await;
    }

    /// A customer by number, or the middle one of a name.
    async fn customer(&self, selector: CustomerSelector, statement: usize) -> u32 {
        let sizes = self.sizes();
        let (district, name) = match selector {
            CustomerSelector::Number(customer) => {
                self.statement(statement + 1);
                self.find(CUSTOMERS, customer).await;
                self.read_row(TableId::Customer, customer).await;
                return customer;
            }
            CustomerSelector::Name(district, name) => (district, name),
        };
        self.statement(statement);
        let mut key = sizes.name_key(district, name);
        let end = sizes.name_key(district, name + 1);
        let mut found = Vec::new();
        while let Some((at, customer)) = self.first(NAMES, key).await.filter(|(at, _)| *at < end) {
            self.read_row(TableId::Customer, customer).await;
            found.push(customer);
            key = at + 1;
        }
        found[found.len() / 2]
    }

    async fn order_status(&self, random: &mut Random) {
        let sizes = self.sizes();
        let warehouse = random.below(sizes.warehouses);
        let district = warehouse * DISTRICTS + random.below(DISTRICTS);
        let selector = customer_of(random, sizes, district);
        self.begin(2);
        let customer = self.customer(selector, 16).await;
        self.statement(18);
        if let Some(row) = self.find(LAST_ORDERS, customer).await {
            self.read_row(TableId::Order, row).await;
            self.statement(19);
            self.read_lines(row).await;
        }
        self.call(COMMIT, &[]);
    }

    /// Reads the lines of an order: their rows of stock.
    async fn read_lines(&self, row: u32) -> Vec<u32> {
        let Order { first_line, lines, .. } = self.engine().tables.orders[row as usize];
        let mut stock = Vec::new();
        for line in first_line..first_line + lines {
            self.read_row(TableId::OrderLine, line).await;
            stock.push(self.engine().tables.lines[line as usize].stock);
        }
        stock
    }

    async fn delivery(&self, random: &mut Random) {
        let warehouse = random.below(self.sizes().warehouses);
        for district in warehouse * DISTRICTS..(warehouse + 1) * DISTRICTS {
            self.deliver(district).await;
        }
    }

    async fn deliver(&self, district: u32) {
        self.begin(3);
        let mut locked = Vec::new();
        self.lock(&mut locked, (TableId::District, district)).await;
        self.statement(20);
        let oldest = self.first(OPEN, order_key(district, 0)).await;
        if let Some((key, row)) = oldest.filter(|(key, _)| *key < order_key(district + 1, 0)) {
            self.statement(21);
            self.take_out(OPEN, key).await;
            self.change_row((TableId::NewOrder, row), |engine| engine.tables.new_orders -= 1).await;
            self.statement(22);
            self.find(ORDERS, key).await;
            let carry = |engine: &mut Engine| {
                let order = &mut engine.tables.orders[row as usize];
                order.carried = true;
                *order
            };
            let order = self.change_row((TableId::Order, row), carry).await;
            self.statement(23);
            let mut cents = 0;
            for line in order.first_line..order.first_line + order.lines {
                let deliver = |engine: &mut Engine| {
                    let line = &mut engine.tables.lines[line as usize];
                    line.delivered = true;
                    line.amount
                };
                cents += self.change_row((TableId::OrderLine, line), deliver).await;
            }
            self.lock(&mut locked, (TableId::Customer, order.customer)).await;
            self.statement(24);
            self.find(CUSTOMERS, order.customer).await;
            let customer = order.customer as usize;
            let owe = |engine: &mut Engine| engine.tables.customers[customer].balance += cents;
            self.change_row((TableId::Customer, order.customer), owe).await;
        }
        self.commit(locked).await;
    }

    async fn stock_level(&self, random: &mut Random) {
        let sizes = self.sizes();
        let district = random.below(sizes.warehouses * DISTRICTS);
        let least = 10 + i64::from(random.below(11));
        self.begin(4);
        self.statement(25);
        self.read_row(TableId::District, district).await;
        let next = self.engine().tables.districts[district as usize].next_order;
        let mut rows = Vec::new();
        for number in next.saturating_sub(20).max(1)..next {
            self.statement(26);
            if let Some(row) = self.find(ORDERS, order_key(district, number)).await {
                rows.extend(self.read_lines(row).await);
            }
        }
        rows.sort_unstable();
        rows.dedup();
        self.statement(27);
        let mut low = 0;
        for stock in rows {
            self.find(STOCK, stock).await;
            self.read_row(TableId::Stock, stock).await;
            low += u32::from(self.engine().tables.stock[stock as usize].quantity < least);
        }
        self.push_all(super::space::writes(self.heap(u64::from(low % 8)), 4));
        self.call(COMMIT, &[]);
    }

    /// Searches an index, with `writes_percent` insertions.
    async fn probe(&self, random: &mut Random, writes_percent: u32) {
        let keys = self.engine().options.probe_keys();
        for _ in 0..PROBES {
            let (is_write, key) = (random.below(100) < writes_percent, random.below(keys));
            if is_write {
                self.put(PROBED, (2 * key + 1, key)).await;
                continue;
            }
            let found = self.find(PROBED, 2 * key).await;
            let probed = &mut self.engine().probed;
            probed.0 += u64::from(found.is_some());
            probed.1 = probed.1.wrapping_add(found.map_or(0, u64::from));
        }
        self.give_way().await;
    }
}
