//! New-Order (clause 2.4.2): enters an order of 5 to 15 lines and takes its items out of stock.
//!
//! One in a hundred names an item that does not exist, as its last: everything before it is done,
//! and then undone. It counts as a New-Order.

use super::input::{Line, NewOrder};
use super::statements::Ask;
use super::work::{Work, ints};
use crate::session::{Decimal, SessionError, Value};

/// The outcome of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OrderOutcome {
    /// It has this number in its district, once committed.
    Order(u32),
    /// An item does not exist: it is to be rolled back.
    NoSuchItem,
}

/// Enters an order, but for the commit.
pub(super) fn run(work: &mut Work<'_>, input: &NewOrder) -> Result<OrderOutcome, SessionError> {
    let NewOrder { warehouse, district, customer, ref lines, .. } = *input;
    work.one(Ask::WarehouseTax, &ints([warehouse]), |row| row.decimal(0, 4))?;
    let order = work.one(Ask::NextOrder, &ints([warehouse, district]), |row| {
        row.decimal(1, 4)?;
        Ok(row.int(0)? as u32)
    })?;
    work.change(Ask::TakeOrder, &ints([warehouse, district]))?;
    let who = ints([warehouse, district, customer]);
    work.one(Ask::OrderingCustomer, &who, |row| row.decimal(0, 4))?;
    let local = lines.iter().all(|line| line.supply_warehouse == warehouse);
    let count = lines.len() as u32;
    let entry = ints([order, district, warehouse, customer, count, u32::from(local)]);
    work.change(Ask::EnterOrder, &entry)?;
    work.change(Ask::EnterNewOrder, &ints([order, district, warehouse]))?;
    for (number, line) in (1..).zip(lines) {
        let Some(price_cents) = price_cents(work, line)? else {
            return Ok(OrderOutcome::NoSuchItem);
        };
        let info = take_stock(work, line, (warehouse, district))?;
        let [order, district, warehouse, number, item, supply, quantity] = ints([
            order,
            district,
            warehouse,
            number,
            line.item,
            line.supply_warehouse,
            line.quantity,
        ]);
        let amount = Value::Decimal(Decimal::cents(price_cents * i64::from(line.quantity)));
        let info = Value::Text(&info);
        let values = [order, district, warehouse, number, item, supply, quantity, amount, info];
        work.change(Ask::EnterLine, &values)?;
    }
    Ok(OrderOutcome::Order(order))
}

/// The item's price; none when there is no such item.
fn price_cents(work: &mut Work<'_>, line: &Line) -> Result<Option<i64>, SessionError> {
    let statement = work.prepared.ask(Ask::Item);
    work.maybe(statement, &ints([line.item]), |row| row.decimal(0, 2))
}

/// Takes the items out of stock, which is filled up by 91 when fewer than 10 would be left; the
/// district's text of the stock.
fn take_stock(
    work: &mut Work<'_>,
    line: &Line,
    (warehouse, district): (u32, u32),
) -> Result<String, SessionError> {
    let statement = work.prepared.stock(district);
    let found = work.maybe(statement, &ints([line.supply_warehouse, line.item]), |row| {
        Ok((row.int(0)?, row.text(2)?.to_owned()))
    })?;
    let (stocked, info) = found.ok_or_else(|| {
        SessionError::Failed(format!("item {} is not in stock anywhere", line.item))
    })?;
    let quantity = i64::from(line.quantity);
    let left = if stocked >= quantity + 10 { stocked - quantity } else { stocked - quantity + 91 };
    let [ordered, remote, supply, item] = ints([
        line.quantity,
        u32::from(line.supply_warehouse != warehouse),
        line.supply_warehouse,
        line.item,
    ]);
    work.change(Ask::TakeStock, &[Value::Int(left), ordered, remote, supply, item])?;
    Ok(info)
}
