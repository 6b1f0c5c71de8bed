//! How many rows there are, and the constants that are drawn once.
//!
//! Clause 1.2.1 gives the sizes for a warehouse, clause 2.1.6.1 the constant C of each non-uniform
//! choice: the one for last names while loading and the one while running differ by 65 to 119, but
//! not by 96 or 112.

use crate::WorkloadError;
use crate::random::Random;

/// Districts of a warehouse; also its terminals.
pub const DISTRICTS: u32 = 10;

/// Sizes of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Population {
    /// Warehouses.
    pub warehouses: u32,
    /// Items, and rows of stock in each warehouse.
    pub items: u32,
    /// Customers of a district; as many orders are there from the beginning.
    pub customers: u32,
}

impl Population {
    /// More would leave the numbers of streams.
    const WAREHOUSES_MAX: u32 = 100_000;
    /// A Stock-Level looks at this number of orders of a district.
    const CUSTOMERS_MIN: u32 = 20;

    /// The sizes of the specification.
    #[must_use]
    pub fn of(warehouses: u32) -> Self {
        Self { warehouses, items: 100_000, customers: 3_000 }
    }

    /// Sizes for tests: a fiftieth of the specification's. Nothing measured on it says anything.
    #[must_use]
    pub fn tiny(warehouses: u32) -> Self {
        Self { warehouses, items: 2_000, customers: 60 }
    }

    /// Whether the sizes can be made.
    pub(super) fn checked(self) -> Result<Self, WorkloadError> {
        let Self { warehouses, items, customers } = self;
        let possible = (1..=Self::WAREHOUSES_MAX).contains(&warehouses)
            && (100..=100_000).contains(&items)
            && (Self::CUSTOMERS_MIN..=3_000).contains(&customers);
        if possible {
            Ok(self)
        } else {
            Err(WorkloadError::Population { warehouses, items, customers })
        }
    }

    /// Whether only the number of warehouses is our own.
    #[must_use]
    pub fn is_full(&self) -> bool {
        *self == Self::of(self.warehouses)
    }

    /// Last names in use.
    pub(super) fn names(&self) -> u32 {
        self.customers.min(1_000)
    }

    /// The first order that is not delivered yet: the last 900 of 3,000 are open.
    pub(super) fn first_open(&self) -> u32 {
        self.customers - self.customers * 3 / 10 + 1
    }

    /// The sum that every district has received.
    pub(super) fn district_cents(&self) -> i64 {
        i64::from(self.customers) * FIRST_PAYMENT_CENTS
    }
}

/// Every customer has paid this once.
pub(super) const FIRST_PAYMENT_CENTS: i64 = 1_000;

/// The constants C of the non-uniform choices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Constants {
    /// Of last names while loading, 0 to 255.
    pub name_loading: u32,
    /// Of last names while running, 0 to 255.
    pub name_running: u32,
    /// Of customers, 0 to 1023.
    pub customer: u32,
    /// Of items, 0 to 8191.
    pub item: u32,
}

impl Constants {
    /// Random them.
    pub(super) fn new(random: &mut Random) -> Self {
        let name_loading = random.within(0, 255) as u32;
        let allowed: Vec<u32> =
            (0..=255).filter(|running| Self::may_differ(name_loading.abs_diff(*running))).collect();
        // From every start at least one of the two directions has 65 steps or more.
        let name_running = allowed[random.within(0, allowed.len() as i64 - 1) as usize];
        let customer = random.within(0, 1023) as u32;
        Self { name_loading, name_running, customer, item: random.within(0, 8191) as u32 }
    }

    fn may_differ(by: u32) -> bool {
        (65..=119).contains(&by) && by != 96 && by != 112
    }
}

/// A non-uniform choice from `low` to `high` (clause 2.1.6): the bitwise or of two uniform numbers
/// makes numbers with many ones likely; C moves where they lie.
pub(super) fn nurand(random: &mut Random, a: u32, (low, high): (u32, u32), c: u32) -> u32 {
    let uniform = random.within(i64::from(low), i64::from(high)) as u64;
    let ones = random.within(0, i64::from(a)) as u64 | uniform;
    ((ones + u64::from(c)) % u64::from(high - low + 1)) as u32 + low
}

/// The last name of a number from 0 to 999: a syllable for each of its three digits (clause
/// 4.3.2.3).
pub(super) fn last_name(number: u32) -> String {
    const SYLLABLES: [&str; 10] =
        ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
    let digits = [number / 100 % 10, number / 10 % 10, number % 10];
    digits.map(|digit| SYLLABLES[digit as usize]).concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_syllables_of_digits() {
        assert_eq!(last_name(371), "PRICALLYOUGHT");
        assert_eq!(last_name(0), "BARBARBAR");
        let names: std::collections::BTreeSet<String> = (0..1_000).map(last_name).collect();
        assert_eq!(names.len(), 1_000);
        assert!(names.iter().all(|name| name.len() <= 16), "they fit their column");
    }

    #[test]
    fn nurand_prefers_but_reaches_all() {
        let mut random = Random::new(3, 0, 0);
        let mut counts = vec![0_u32; 1_000];
        for _ in 0..200_000 {
            counts[nurand(&mut random, 255, (0, 999), 123) as usize] += 1;
        }
        // Uniform, a name would come 200 times.
        let most = counts.iter().max().unwrap();
        assert!(*most > 1_000, "{most}: a few names are frequent");
        let seen = counts.iter().filter(|count| **count > 0).count();
        assert!(seen > 900, "{seen}: and most are seen");
    }

    #[test]
    fn impossible_sizes_are_refused() {
        assert!(Population::of(1).checked().is_ok() && Population::tiny(2).checked().is_ok());
        for wrong in [
            Population::of(0),
            Population { items: 0, ..Population::of(1) },
            Population { customers: 3_001, ..Population::of(1) },
            Population { customers: 3, ..Population::of(1) },
        ] {
            assert!(wrong.checked().is_err(), "{wrong:?}");
        }
        assert_eq!(Population::of(1).first_open(), 2_101);
    }

    proptest! {
        #[test]
        fn nurand_stays_within_its_range(
            seed: u64, a in prop::sample::select(vec![255_u32, 1023, 8191]),
            low in 0_u32..2, span in 1_u32..100_000, c in 0_u32..8192,
        ) {
            let chosen = nurand(&mut Random::new(seed, 0, 0), a, (low, low + span), c);
            prop_assert!((low..=low + span).contains(&chosen));
        }

        #[test]
        fn the_constants_of_last_names_differ_as_they_must(seed: u64) {
            let constants = Constants::new(&mut Random::new(seed, 0, 0));
            let differ = constants.name_loading.abs_diff(constants.name_running);
            prop_assert!((65..=119).contains(&differ) && differ != 96 && differ != 112);
            prop_assert!(constants.customer <= 1023 && constants.item <= 8191);
        }
    }
}
