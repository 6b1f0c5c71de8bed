//! Payment (clause 2.5.2): adds to what warehouse and district received, and to the customer.

use super::input::{CustomerKey, Payment};
use super::population::last_name;
use super::statements::Ask;
use super::work::{Work, ints};
use crate::session::{Decimal, SessionError, Value};

/// Letters of a customer's data.
const DATA_MAX: usize = 500;

/// Takes a payment, but for the commit.
pub(super) fn run(work: &mut Work<'_>, input: &Payment) -> Result<(), SessionError> {
    let Payment { warehouse, district, customer_warehouse, customer_district, .. } = *input;
    let amount = Value::Decimal(Decimal::cents(input.cents));
    let [at_warehouse, at_district] = ints([warehouse, district]);
    work.change(Ask::PayWarehouse, &[amount, at_warehouse])?;
    let name = |row: crate::session::Row<'_>| row.text(0).map(str::to_owned);
    let warehouse_name = work.one(Ask::WarehouseAddress, &[at_warehouse], name)?;
    work.change(Ask::PayDistrict, &[amount, at_warehouse, at_district])?;
    let district_name = work.one(Ask::DistrictAddress, &[at_warehouse, at_district], name)?;

    let customer = customer(work, (customer_warehouse, customer_district), input.who)?;
    let who = ints([customer_warehouse, customer_district, customer]);
    let credit = work.one(Ask::PayingCustomer, &who, |row| row.text(10).map(str::to_owned))?;
    let [w, d, c] = who;
    if credit == "BC" {
        let old = work.one(Ask::CreditData, &who, |row| row.text(0).map(str::to_owned))?;
        let data = remembered(input, customer, &old);
        work.change(Ask::PayBadCustomer, &[amount, amount, Value::Text(&data), w, d, c])?;
    } else {
        work.change(Ask::PayCustomer, &[amount, amount, w, d, c])?;
    }
    let history = format!("{warehouse_name}    {district_name}");
    let history = Value::Text(&history);
    work.change(Ask::EnterHistory, &[c, d, w, at_district, at_warehouse, amount, history])
}

/// The history kept of customers with bad credit: the newest payment first.
fn remembered(input: &Payment, customer: u32, old: &str) -> String {
    let Payment { warehouse, district, customer_warehouse, customer_district, cents, .. } = *input;
    let amount = Decimal::cents(cents);
    let mut data = format!(
        "{customer} {customer_district} {customer_warehouse} {district} {warehouse} {amount}|{old}"
    );
    // Loaded texts and those written here are plain letters; other texts stay whole.
    let end = (0..=DATA_MAX.min(data.len())).rev().find(|end| data.is_char_boundary(*end));
    data.truncate(end.unwrap_or(0));
    data
}

/// The customer's number. Of several of a name it is the middle one in the order of first names,
/// rounded up (clauses 2.5.2.2 and 2.6.2.2).
pub(super) fn customer(
    work: &mut Work<'_>,
    (warehouse, district): (u32, u32),
    who: CustomerKey,
) -> Result<u32, SessionError> {
    let name = match who {
        CustomerKey::Number(number) => return Ok(number),
        CustomerKey::Name(name) => last_name(name),
    };
    let [warehouse, district] = ints([warehouse, district]);
    let values = [warehouse, district, Value::Text(&name)];
    let found = work.all(Ask::Named, &values, |row| row.int(0))?;
    match found.get(found.len().div_ceil(2).wrapping_sub(1)) {
        Some(customer) => Ok(*customer as u32),
        None => Err(SessionError::Failed(format!("no customer is named {name}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_payment_is_remembered_first_and_the_oldest_go() {
        let input = Payment {
            warehouse: 1,
            district: 2,
            customer_warehouse: 3,
            customer_district: 4,
            who: CustomerKey::Number(5),
            cents: 1_05,
        };
        assert_eq!(remembered(&input, 5, "old"), "5 4 3 2 1 1.05|old");
        let full = remembered(&input, 5, &"o".repeat(500));
        assert_eq!((full.len(), &full[..15]), (500, "5 4 3 2 1 1.05|"));
    }
}
