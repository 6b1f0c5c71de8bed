//! Lines and buses: states of lines on access, misses that others hold dirty, latency, utilisation.

use serde::{Deserialize, Serialize};

use crate::unavailable::{self, Unavailable, Value, ratio};

/// How far shares of one whole may be from it: half a per cent, for shares that were rounded or
/// counted in different slots. Table 9's row that adds up to 99.0 % is beyond it.
pub const SHARES_TOLERANCE: f64 = 0.005;

/// The correction of Keeton et al. (1998, section 6.2, after a communication from Intel) for time
/// in which the bus is unavailable but no counter says so. Of the Pentium Pro's bus only.
const UNCOUNTED_FACTOR: f64 = 2.0;

/// The state of cache lines when they are accessed, before the access changes it (Keeton et al.,
/// section 6.4): accesses, or shares of them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LineStates {
    /// Modified: the only copy, and dirty.
    pub modified: f64,
    /// Exclusive: the only copy, and clean.
    pub exclusive: f64,
    /// Shared: others may have it too.
    pub shared: f64,
    /// Invalid: a miss.
    pub invalid: f64,
}

impl LineStates {
    /// Shares of all accesses.
    ///
    /// # Errors
    /// If there were no accesses, or a count is negative or not finite.
    pub fn shares(self) -> Result<LineStates, Unavailable> {
        for (state, count) in self.named() {
            unavailable::sound(state, count)?;
        }
        let all = self.sum();
        if all == 0.0 {
            return Err(Unavailable::NothingToDivideBy { name: "accesses".to_owned() });
        }
        Ok(LineStates {
            modified: self.modified / all,
            exclusive: self.exclusive / all,
            shared: self.shared / all,
            invalid: self.invalid / all,
        })
    }

    /// Shares as they were given, if they make a whole within [`SHARES_TOLERANCE`].
    ///
    /// # Errors
    /// If they do not, or one is outside 0 to 1.
    pub fn checked(self) -> Result<LineStates, Unavailable> {
        for (state, share) in self.named() {
            unavailable::share(state, share)?;
        }
        match self.sum() {
            sum if (sum - 1.0).abs() <= SHARES_TOLERANCE => Ok(self),
            sum => Err(Unavailable::NotAWhole { name: "line states".to_owned(), sum }),
        }
    }

    /// The share of hits that found the line modified.
    ///
    /// # Errors
    /// If nothing was hit.
    pub fn modified_share_of_hits(&self) -> Value {
        self.share_of_hits(self.modified)
    }

    /// The share of hits that found the line exclusive: of stores, what MESI saves over MSI.
    ///
    /// # Errors
    /// If nothing was hit.
    pub fn exclusive_share_of_hits(&self) -> Value {
        self.share_of_hits(self.exclusive)
    }

    fn share_of_hits(&self, hits: f64) -> Value {
        ratio(&Ok(hits), &Ok(self.modified + self.exclusive + self.shared), "hits")
    }

    fn sum(&self) -> f64 {
        self.modified + self.exclusive + self.shared + self.invalid
    }

    fn named(&self) -> [(&'static str, f64); 4] {
        [
            ("modified", self.modified),
            ("exclusive", self.exclusive),
            ("shared", self.shared),
            ("invalid", self.invalid),
        ]
    }
}

/// The share of misses whose line another cache held dirty.
///
/// # Errors
/// If an input is unavailable, there were no misses, or fewer than dirty ones.
pub fn dirty_share(dirty_misses: &Value, misses: &Value) -> Value {
    unavailable::share("dirty share of misses", ratio(dirty_misses, misses, "misses")?)
}

/// Mean latency of reads from memory, in cycles of the clock that counted the occupancy: the sum
/// over cycles of reads outstanding, over the number of reads (Keeton et al., section 6.2; Little's
/// law). The occupancy must count every outstanding read, not cycles with any.
///
/// # Errors
/// If an input is unavailable, or nothing was read.
pub fn memory_latency_cycles(occupancy_cycles: &Value, reads: &Value) -> Value {
    ratio(occupancy_cycles, reads, "reads")
}

/// Utilisation of the Pentium Pro's bus from what its counters see: twice that, applied here and
/// nowhere else, because as much again is unavailable without being counted.
///
/// # Errors
/// If an input is unavailable, or the bus would be busy for more than all the time.
pub fn bus_utilisation(busy_cycles: &Value, cycles: &Value) -> Value {
    let counted = ratio(busy_cycles, cycles, "bus cycles")?;
    unavailable::share("bus utilisation", counted * UNCOUNTED_FACTOR)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DB_STORES: LineStates =
        LineStates { modified: 0.858, exclusive: 0.006, shared: 0.029, invalid: 0.105 };

    #[test]
    fn counts_become_shares_of_one() {
        let counts = LineStates { modified: 3.0, exclusive: 1.0, shared: 4.0, invalid: 2.0 };
        let shares = counts.shares().unwrap();
        assert!((shares.modified - 0.3).abs() < 1e-12 && (shares.invalid - 0.2).abs() < 1e-12);
        assert_eq!(shares.checked(), Ok(shares));
        let none = LineStates { modified: 0.0, exclusive: 0.0, shared: 0.0, invalid: 0.0 };
        assert!(none.shares().is_err());
        assert!(LineStates { shared: -1.0, ..counts }.shares().is_err());
    }

    #[test]
    fn printed_shares_are_checked() {
        // Table 18's row of four processors is off by rounding, Table 9's by one per cent.
        assert!(DB_STORES.checked().is_ok());
        let overall =
            LineStates { modified: 0.812, exclusive: 0.006, shared: 0.067, invalid: 0.105 };
        let error = overall.checked().unwrap_err().to_string();
        assert!(error.contains("0.9900"), "{error}");
        let per_cent = LineStates { modified: 85.8, exclusive: 0.6, shared: 2.9, invalid: 10.5 };
        assert!(per_cent.checked().is_err());
    }

    #[test]
    fn stores_hit_modified_lines() {
        let share = DB_STORES.modified_share_of_hits().unwrap();
        assert!(share > 0.90, "the paper's words; {share}");
        assert!((DB_STORES.exclusive_share_of_hits().unwrap() - 0.006 / 0.893).abs() < 1e-12);
        let missed = LineStates { modified: 0.0, exclusive: 0.0, shared: 0.0, invalid: 1.0 };
        assert!(missed.modified_share_of_hits().is_err());
    }

    #[test]
    fn the_bus_is_corrected_once() {
        assert_eq!(bus_utilisation(&Ok(20.0), &Ok(100.0)), Ok(0.4));
        assert!(bus_utilisation(&Ok(60.0), &Ok(100.0)).is_err(), "120 % can't be");
        assert_eq!(memory_latency_cycles(&Ok(970.0), &Ok(10.0)), Ok(97.0));
        assert!(memory_latency_cycles(&Ok(970.0), &Ok(0.0)).is_err());
        assert_eq!(dirty_share(&Ok(22.0), &Ok(100.0)), Ok(0.22));
        assert!(dirty_share(&Ok(2.0), &Ok(1.0)).is_err());
    }
}
