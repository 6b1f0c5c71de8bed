//! How many instructions or µops a core decodes or retires in a cycle.
//!
//! Cycles by width are what counters with a counter mask give. All else follows: the shares of
//! instructions, the throughput, the CPI (Keeton et al. 1998, section 5.1, Tables 15 to 17).

use serde::{Deserialize, Serialize};

use crate::unavailable::{self, Unavailable, Value, ratio};

/// Cycles by width.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// The name of what is decoded or retired: `instructions retired`.
    pub name: String,
    /// Cycles in which exactly 0, 1, 2, … of them were. Shares of cycles do as well.
    pub cycles: Vec<f64>,
}

impl Profile {
    /// A profile out of cycles by width, the idle ones first.
    ///
    /// # Errors
    /// If there is no width above 0, or a count is negative or not finite.
    pub fn new(name: &str, cycles: &[f64]) -> Result<Profile, Unavailable> {
        if cycles.len() < 2 {
            return Err(Unavailable::NoWidths { name: name.to_owned() });
        }
        for &at_width in cycles {
            unavailable::sound(name, at_width)?;
        }
        Ok(Profile { name: name.to_owned(), cycles: cycles.to_vec() })
    }

    /// Shares of all instructions (or µops), by width from 1.
    ///
    /// # Errors
    /// If there were no instructions.
    pub fn instruction_shares(&self) -> Result<Vec<f64>, Unavailable> {
        let all = Ok(self.instructions());
        self.by_width().map(|at_width| ratio(&Ok(at_width), &all, &self.name)).collect()
    }

    /// Instructions (or µops) per cycle.
    ///
    /// # Errors
    /// If there were no cycles.
    pub fn per_cycle(&self) -> Value {
        ratio(&Ok(self.instructions()), &Ok(self.cycles.iter().sum()), &self.name)
    }

    /// Cycles per instruction (or µop).
    ///
    /// # Errors
    /// If there were no instructions.
    pub fn cpi(&self) -> Value {
        ratio(&Ok(1.0), &self.per_cycle(), &self.name)
    }

    fn instructions(&self) -> f64 {
        self.by_width().sum()
    }

    fn by_width(&self) -> impl Iterator<Item = f64> {
        self.cycles.iter().enumerate().skip(1).map(|(width, cycles)| width as f64 * cycles)
    }
}

/// Decoded over retired: the excess over 1 was fetched in vain by speculation.
///
/// # Errors
/// If one of them has no cycles, or nothing retired.
pub fn speculative_factor(decoded: &Profile, retired: &Profile) -> Value {
    ratio(&decoded.per_cycle(), &retired.per_cycle(), &retired.name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DECODE: [f64; 4] = [68.7, 17.9, 8.1, 5.3];
    const RETIRE: [f64; 4] = [76.2, 15.2, 6.1, 2.6];
    const UOPS: [f64; 4] = [66.0, 15.6, 7.0, 11.3];

    fn of(cycles: &[f64]) -> Profile {
        Profile::new("instructions", cycles).unwrap()
    }

    #[test]
    fn the_papers_profiles_give_its_figures() {
        // Shares of 100.1 % and 99.9 % cycles, so the sums are a little off, as are the figures.
        assert!((of(&RETIRE).cpi().unwrap() - 2.84).abs() < 0.005);
        assert!((of(&UOPS).cpi().unwrap() - 1.57).abs() < 0.005);
        let factor = speculative_factor(&of(&DECODE), &of(&RETIRE)).unwrap();
        assert!((factor - 1.42).abs() < 0.005, "{factor}");
        for (cycles, printed) in [
            (DECODE, [0.357, 0.326, 0.317]),
            (RETIRE, [0.433, 0.349, 0.218]),
            (UOPS, [0.246, 0.222, 0.532]),
        ] {
            let shares = of(&cycles).instruction_shares().unwrap();
            let off = shares.iter().zip(printed).map(|(share, printed)| (share - printed).abs());
            assert!(off.fold(0.0, f64::max) < 0.005, "{shares:?} are not {printed:?}");
        }
    }

    #[test]
    fn nothing_retired_has_no_cpi() {
        let idle = of(&[100.0, 0.0, 0.0]);
        assert_eq!(idle.per_cycle(), Ok(0.0));
        assert!(idle.cpi().is_err() && idle.instruction_shares().is_err());
        assert!(speculative_factor(&of(&DECODE), &idle).is_err());
        assert!(of(&[0.0, 0.0]).per_cycle().is_err());
        assert!(Profile::new("x", &[1.0]).is_err() && Profile::new("x", &[1.0, -1.0]).is_err());
    }

    proptest! {
        #[test]
        fn shares_are_of_a_whole(cycles in prop::collection::vec(0.0..1e6f64, 2..9)) {
            prop_assume!(cycles[1..].iter().sum::<f64>() > 1.0);
            let profile = of(&cycles);
            let instructions: f64 = profile.instruction_shares().unwrap().iter().sum();
            prop_assert!((instructions - 1.0).abs() < 1e-9);
            // Never wider than the widest, and CPI its inverse.
            let per_cycle = profile.per_cycle().unwrap();
            prop_assert!(per_cycle <= (cycles.len() - 1) as f64);
            prop_assert!((per_cycle * profile.cpi().unwrap() - 1.0).abs() < 1e-9);
        }
    }
}
