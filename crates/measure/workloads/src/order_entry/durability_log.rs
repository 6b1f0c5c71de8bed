//! Acknowledged transactions, kept by the clients: "every acknowledged order is there".
//!
//! ```text
//! acknowledged  ⊆  found           a commit that was acknowledged lasts
//! found − acknowledged ≤ unsure    nothing is there that was not submitted
//! ```
//!
//! Unsure is a commit that got no answer, because the server or the connection went: it may be
//! there. This ties the figure that is reported to the database, and it holds across a crash of the
//! server too; it says nothing of lost power.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::population::{DISTRICTS, Population};
use crate::client::{Condition, Outcome};
use crate::session::{Session, SessionError, Value, first};

/// An order that was committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) customer: u32,
    pub(super) lines: u32,
}

/// All clients' record.
#[derive(Debug, Default)]
pub(super) struct DurabilityLog {
    record: Mutex<Record>,
}

#[derive(Debug, Default)]
struct Record {
    /// By warehouse and district, by number.
    orders: BTreeMap<(u32, u32), BTreeMap<u32, Order>>,
    orders_unsure: u64,
    payments: u64,
    payments_unsure: u64,
    paid_cents: i64,
}

/// How many there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AcknowledgedCounts {
    /// Orders.
    pub orders: u64,
    /// Payments.
    pub payments: u64,
    /// Commits of either that the server did not answer.
    pub unanswered: u64,
}

/// A commit that the server did not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unsure {
    Order,
    Payment,
}

impl DurabilityLog {
    pub(super) fn counts(&self) -> AcknowledgedCounts {
        let record = self.record();
        AcknowledgedCounts {
            orders: record.orders.values().map(|orders| orders.len() as u64).sum(),
            payments: record.payments,
            unanswered: record.orders_unsure + record.payments_unsure,
        }
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn forget(&self) {
        *self.record() = Record::default();
    }

    pub(super) fn order(&self, at: (u32, u32), number: u32, order: Order) {
        self.record().orders.entry(at).or_default().insert(number, order);
    }

    pub(super) fn payment(&self, cents: i64) {
        let mut record = self.record();
        record.payments += 1;
        record.paid_cents += cents;
    }

    pub(super) fn unsure(&self, of: Unsure) {
        let mut record = self.record();
        match of {
            Unsure::Order => record.orders_unsure += 1,
            Unsure::Payment => record.payments_unsure += 1,
        }
    }

    /// Compares with the database.
    pub(super) fn check(
        &self,
        session: &mut dyn Session,
        population: Population,
    ) -> Result<Vec<Condition>, SessionError> {
        Ok(vec![self.check_orders(session, population)?, self.check_payments(session, population)?])
    }

    fn check_orders(
        &self,
        session: &mut dyn Session,
        population: Population,
    ) -> Result<Condition, SessionError> {
        const FOUND: &str = "select o_id, o_c_id, o_ol_cnt from orders \
                             where o_w_id = ? and o_d_id = ? and o_id > ?";
        let statement = session.prepare(&session.dialect().placeholders(FOUND))?;
        let record = self.record();
        let none = BTreeMap::new();
        let (mut missing, mut extra) = (Vec::new(), 0);
        for warehouse in 1..=population.warehouses {
            for district in 1..=DISTRICTS {
                let expected = record.orders.get(&(warehouse, district)).unwrap_or(&none);
                // Only what is looked for is kept: a server may send rows without end.
                let mut found = BTreeSet::new();
                let values = super::work::ints([warehouse, district, population.customers]);
                session.query(statement, &values, &mut |row| {
                    let number = row.int(0)? as u32;
                    let order = Order { customer: row.int(1)? as u32, lines: row.int(2)? as u32 };
                    match expected.get(&number) {
                        Some(entered) if *entered == order => {
                            found.insert(number);
                        }
                        Some(_) => {}
                        None => extra += 1,
                    }
                    Ok(())
                })?;
                let lost = expected.keys().find(|number| !found.contains(*number));
                missing.extend(lost.map(|number| (warehouse, district, *number)));
            }
        }
        let outcome = match missing.first() {
            Some((warehouse, district, number)) => Outcome::Broken(format!(
                "order {number} of district {district} of warehouse {warehouse} was acknowledged \
                 and is not there as it was entered"
            )),
            None if extra > record.orders_unsure => Outcome::Broken(format!(
                "{extra} orders are there that were not acknowledged, where {} commits went \
                 unanswered",
                record.orders_unsure,
            )),
            None => Outcome::Holds,
        };
        Ok(Condition {
            name: "acknowledged orders".to_owned(),
            says: "every order that was acknowledged is there, and no other".to_owned(),
            outcome,
        })
    }

    fn check_payments(
        &self,
        session: &mut dyn Session,
        population: Population,
    ) -> Result<Condition, SessionError> {
        const FOUND: &str = "select count(*), coalesce(sum(h_amount), 0) from history";
        let statement = session.prepare(FOUND)?;
        let no_values: [Value<'_>; 0] = [];
        let found = first(session, statement, &no_values, |row| {
            Ok((row.int(0)?.unsigned_abs(), row.decimal(1, 2)?))
        })?;
        let (count, cents) = found.unwrap_or((0, 0));
        let districts = u64::from(population.warehouses * DISTRICTS);
        let count = count.saturating_sub(districts * u64::from(population.customers));
        let cents = cents - districts as i64 * population.district_cents();
        let record = self.record();
        let counted = (record.payments..=record.payments + record.payments_unsure).contains(&count);
        // Amounts of unsure payments are unknown; they only add.
        let summed = match count == record.payments {
            true => cents == record.paid_cents,
            false => cents > record.paid_cents,
        };
        Ok(Condition {
            name: "acknowledged payments".to_owned(),
            says: "the history has every payment that was acknowledged, and no other".to_owned(),
            outcome: match counted && summed {
                true => Outcome::Holds,
                false => Outcome::Broken(format!(
                    "{count} payments of {cents} cents are there; {} of {} were acknowledged and \
                     {} commits went unanswered",
                    record.payments, record.paid_cents, record.payments_unsure,
                )),
            },
        })
    }
}
