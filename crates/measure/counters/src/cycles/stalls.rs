//! Stall components of each logical CPU, as Hassanein et al. (2008, sections 4.6, 5.6) draw them.
//!
//! A component is the penalty of a miss times the misses per instruction, nothing overlapped. The
//! paper says that with SMT a component "is divided between both threads", but not whether by a
//! logical CPU's own instructions or by those of both. The claim depends on it, so both are given:
//! relative to all instructions components of siblings add up to the core's, relative to their own
//! they do not.

use serde::{Deserialize, Serialize};

use super::overlap::Origin;
use crate::unavailable::{self, Value, ratio};

/// The cause of a stall.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StallCause {
    /// Misses of the last cache: the second level in the paper, the third today.
    L3,
    /// Misses of the second-level cache.
    L2,
    /// Misses of the first-level data cache.
    L1d,
    /// Misses of what instructions are fetched from first: the trace cache in the paper, the
    /// instruction cache or the cache of decoded µops today.
    Fetch,
    /// Data addresses without a translation at hand.
    Dtlb,
    /// Instruction addresses without one.
    Itlb,
    /// Mispredicted branches.
    Branch,
}

/// The cost of one event of a cause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Penalty {
    /// Of what.
    pub cause: StallCause,
    /// Cycles for each.
    pub cycles: f64,
    /// Where they are from.
    pub origin: Origin,
}

/// The counts of one logical CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogicalCpu {
    /// Instructions that it retired.
    pub instructions: Value,
    /// Events by cause.
    pub misses: Vec<(StallCause, Value)>,
}

/// Which logical CPU of a core, in the paper's letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Series {
    /// O: the only one, SMT off.
    Off,
    /// H0, H1, …: one of several, SMT on. As wide as the numbers of CPUs, for a machine may have
    /// more of them in a core than the 64 that a recording may.
    On(u32),
}

impl std::fmt::Display for Series {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Series::Off => f.write_str("O"),
            Series::On(sibling) => write!(f, "H{sibling}"),
        }
    }
}

/// The denominator of misses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Denominator {
    /// The logical CPU's own instructions.
    Own,
    /// The instructions of all logical CPUs together.
    All,
}

/// The components of one logical CPU, in cycles per instruction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stalls {
    /// Of which.
    pub series: Series,
    /// Relative to what.
    pub denominator: Denominator,
    /// By cause, in the penalties' order.
    pub components: Vec<(StallCause, Value)>,
}

impl Stalls {
    /// One per logical CPU, in their order. A single one is the series O.
    pub fn of(cpus: &[LogicalCpu], penalties: &[Penalty], denominator: Denominator) -> Vec<Stalls> {
        let all = cpus.iter().try_fold(0.0, |sum, cpu| Ok(sum + cpu.instructions.clone()?));
        let series = |index: u32| if cpus.len() == 1 { Series::Off } else { Series::On(index) };
        let stalls = cpus.iter().zip(0..).map(|(cpu, index)| {
            let instructions = match denominator {
                Denominator::Own => &cpu.instructions,
                Denominator::All => &all,
            };
            let component = |penalty: &Penalty| (penalty.cause, charge(cpu, penalty, instructions));
            let components = penalties.iter().map(component).collect();
            Stalls { series: series(index), denominator, components }
        });
        stalls.collect()
    }

    /// All components together.
    ///
    /// # Errors
    /// If one is unavailable.
    pub fn cpi(&self) -> Value {
        self.components.iter().try_fold(0.0, |sum, (_, part)| Ok(sum + part.clone()?))
    }
}

fn charge(cpu: &LogicalCpu, penalty: &Penalty, instructions: &Value) -> Value {
    let found = cpu.misses.iter().find(|(cause, _)| *cause == penalty.cause);
    let misses = match found {
        Some((_, misses)) => misses.clone()?,
        None => {
            let name = format!("{:?} misses", penalty.cause);
            return Err(unavailable::missing(&name, "they were not requested"));
        }
    };
    let cycles = unavailable::sound("penalty", penalty.cycles)?;
    ratio(&Ok(unavailable::sound("misses", misses)? * cycles), instructions, "instructions")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::StallCause::{Branch, Dtlb, Fetch, Itlb, L1d, L2};
    use super::*;

    fn penalties() -> Vec<Penalty> {
        // The P4 of the paper: memory and L2 by LMBench at 3.4 GHz, and a mispredicted branch.
        let quoted = |cause, cycles| {
            let origin = Origin::Quoted("Hassanein et al. 2008, section 3.1".to_owned());
            Penalty { cause, cycles, origin }
        };
        vec![quoted(L2, 468.9), quoted(L1d, 28.1), quoted(Branch, 20.0)]
    }

    fn cpu(instructions: u64, misses: [u64; 3]) -> LogicalCpu {
        let of = |count: u64| Ok(count as f64);
        let misses = [L2, L1d, Branch].into_iter().zip(misses.map(of)).collect();
        LogicalCpu { instructions: of(instructions), misses }
    }

    #[test]
    fn series_are_named_as_in_the_paper() {
        let named = |cpus: &[LogicalCpu]| -> Vec<String> {
            let stalls = Stalls::of(cpus, &penalties(), Denominator::Own);
            stalls.iter().map(|stalls| stalls.series.to_string()).collect()
        };
        assert_eq!(named(&[cpu(1, [0; 3])]), ["O"]);
        assert_eq!(named(&[cpu(1, [0; 3]), cpu(1, [0; 3])]), ["H0", "H1"]);
        let many: Vec<LogicalCpu> = (0..300).map(|_| cpu(1, [0; 3])).collect();
        assert_eq!(named(&many)[299], "H299");
    }

    #[test]
    fn causes_not_counted_are_unavailable() {
        let mut siblings = [cpu(100, [1, 2, 3]), cpu(300, [4, 5, 6])];
        siblings[0].misses[1].1 = Err(unavailable::missing("L1D misses", "no such event"));
        let mut penalties = penalties();
        for cause in [Dtlb, Itlb, Fetch] {
            penalties.push(Penalty { cause, ..penalties[0].clone() });
        }
        let stalls = Stalls::of(&siblings, &penalties, Denominator::All);
        assert!(stalls[0].components[1].1.is_err() && stalls[1].components[1].1.is_ok());
        assert!(stalls[1].components[3].1.is_err(), "never counted, and not zero");
        assert!(stalls[0].cpi().is_err());
        // One sibling's instructions unknown: its own series is lost, and all that is relative to
        // both.
        siblings[0].instructions = Err(unavailable::missing("instructions", "no such event"));
        let own = Stalls::of(&siblings, &penalties, Denominator::Own);
        let all = Stalls::of(&siblings, &penalties, Denominator::All);
        assert!(own[0].components[0].1.is_err() && own[1].components[0].1.is_ok());
        assert!(all[1].components[0].1.is_err());
    }

    proptest! {
        // The oracle divides integers' products once, straight from the counts.
        #[test]
        fn they_are_the_raw_counts(
            instructions in prop::array::uniform2(1u64..10_000_000_000),
            misses in prop::array::uniform2(prop::array::uniform3(0u64..100_000_000)),
        ) {
            let cpus = [cpu(instructions[0], misses[0]), cpu(instructions[1], misses[1])];
            let costs = [468.9, 28.1, 20.0];
            let both = instructions[0] + instructions[1];
            for (denominator, per) in
                [(Denominator::Own, instructions), (Denominator::All, [both, both])]
            {
                let stalls = Stalls::of(&cpus, &penalties(), denominator);
                for (index, of_cpu) in stalls.iter().enumerate() {
                    let mut sum = 0.0;
                    for (cause, cost) in costs.iter().enumerate() {
                        let raw = cost * misses[index][cause] as f64 / per[index] as f64;
                        let ours = of_cpu.components[cause].1.clone().unwrap();
                        prop_assert!((ours - raw).abs() <= 1e-9 * raw.max(1.0));
                        sum += raw;
                    }
                    prop_assert!((of_cpu.cpi().unwrap() - sum).abs() <= 1e-9 * sum.max(1.0));
                }
            }
            // Relative to all, siblings add up to what one CPU with all of it would have.
            let whole = cpu(both, [0, 1, 2].map(|cause| misses[0][cause] + misses[1][cause]));
            let core = Stalls::of(&[whole], &penalties(), Denominator::Own)[0].cpi().unwrap();
            let parts = Stalls::of(&cpus, &penalties(), Denominator::All);
            let sum: f64 = parts.iter().map(|part| part.cpi().unwrap()).sum();
            prop_assert!((core - sum).abs() <= 1e-9 * core.max(1.0));
        }
    }
}
