//! Inputs of transactions (TPC-C, revision 5.11, clauses 2.1.6, 2.4.1, 2.5.1).

use workahead_walks::random::Random;

use super::options::{DISTRICTS, Sizes};

/// Constants of the non-uniform choices (clause 2.1.6): any values are allowed.
const CONSTANTS: [u32; 3] = [123, 259, 4211];

/// An ordered item: row of stock, and quantity.
pub(super) type OrderedItem = (u32, i64);

/// The customer of a payment.
#[derive(Debug, Clone, Copy)]
pub(super) enum CustomerSelector {
    /// By number.
    Number(u32),
    /// By district and last name.
    Name(u32, u32),
}

/// In 15 of 100 payments, a customer of another warehouse (clause 2.5.1.2).
pub(super) fn payment_customer(
    random: &mut Random,
    sizes: Sizes,
    warehouse: u32,
    district: u32,
) -> CustomerSelector {
    let is_away = random.below(100) < 15 && sizes.warehouses > 1;
    let district = match is_away {
        true => other(random, sizes, warehouse) * DISTRICTS + random.below(DISTRICTS),
        false => district,
    };
    customer_of(random, sizes, district)
}

/// A customer of a district, six in ten by name.
pub(super) fn customer_of(random: &mut Random, sizes: Sizes, district: u32) -> CustomerSelector {
    match random.below(100) < 60 {
        true => {
            CustomerSelector::Name(district, non_uniform(random, 255, CONSTANTS[0], sizes.names()))
        }
        false => CustomerSelector::Number(district * sizes.customers + customer(random, sizes)),
    }
}

fn other(random: &mut Random, sizes: Sizes, warehouse: u32) -> u32 {
    let other = random.below(sizes.warehouses - 1);
    other + u32::from(other >= warehouse)
}

/// A customer of a district, non-uniform.
pub(super) fn customer(random: &mut Random, sizes: Sizes) -> u32 {
    non_uniform(random, 1023, CONSTANTS[1], sizes.customers)
}

/// Five to fifteen items, one in a hundred from another warehouse, in the order of stock.
pub(super) fn ordered_items(random: &mut Random, sizes: Sizes, warehouse: u32) -> Vec<OrderedItem> {
    let count = 5 + random.below(11);
    let lines = (0..count).map(|_| {
        let item = non_uniform(random, 8191, CONSTANTS[2], sizes.items);
        let is_away = random.below(100) == 0 && sizes.warehouses > 1;
        let supply = if is_away { other(random, sizes, warehouse) } else { warehouse };
        (supply * sizes.items + item, 1 + i64::from(random.below(10)))
    });
    let mut lines: Vec<OrderedItem> = lines.collect();
    lines.sort_unstable();
    lines
}

/// A non-uniform number below `end` (clause 2.1.6).
fn non_uniform(random: &mut Random, a: u32, c: u32, end: u32) -> u32 {
    ((random.below(a + 1) | random.below(end)) + c) % end
}
