//! Order-Status (clause 2.6.2) and Stock-Level (clause 2.8.2), which only read.

use super::input::{OrderStatus, StockLevel};
use super::payment::customer;
use super::statements::Ask;
use super::work::{Work, ints};
use crate::session::{SessionError, Value};

/// Orders of a district that a Stock-Level looks at.
const RECENT: i64 = 20;

/// A customer's last order.
pub(super) fn order_status(work: &mut Work<'_>, input: &OrderStatus) -> Result<(), SessionError> {
    let OrderStatus { warehouse, district, who } = *input;
    let customer = customer(work, (warehouse, district), who)?;
    let who = ints([warehouse, district, customer]);
    work.one(Ask::StatusCustomer, &who, |row| row.decimal(0, 2))?;
    let order = work.one(Ask::LastOrder, &who, |row| row.int(0))?;
    let [warehouse, district, _] = who;
    let values = [warehouse, district, Value::Int(order)];
    let lines = work.all(Ask::LastLines, &values, |row| row.decimal(3, 2))?;
    match lines.len() {
        5..=15 => Ok(()),
        count => Err(SessionError::Failed(format!("order {order} has {count} lines, not 5 to 15"))),
    }
}

/// Items of the last orders of which there is little left.
pub(super) fn stock_level(work: &mut Work<'_>, input: &StockLevel) -> Result<(), SessionError> {
    let StockLevel { warehouse, district, threshold } = *input;
    let next = work.one(Ask::RecentOrders, &ints([warehouse, district]), |row| row.int(0))?;
    let [warehouse, district, threshold] = ints([warehouse, district, threshold]);
    let (to, from) = (Value::Int(next), Value::Int(next - RECENT));
    let values = [warehouse, district, to, from, warehouse, threshold];
    work.one(Ask::LowStock, &values, |row| row.int(0)).map(drop)
}
