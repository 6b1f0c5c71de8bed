//! Cycles spent computing, out of the retire profile.
//!
//! A µop that retires together with k - 1 others took 1/k of a cycle (Keeton et al. 1998, sections
//! 3.1 and 5.3). That is the least the µops could have taken in this grouping; the rest are stalls.
//! The paper stops at three; the width here is that of the profile.

use serde::{Deserialize, Serialize};

use crate::unavailable::{self, Unavailable, Value};

/// How far shares of one whole may be from it: half a per cent, for shares that were rounded or
/// counted in different slots.
const SHARES_TOLERANCE: f64 = 0.005;

/// How exactly 1/3 is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reciprocals {
    /// 1/k.
    #[default]
    Exact,
    /// 1/k to two decimals, as the paper writes it: 0.33. To reprint its examples.
    Rounded,
}

impl Reciprocals {
    fn of(self, width: usize) -> f64 {
        let exact = 1.0 / width as f64;
        match self {
            Reciprocals::Exact => exact,
            Reciprocals::Rounded => (exact * 100.0).round() / 100.0,
        }
    }
}

/// Computation cycles per µop: the sum over widths k of f_k / k. `uop_shares[k - 1]` is f_k, the
/// share of all µops that retired in cycles that retired k of them; the shares add up to 1.
///
/// # Errors
/// If there are no widths, a share is outside 0 to 1, or the shares do not add up to 1.
pub fn computation_ucpi(uop_shares: &[f64], reciprocals: Reciprocals) -> Value {
    const NAME: &str = "µops by retire width";
    if uop_shares.is_empty() {
        return Err(Unavailable::NoWidths { name: NAME.to_owned() });
    }
    for &of_width in uop_shares {
        unavailable::share(NAME, of_width)?;
    }
    let sum: f64 = uop_shares.iter().sum();
    if (sum - 1.0).abs() > SHARES_TOLERANCE {
        return Err(Unavailable::NotAWhole { name: NAME.to_owned(), sum });
    }
    Ok(uop_shares.iter().zip(1..).map(|(share, width)| share * reciprocals.of(width)).sum())
}

/// Computation cycles per instruction.
///
/// # Errors
/// If an input is unavailable or below zero.
pub fn computation_cpi(ucpi: &Value, uops_per_instruction: &Value) -> Value {
    let uops = unavailable::sound("µops per instruction", uops_per_instruction.clone()?)?;
    Ok(unavailable::sound("computation per µop", ucpi.clone()?)? * uops)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use Reciprocals::{Exact, Rounded};

    fn close(value: Value, expected: f64) {
        let value = value.expect("present");
        assert!((value - expected).abs() < 5e-4, "{value} is not {expected}");
    }

    #[test]
    fn the_papers_example_and_its_profiles() {
        close(computation_ucpi(&[0.25, 0.22, 0.53], Rounded), 0.535);
        // Table 17: overall, database, operating system.
        close(computation_ucpi(&[0.246, 0.222, 0.532], Rounded), 0.533);
        close(computation_ucpi(&[0.237, 0.225, 0.537], Rounded), 0.527);
        close(computation_ucpi(&[0.283, 0.203, 0.513], Rounded), 0.554);
        // Where the paper prints .54, which only the exact third gives.
        close(computation_ucpi(&[0.246, 0.222, 0.532], Exact), 0.5343);
        close(computation_cpi(&Ok(0.5349), &Ok(1.87)), 1.0003);
        close(computation_cpi(&Ok(0.5349), &Ok(1.84)), 0.9842);
    }

    #[test]
    fn wide_cores_have_wide_profiles() {
        let mut shares = [0.0; 8];
        shares[7] = 1.0;
        close(computation_ucpi(&shares, Exact), 0.125);
        close(computation_ucpi(&[1.0], Exact), 1.0);
    }

    #[test]
    fn shares_that_are_none_are_refused() {
        assert!(computation_ucpi(&[], Exact).is_err());
        assert!(computation_ucpi(&[0.5, 0.2, 0.2], Exact).is_err());
        assert!(computation_ucpi(&[25.0, 22.0, 53.0], Exact).is_err(), "per cent");
        assert!(computation_ucpi(&[1.2, -0.2], Exact).is_err());
        assert!(computation_cpi(&Ok(0.5), &Ok(f64::NAN)).is_err());
    }

    proptest! {
        // The oracle counts the cycles that retire anything and the µops.
        #[test]
        fn it_is_the_cycles_that_retire(cycles in prop::collection::vec(0u32..1000, 1..9)) {
            let busy: f64 = cycles.iter().map(|&cycles| f64::from(cycles)).sum();
            let of_width = |(&cycles, width): (&u32, u32)| f64::from(cycles) * f64::from(width);
            let uops: f64 = cycles.iter().zip(1..).map(of_width).sum();
            prop_assume!(uops > 0.0);
            let shares: Vec<f64> =
                cycles.iter().zip(1..).map(|pair| of_width(pair) / uops).collect();
            let ucpi = computation_ucpi(&shares, Exact).unwrap();
            prop_assert!((ucpi - busy / uops).abs() < 1e-9);
        }
    }
}
