//! The meaning of a rate of New-Orders, and its limits.
//!
//! The unit is NOPM, New-Orders a minute, rolled-back ones included. While terminals pause, ten of
//! them can't do more than 12.86 a minute and warehouse; without pauses a few clients can do many
//! times that on rows that stay in caches. Keeton et al. (1998) kept their runs comparable by
//! scaling the warehouses with the rate.

use super::mix::Mix;

/// To be shown wherever results are.
pub const DISCLAIMER: &str = "Order entry is derived from the TPC-C specification but complies \
    with a part of it only: its results are not TPC-C results, and not comparable to published \
    ones.";

/// New-Orders a minute.
#[must_use]
pub fn nopm(new_orders: u64, seconds: f64) -> f64 {
    new_orders as f64 * 60.0 / seconds
}

/// How a rate lies to what the warehouses could do with people at their terminals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scaling {
    /// New-Orders a minute that the warehouses could do with pauses.
    pub bound_nopm: f64,
    /// The rate, in parts of that.
    pub factor: f64,
}

impl Scaling {
    /// Of a rate.
    #[must_use]
    pub fn of(nopm: f64, warehouses: u32, mix: Mix) -> Self {
        let bound_nopm = mix.bound_per_warehouse() * f64::from(warehouses);
        Self { bound_nopm, factor: nopm / bound_nopm }
    }

    /// In words, when the rate exceeds the bound.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        (self.factor > 1.0).then(|| {
            format!(
                "{:.1} times what {:.0} NOPM of people at terminals would be: a cached regime, \
                 not the specification's scaling",
                self.factor, self.bound_nopm,
            )
        })
    }
}

/// Warehouses for which a rate is within the bound.
#[must_use]
pub fn warehouses_for(nopm: f64, mix: Mix) -> u32 {
    (nopm / mix.bound_per_warehouse()).ceil().max(1.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_scaled_to_warehouses_and_back() {
        assert_eq!(nopm(100, 30.0), 200.0);
        let scaling = Scaling::of(2_572.6, 100, Mix::Weights);
        assert!((scaling.factor - 2.0).abs() < 0.001);
        assert!(scaling.warning().unwrap().starts_with("2.0 times"));
        assert_eq!(Scaling::of(1_000.0, 100, Mix::Weights).warning(), None);
        for rate in [0.0, 1.0, 12.8, 12.9, 50_000.0] {
            let warehouses = warehouses_for(rate, Mix::Weights);
            assert!(Scaling::of(rate, warehouses, Mix::Weights).factor <= 1.0, "{rate}");
        }
        assert_eq!(warehouses_for(12.9, Mix::Weights), 2);
    }
}
