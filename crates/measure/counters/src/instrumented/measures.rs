//! Metrics of what was counted, under the names of the house.
//!
//! The tools' names: a letter pair for what is accessed (`Ir` instructions, `Dr` loads, `Dw`
//! stores), `I1`/`D1`/`IL`/`DL` for the level, `mr`/`mw` for misses; `Bc`/`Bi` conditional and
//! indirect branches, `Bcm`/`Bim` those predicted wrongly. Direct jumps and calls are not counted,
//! so a share of branches is below that of a machine's counters. What loads and stores at once is
//! a load for cachegrind and a store for callgrind: their sum is the same, their shares are not.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use workahead_machine::EvidenceTier;

use super::{Error, ProgramCounts};

/// The label of every figure of this module.
pub const LABEL: &str = "counted by a model of caches, not by this machine; no cycles, no L2, no \
                         TLB, no prefetch, no kernel, one thread at a time";
/// The evidence tier of these figures.
pub const TIER: EvidenceTier = EvidenceTier::D;

/// A counted quantity: a sum of the tools' events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// Instructions executed.
    Instructions,
    /// Loads of data.
    Loads,
    /// Stores of data.
    Stores,
    /// Loads and stores.
    Accesses,
    /// Fetches of instructions, loads and stores.
    References,
    /// Conditional and indirect branches.
    Branches,
    /// Those predicted wrongly.
    BranchMisses,
    /// Fetches that miss the first level.
    L1iMisses,
    /// Loads and stores that miss the first level.
    L1dMisses,
    /// Loads that miss the first level.
    L1dLoadMisses,
    /// Accesses that reach the last level: all misses of the first.
    LastLevelAccesses,
    /// Accesses that reach memory.
    LastLevelMisses,
    /// Fetches that reach memory.
    LastLevelInstructionMisses,
    /// Loads and stores that reach memory.
    LastLevelDataMisses,
    /// Loads that reach memory.
    LastLevelLoadMisses,
}

use Quantity as Q;

impl Quantity {
    /// The tools' events that it is the sum of.
    #[must_use]
    pub fn events(self) -> &'static [&'static str] {
        match self {
            Q::Instructions => &["Ir"],
            Q::Loads => &["Dr"],
            Q::Stores => &["Dw"],
            Q::Accesses => &["Dr", "Dw"],
            Q::References => &["Ir", "Dr", "Dw"],
            Q::Branches => &["Bc", "Bi"],
            Q::BranchMisses => &["Bcm", "Bim"],
            Q::L1iMisses => &["I1mr"],
            Q::L1dMisses => &["D1mr", "D1mw"],
            Q::L1dLoadMisses => &["D1mr"],
            Q::LastLevelAccesses => &["I1mr", "D1mr", "D1mw"],
            Q::LastLevelMisses => &["ILmr", "DLmr", "DLmw"],
            Q::LastLevelInstructionMisses => &["ILmr"],
            Q::LastLevelDataMisses => &["DLmr", "DLmw"],
            Q::LastLevelLoadMisses => &["DLmr"],
        }
    }

    fn name(self) -> &'static str {
        match self {
            Q::Instructions => "instructions",
            Q::Loads => "loads",
            Q::Stores => "stores",
            Q::Accesses => "accesses",
            Q::References => "references",
            Q::Branches => "branches",
            Q::BranchMisses => "branch misses",
            Q::L1iMisses => "L1I misses",
            Q::L1dMisses => "L1D misses",
            Q::L1dLoadMisses => "L1D load misses",
            Q::LastLevelAccesses => "accesses of the last level",
            Q::LastLevelMisses => "misses of the last level",
            Q::LastLevelInstructionMisses => "instruction misses of the last level",
            Q::LastLevelDataMisses => "data misses of the last level",
            Q::LastLevelLoadMisses => "load misses of the last level",
        }
    }
}

/// How often in the whole program.
const TOTALS: [(&str, Quantity); 5] = [
    ("instructions", Q::Instructions),
    ("data_references", Q::Accesses),
    ("l1i_misses", Q::L1iMisses),
    ("l1d_misses", Q::L1dMisses),
    ("last_level_misses", Q::LastLevelMisses),
];

/// Shares of all instructions or of all accesses: (metric, what, of what).
const RATIOS: [(&str, Quantity, Quantity); 13] = [
    ("load_share", Q::Loads, Q::Instructions),
    ("store_share", Q::Stores, Q::Instructions),
    ("branch_share", Q::Branches, Q::Instructions),
    ("branch_miss_ratio", Q::BranchMisses, Q::Branches),
    ("l1i_miss_ratio", Q::L1iMisses, Q::Instructions),
    ("l1d_miss_ratio", Q::L1dMisses, Q::Accesses),
    ("l1d_load_miss_ratio", Q::L1dLoadMisses, Q::Loads),
    ("last_level_miss_ratio", Q::LastLevelMisses, Q::LastLevelAccesses),
    ("last_level_instruction_miss_ratio", Q::LastLevelInstructionMisses, Q::L1iMisses),
    ("last_level_data_miss_ratio", Q::LastLevelDataMisses, Q::L1dMisses),
    ("last_level_load_miss_ratio", Q::LastLevelLoadMisses, Q::L1dLoadMisses),
    // Of all references, as in the conclusion of Keeton et al. (1998): 0.33 % there.
    ("memory_reference_ratio", Q::LastLevelMisses, Q::References),
    ("l1d_accesses_per_instruction", Q::Accesses, Q::Instructions),
];

/// Per 1000 instructions.
const MPKI: [(&str, Quantity); 8] = [
    ("l1i_mpki", Q::L1iMisses),
    ("l1d_mpki", Q::L1dMisses),
    ("l1d_load_mpki", Q::L1dLoadMisses),
    ("last_level_mpki", Q::LastLevelMisses),
    ("last_level_instruction_mpki", Q::LastLevelInstructionMisses),
    ("last_level_data_mpki", Q::LastLevelDataMisses),
    ("last_level_load_mpki", Q::LastLevelLoadMisses),
    ("branch_mpki", Q::BranchMisses),
];

/// A function's part of something.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FunctionShare {
    /// Its name.
    pub name: String,
    /// The program or library that it is in, where the tool knows.
    pub module: Option<String>,
    /// How often, of the function alone.
    pub count: i64,
    /// Of the whole program's, 0 to 1.
    pub share: f64,
}

impl ProgramCounts {
    /// How often in the whole program; `None` when it was not counted.
    #[must_use]
    pub fn total(&self, quantity: Quantity) -> Option<i64> {
        Some(self.places(quantity)?.iter().map(|&at| self.totals[at]).sum())
    }

    /// The metrics by name. One is missing when it was not counted, has no base to be a share of,
    /// or came out below zero after [`minus`](Self::minus).
    #[must_use]
    pub fn measures(&self) -> BTreeMap<String, f64> {
        let mut measures = BTreeMap::new();
        let total = |quantity| self.total(quantity).filter(|&n| n >= 0).map(as_f64);
        let mut put = |name: &str, value: Option<f64>| {
            measures.extend(value.map(|value| (name.to_owned(), value)));
        };
        let share = |part, whole| Some(total(part)? / total(whole).filter(|&n| n > 0.0)?);
        for (name, quantity) in TOTALS {
            put(name, total(quantity));
        }
        for (name, part, whole) in RATIOS {
            put(name, share(part, whole));
        }
        for (name, misses) in MPKI {
            put(name, share(misses, Q::Instructions).map(|rate| 1000.0 * rate));
        }
        measures
    }

    /// The functions with the most of something, most first; fewer than `n` when fewer have any,
    /// none when [`minus`](Self::minus) left no base for shares.
    ///
    /// # Errors
    /// If it was not counted.
    pub fn top(&self, n: usize, quantity: Quantity) -> Result<Vec<FunctionShare>, Error> {
        let places = self.places(quantity).ok_or(Error::NotCounted(quantity.name()))?;
        let sum = |counts: &[i64]| places.iter().filter_map(|&at| counts.get(at)).sum::<i64>();
        let whole = as_f64(sum(&self.totals));
        let counts = self.functions.iter().map(|one| (sum(&one.counts), one));
        let mut some: Vec<_> = counts.filter(|(count, _)| *count > 0 && whole > 0.0).collect();
        // Stable: equal ones stay in the order of their instructions.
        some.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        let share = |(count, one): (i64, &super::FunctionCounts)| FunctionShare {
            name: one.name.clone(),
            module: one.module.clone(),
            count,
            share: as_f64(count) / whole,
        };
        Ok(some.into_iter().take(n).map(share).collect())
    }

    /// Where its events stand; `None` when one of them was not counted.
    pub(super) fn places(&self, quantity: Quantity) -> Option<Vec<usize>> {
        let place = |event: &&str| self.events.iter().position(|known| known == event);
        let places: Option<Vec<usize>> = quantity.events().iter().map(place).collect();
        places.filter(|places| places.iter().all(|&at| at < self.totals.len()))
    }
}

/// Exact below 2^53: a hundred days of such counting.
fn as_f64(count: i64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests;
