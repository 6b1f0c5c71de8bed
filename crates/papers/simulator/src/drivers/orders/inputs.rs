//! What terminals type (TPC-C, revision 5.11, clauses 2.1.6, 2.4.1, 2.5.1).

use workahead_walks::random::Random;

use super::options::{DISTRICTS, Sizes};

/// Constants of the non-uniform choices (clause 2.1.6): any will do.
const CONSTANTS: [u32; 3] = [123, 259, 4211];

/// A line that is ordered: stock and how much.
pub(super) type Wanted = (u32, i64);

/// Whom a payment is of.
#[derive(Debug, Clone, Copy)]
pub(super) enum Who {
    /// A customer.
    Number(u32),
    /// Those of a district with a name.
    Name(u32, u32),
}

/// In 15 of 100 payments, a customer of another warehouse (clause 2.5.1.2).
pub(super) fn who(draws: &mut Random, sizes: Sizes, (warehouse, district): (u32, u32)) -> Who {
    let is_away = draws.below(100) < 15 && sizes.warehouses > 1;
    let district = match is_away {
        true => other(draws, sizes, warehouse) * DISTRICTS + draws.below(DISTRICTS),
        false => district,
    };
    here(draws, sizes, district)
}

/// Six in ten by name.
pub(super) fn here(draws: &mut Random, sizes: Sizes, district: u32) -> Who {
    match draws.below(100) < 60 {
        true => Who::Name(district, non_uniform(draws, (255, CONSTANTS[0]), sizes.names())),
        false => Who::Number(district * sizes.customers + customer(draws, sizes)),
    }
}

fn other(draws: &mut Random, sizes: Sizes, warehouse: u32) -> u32 {
    let other = draws.below(sizes.warehouses - 1);
    other + u32::from(other >= warehouse)
}

/// A customer of a district, some more often than others.
pub(super) fn customer(draws: &mut Random, sizes: Sizes) -> u32 {
    non_uniform(draws, (1023, CONSTANTS[1]), sizes.customers)
}

/// Five to fifteen items, one in a hundred from another warehouse, in the order of stock.
pub(super) fn wanted(draws: &mut Random, sizes: Sizes, warehouse: u32) -> Vec<Wanted> {
    let count = 5 + draws.below(11);
    let lines = (0..count).map(|_| {
        let item = non_uniform(draws, (8191, CONSTANTS[2]), sizes.items);
        let is_away = draws.below(100) == 0 && sizes.warehouses > 1;
        let supply = if is_away { other(draws, sizes, warehouse) } else { warehouse };
        (supply * sizes.items + item, 1 + i64::from(draws.below(10)))
    });
    let mut lines: Vec<Wanted> = lines.collect();
    lines.sort_unstable();
    lines
}

/// A number below `end`, some more often than others (clause 2.1.6).
fn non_uniform(draws: &mut Random, (a, c): (u32, u32), end: u32) -> u32 {
    ((draws.below(a + 1) | draws.below(end)) + c) % end
}
