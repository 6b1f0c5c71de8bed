//! CPI in three parts, and CPI of two kinds of code together.
//!
//! Keeton et al. (1998, section 3.1): time neither spent computing nor stalled for resources is
//! stalled for instructions, so the three parts, each from events of its own, should add up to the
//! cycles measured. How far they miss is the method's own error.

use serde::{Deserialize, Serialize};

use crate::unavailable::{self, Unavailable, Value, ratio};

/// Cycles per instruction or per µop, in three parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Breakdown {
    /// Spent computing, from the retire profile: see [`super::computation_ucpi`].
    pub computation: Value,
    /// The decoder was ahead of execution: buffers or units full. No cache misses.
    pub resource: Value,
    /// Fetch was stalled for any reason.
    pub instruction: Value,
}

impl Breakdown {
    /// The sum of the parts.
    ///
    /// # Errors
    /// If a part is unavailable or below zero.
    pub fn computed(&self) -> Value {
        Ok(unavailable::sound("computation", self.computation.clone()?)? + self.stalls()?)
    }

    /// The two kinds of stalls together.
    ///
    /// # Errors
    /// If one is unavailable or below zero.
    pub fn stalls(&self) -> Value {
        let resource = unavailable::sound("resource stalls", self.resource.clone()?)?;
        Ok(resource + unavailable::sound("instruction stalls", self.instruction.clone()?)?)
    }

    /// Computed over measured, less one: -0.058 when 5.8 % of the cycles are not explained.
    ///
    /// # Errors
    /// If a part is unavailable, or no cycles were measured.
    pub fn error(&self, measured: &Value) -> Value {
        Ok(ratio(&self.computed(), measured, "measured CPI")? - 1.0)
    }

    /// The stalled share of the measured cycles.
    ///
    /// # Errors
    /// If a stall is unavailable, or no cycles were measured.
    pub fn stalled_share(&self, measured: &Value) -> Value {
        ratio(&self.stalls(), measured, "measured CPI")
    }

    /// From cycles per instruction to cycles per µop.
    pub fn per_uop(&self, uops_per_instruction: &Value) -> Breakdown {
        let per_uop =
            |part: &Value| -> Value { Ok(part.clone()? / positive(uops_per_instruction)?) };
        Breakdown {
            computation: per_uop(&self.computation),
            resource: per_uop(&self.resource),
            instruction: per_uop(&self.instruction),
        }
    }
}

fn positive(uops_per_instruction: &Value) -> Value {
    const NAME: &str = "µops per instruction";
    match unavailable::sound(NAME, uops_per_instruction.clone()?)? {
        0.0 => Err(Unavailable::NothingToDivideBy { name: NAME.to_owned() }),
        uops => Ok(uops),
    }
}

/// The CPI of programs and the system together, where programs ran for the share `user_share` of
/// all *cycles*. Instructions add up, not CPIs: `1 / (f / CPI_user + (1 - f) / CPI_kernel)`. To
/// weigh by time what is relative to instructions, `f CPI_user + (1 - f) CPI_kernel`, is wrong.
///
/// # Errors
/// If an input is unavailable, a CPI is zero, or the share is outside 0 to 1.
pub fn mix_by_time(user_share: &Value, cpi_user: &Value, cpi_kernel: &Value) -> Value {
    let share = unavailable::share("share of time in user mode", user_share.clone()?)?;
    let user = ratio(&Ok(share), cpi_user, "user CPI")?;
    let kernel = ratio(&Ok(1.0 - share), cpi_kernel, "kernel CPI")?;
    Ok(1.0 / (user + kernel))
}

/// The share of cycles in user mode that makes of both CPIs the overall one: [`mix_by_time`] solved
/// for its share.
///
/// # Errors
/// If an input is unavailable, a CPI is zero, both are alike, or the overall CPI is not between
/// them.
pub fn time_share(cpi: &Value, cpi_user: &Value, cpi_kernel: &Value) -> Value {
    let ipc = |cpi: &Value, name| ratio(&Ok(1.0), cpi, name);
    let kernel = ipc(cpi_kernel, "kernel CPI")?;
    let above = ipc(cpi, "overall CPI")? - kernel;
    let apart = ipc(cpi_user, "user CPI")? - kernel;
    let found = ratio(&Ok(above), &Ok(apart), "the difference of both CPIs")?;
    unavailable::share("share of time in user mode", found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cycles::missing;

    fn of(resource: f64, instruction: f64, computation: f64) -> Breakdown {
        Breakdown {
            computation: Ok(computation),
            resource: Ok(resource),
            instruction: Ok(instruction),
        }
    }

    fn close(value: &Value, expected: f64, tolerance: f64) {
        let value = value.as_ref().expect("present");
        assert!((value - expected).abs() < tolerance, "{value} is not {expected}");
    }

    #[test]
    fn parts_add_up_to_the_printed_ones() {
        // Table 10 of Keeton et al.: DB, OS, overall.
        close(&of(0.45, 1.13, 0.97).computed(), 2.55, 1e-9);
        close(&of(2.56, 2.24, 1.24).computed(), 6.04, 1e-9);
        close(&of(0.66, 1.24, 1.00).computed(), 2.90, 1e-9);
        close(&of(0.45, 1.13, 0.97).error(&Ok(2.52)), 0.012, 5e-4);
        close(&of(2.56, 2.24, 1.24).error(&Ok(6.41)), -0.058, 5e-4);
        close(&of(0.66, 1.24, 1.00).error(&Ok(2.90)), 0.0, 5e-4);
    }

    #[test]
    fn a_part_not_counted_leaves_no_sum() {
        let reason = missing("resource stalls", "no such event since Sapphire Rapids");
        let partly = Breakdown { resource: Err(reason.clone()), ..of(0.0, 1.0, 1.0) };
        assert_eq!(partly.computed(), Err(reason.clone()));
        assert_eq!(partly.error(&Ok(2.0)), Err(reason.clone()));
        assert_eq!(partly.per_uop(&Ok(2.0)).resource, Err(reason));
        close(&partly.per_uop(&Ok(2.0)).instruction, 0.5, 1e-12);
        // Counted and never happened is something else.
        close(&of(0.0, 1.0, 1.0).computed(), 2.0, 1e-12);
        assert!(of(-0.1, 1.0, 1.0).computed().is_err());
        assert!(of(0.1, 1.0, 1.0).error(&Ok(0.0)).is_err());
    }

    #[test]
    fn time_mixes_rates_not_cpis() {
        let mixed = mix_by_time(&Ok(0.78), &Ok(2.52), &Ok(6.41));
        close(&mixed, 2.91, 5e-3);
        // As if 78 % of the instructions were the database's.
        let by_instructions = 0.78 * 2.52 + 0.22 * 6.41;
        assert!((mixed.unwrap() - by_instructions).abs() > 0.4, "3.38 is not 2.91");
        assert!(mix_by_time(&Ok(78.0), &Ok(2.52), &Ok(6.41)).is_err(), "a share, not per cent");
        assert!(mix_by_time(&Ok(0.5), &Ok(0.0), &Ok(6.41)).is_err());
        assert!(time_share(&Ok(7.0), &Ok(2.52), &Ok(6.41)).is_err(), "not between them");
    }

    proptest! {
        // The oracle counts cycles and instructions of both kinds and divides once.
        #[test]
        fn mixing_is_counting(cycles in prop::array::uniform2(1.0..1e9f64),
                              instructions in prop::array::uniform2(1.0..1e9f64)) {
            let all = (cycles[0] + cycles[1]) / (instructions[0] + instructions[1]);
            let (user, kernel) = (cycles[0] / instructions[0], cycles[1] / instructions[1]);
            let share = cycles[0] / (cycles[0] + cycles[1]);
            let mixed = mix_by_time(&Ok(share), &Ok(user), &Ok(kernel)).unwrap();
            prop_assert!((mixed / all - 1.0).abs() < 1e-9);
            if (user / kernel - 1.0).abs() > 1e-3 {
                let found = time_share(&Ok(mixed), &Ok(user), &Ok(kernel)).unwrap_or(share);
                prop_assert!((found - share).abs() < 1e-6);
            }
        }

        #[test]
        fn cycles_of_all_uops_are_those_of_the_instruction(
            parts in prop::array::uniform3(0.0..10.0f64),
            uops in 0.1..4.0f64,
        ) {
            let breakdown = of(parts[0], parts[1], parts[2]);
            let per_uop = breakdown.per_uop(&Ok(uops)).computed().unwrap();
            prop_assert!((breakdown.computed().unwrap() - per_uop * uops).abs() < 1e-9);
        }
    }
}
