//! Whether the typed inputs are as specified (clause 9.2.2.5), counted over completed transactions.
//!
//! A generator that draws wrongly measures something else, and nobody sees it in the figures. The
//! ranges are the specification's; a run too short to tell a wrong generator from chance says so
//! instead of failing.

use std::ops::{AddAssign, RangeInclusive};

use super::input::{CustomerKey, Input, Kind};
use crate::client::{Condition, Outcome};

/// Counts of completed inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InputCounts {
    /// Of each kind.
    pub kinds: [u64; 5],
    /// New-Orders that were rolled back.
    pub rollbacks: u64,
    /// Lines of orders.
    pub lines: u64,
    /// Lines supplied by another warehouse.
    pub lines_remote: u64,
    /// Payments of customers of another warehouse.
    pub payments_remote: u64,
    /// Payments by last name.
    pub payments_named: u64,
    /// Order-Statuses by last name.
    pub statuses_named: u64,
}

impl InputCounts {
    /// Takes in an input.
    pub fn count(&mut self, input: &Input) {
        self.kinds[input.kind().position()] += 1;
        match input {
            Input::NewOrder(order) => {
                let remote = |line: &&super::Line| line.supply_warehouse != order.warehouse;
                self.rollbacks += u64::from(order.rolls_back);
                self.lines += order.lines.len() as u64;
                self.lines_remote += order.lines.iter().filter(remote).count() as u64;
            }
            Input::Payment(payment) => {
                let remote = payment.customer_warehouse != payment.warehouse;
                self.payments_remote += u64::from(remote);
                self.payments_named += u64::from(matches!(payment.who, CustomerKey::Name(_)));
            }
            Input::OrderStatus(status) => {
                self.statuses_named += u64::from(matches!(status.who, CustomerKey::Name(_)));
            }
            Input::Delivery(_) | Input::StockLevel(_) => {}
        }
    }

    /// The number of each kind.
    #[must_use]
    pub fn of(&self, kind: Kind) -> u64 {
        self.kinds[kind.position()]
    }

    /// The realised mix, in the order of kinds.
    #[must_use]
    pub fn shares(&self) -> [f64; 5] {
        let all = self.kinds.iter().sum::<u64>().max(1) as f64;
        self.kinds.map(|count| count as f64 / all)
    }

    /// The specification's ranges; those of other warehouses need another warehouse.
    #[must_use]
    pub fn check(&self, warehouses: u32) -> Vec<Condition> {
        let (orders, payments) = (self.of(Kind::NewOrder), self.of(Kind::Payment));
        let share = |says, hits, of, range| Share { says, hits, of, range };
        let mut shares = vec![
            share("New-Orders that are rolled back", self.rollbacks, orders, 0.009..=0.011),
            share("Payments by last name", self.payments_named, payments, 0.57..=0.63),
            share(
                "Order-Statuses by last name",
                self.statuses_named,
                self.of(Kind::OrderStatus),
                0.57..=0.63,
            ),
        ];
        if warehouses > 1 {
            let (lines, range) = (self.lines_remote, 0.0095..=0.0105);
            shares.push(share("lines from another warehouse", lines, self.lines, range));
            let remote = self.payments_remote;
            shares.push(share("Payments from another warehouse", remote, payments, 0.14..=0.16));
        }
        let mut conditions: Vec<Condition> = shares.iter().map(Share::condition).collect();
        conditions.push(self.check_lines());
        conditions
    }

    /// 9.5 to 10.5 lines an order; a uniform count from 5 to 15 varies by √10.
    fn check_lines(&self) -> Condition {
        let orders = self.of(Kind::NewOrder) as f64;
        let mean = self.lines as f64 / orders.max(1.0);
        let deviation = 10_f64.sqrt() / orders.max(1.0).sqrt();
        condition("lines of an order", mean, &(9.5..=10.5), deviation)
    }
}

/// A share and the range it must be in.
struct Share {
    says: &'static str,
    hits: u64,
    of: u64,
    range: RangeInclusive<f64>,
}

impl Share {
    fn condition(&self) -> Condition {
        let of = self.of.max(1) as f64;
        let wanted = f64::midpoint(*self.range.start(), *self.range.end());
        let deviation = (wanted * (1.0 - wanted) / of).sqrt();
        condition(self.says, self.hits as f64 / of, &self.range, deviation)
    }
}

/// Chance leaves a range widened by a given number of standard deviations once in a thousand runs.
const BY_CHANCE: f64 = 3.3;

fn condition(
    says: &str,
    found: f64,
    range: &RangeInclusive<f64>,
    standard_deviation: f64,
) -> Condition {
    let (low, high) = (*range.start(), *range.end());
    let slack = BY_CHANCE * standard_deviation;
    let outcome = if range.contains(&found) {
        Outcome::Holds
    } else if (low - slack..=high + slack).contains(&found) {
        Outcome::Skipped(format!("{found:.4}, and too few in this run to tell it from chance"))
    } else {
        Outcome::Broken(format!("{found:.4}"))
    };
    let says = format!("{says}: {low} to {high}");
    Condition { name: "input".to_owned(), says, outcome }
}

impl AddAssign for InputCounts {
    fn add_assign(&mut self, other: Self) {
        for (count, more) in self.kinds.iter_mut().zip(other.kinds) {
            *count += more;
        }
        self.rollbacks += other.rollbacks;
        self.lines += other.lines;
        self.lines_remote += other.lines_remote;
        self.payments_remote += other.payments_remote;
        self.payments_named += other.payments_named;
        self.statuses_named += other.statuses_named;
    }
}
