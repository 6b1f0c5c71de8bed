//! Delivery (clause 2.7.4): the oldest open order of each district, all in one transaction and at
//! once; the specification lets it wait in a queue.

use super::input::Delivery;
use super::population::DISTRICTS;
use super::statements::Ask;
use super::work::{Work, ints};
use crate::session::{Decimal, SessionError, Value};

/// Delivers, but for the commit; districts that had no open order.
pub(super) fn run(work: &mut Work<'_>, input: &Delivery) -> Result<u32, SessionError> {
    let mut skipped = 0;
    for district in 1..=DISTRICTS {
        match oldest(work, input.warehouse, district)? {
            Some(order) => deliver(work, input, (district, order))?,
            None => skipped += 1,
        }
    }
    Ok(skipped)
}

/// The oldest open order. Where each statement has a snapshot of its own, the row may have been
/// deleted by the transaction it waited for; then none comes back although others are open.
fn oldest(work: &mut Work<'_>, warehouse: u32, district: u32) -> Result<Option<u32>, SessionError> {
    let at = ints([warehouse, district]);
    let number = |row: crate::session::Row<'_>| row.int(0).map(|order| order as u32);
    loop {
        let order = work.maybe(work.prepared.ask(Ask::OldestOpen), &at, number)?;
        if order.is_some() || !work.prepared.rereads {
            return Ok(order);
        }
        if work.maybe(work.prepared.ask(Ask::AnyOpen), &at, number)?.is_none() {
            return Ok(None);
        }
    }
}

fn deliver(
    work: &mut Work<'_>,
    input: &Delivery,
    (district, order): (u32, u32),
) -> Result<(), SessionError> {
    let at = ints([input.warehouse, district, order]);
    if work.change_any(Ask::Close, &at)? == 0 {
        let says = format!("order {order} of district {district} was delivered meanwhile");
        return Err(SessionError::Retry(says));
    }
    let customer = work.one(Ask::Delivered, &at, |row| row.int(0))?;
    let [warehouse, district, order] = at;
    let carrier = Value::Int(i64::from(input.carrier));
    work.change(Ask::Carry, &[carrier, warehouse, district, order])?;
    work.change_any(Ask::DeliverLines, &at)?;
    let cents = work.one(Ask::Amount, &at, |row| row.decimal(0, 2))?;
    let amount = Value::Decimal(Decimal::cents(cents));
    work.change(Ask::DeliverCustomer, &[amount, warehouse, district, Value::Int(customer)])
}
