//! User and kernel on a constructed machine: quantities per instruction, and shares.

use std::collections::BTreeMap;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// A name, what programs do, what the system does, and how much it scatters from slot to slot.
pub(crate) type Quantity = (&'static str, f64, f64, f64);

/// On-line transactions, with ratios near those that Keeton et al. (1998) print where a machine of
/// today has not changed them: branches, their mispredictions, how much worse the system does.
pub(crate) const TRANSACTIONS: [Quantity; 57] = [
    // Cycles, and uops by how many retire at once: each width has this share of the one below it.
    ("cpi", 1.60, 2.95, 0.03),
    ("uops", 1.16, 1.32, 0.02),
    ("wider", 0.66, 0.58, 0.0),
    ("clock", 1.31, 1.29, 0.02),
    ("alone", 0.40, 0.45, 0.03),
    // Of instructions.
    ("loads", 0.29, 0.26, 0.02),
    ("stores", 0.17, 0.19, 0.02),
    ("branches", 0.19, 0.22, 0.02),
    // Of branches.
    ("mispredicted", 0.014, 0.022, 0.03),
    ("resteered", 0.011, 0.019, 0.03),
    ("issued", 1.14, 1.24, 0.004),
    ("clears", 0.0004, 0.0009, 0.03),
    ("order_clears", 0.00008, 0.00021, 0.30),
    // Misses of L1 per instruction, and which share of them L2 misses.
    ("l1i", 0.034, 0.052, 0.03),
    ("fetches", 0.31, 0.36, 0.02),
    ("l1d", 0.021, 0.036, 0.03),
    ("rfo", 0.007, 0.013, 0.03),
    ("buffer_hits", 0.009, 0.014, 0.03),
    ("code_missed", 0.09, 0.14, 0.03),
    ("data_missed", 0.27, 0.36, 0.03),
    ("rfo_missed", 0.24, 0.33, 0.03),
    // Loads that miss L2: those that miss L3, and how those that hit were found.
    ("l3_missed", 0.23, 0.31, 0.03),
    ("snoop_none", 0.78, 0.66, 0.0),
    ("snoop_miss", 0.05, 0.06, 0.0),
    ("snoop_clean", 0.07, 0.10, 0.0),
    ("remote", 0.10, 0.12, 0.0),
    ("remote_clean", 0.03, 0.04, 0.0),
    ("remote_modified", 0.05, 0.08, 0.0),
    ("prefetched", 1.55, 1.40, 0.02),
    ("prefetch_missed", 1.25, 1.20, 0.02),
    // Walks of the page table per instruction, and how long one takes.
    ("itlb", 0.0009, 0.0014, 0.03),
    ("itlb_l2_hits", 0.0040, 0.0061, 0.03),
    ("dtlb_loads", 0.0016, 0.0024, 0.03),
    ("dtlb_stores", 0.0005, 0.0009, 0.03),
    ("walk", 27.0, 31.0, 0.02),
    // Cycles a read beyond L2 takes, and how many are under way at once.
    ("latency", 168.0, 181.0, 0.03),
    ("parallel", 2.1, 1.7, 0.02),
    ("l3_latency", 11.8, 11.8, 0.02),
    // Shares of cycles: awaiting loads, and of these by how far they went.
    ("load_bound", 0.31, 0.36, 0.02),
    ("beyond_l1", 0.78, 0.81, 0.01),
    ("beyond_l2", 0.70, 0.73, 0.01),
    ("beyond_l3", 0.52, 0.57, 0.01),
    ("buffers_full", 0.0022, 0.0031, 0.03),
    ("store_bound", 0.021, 0.034, 0.03),
    ("resources", 0.27, 0.33, 0.02),
    ("stores_full", 0.041, 0.062, 0.03),
    ("serialising", 0.018, 0.071, 0.03),
    ("line_stalls", 0.25, 0.27, 0.02),
    ("tag_stalls", 0.061, 0.074, 0.03),
    ("queue_empty", 0.30, 0.33, 0.02),
    // Shares of slots that do not retire.
    ("frontend", 0.36, 0.34, 0.02),
    ("frontend_latency", 0.71, 0.76, 0.01),
    ("wrong_branches", 0.90, 0.84, 0.01),
    ("memory", 0.63, 0.66, 0.02),
    ("heavy", 0.11, 0.21, 0.02),
    ("dropped", 0.012, 0.015, 0.03),
    ("sibling", 0.05, 0.06, 0.03),
];

/// The quantities of one side on one CPU in one slot.
pub(crate) struct Side(BTreeMap<&'static str, f64>);

impl Side {
    /// As they are, nothing scattered.
    pub(crate) fn steady(kernel: bool) -> Self {
        let of = |(name, user, system, _): Quantity| (name, if kernel { system } else { user });
        Self(TRANSACTIONS.map(of).into_iter().collect())
    }

    /// With every quantity scattered by its deviation.
    pub(crate) fn scattered(kernel: bool, random: &mut ChaCha8Rng) -> Self {
        let mut side = Self::steady(kernel);
        for (name, _, _, deviation) in TRANSACTIONS {
            side.scale(name, 1.0 + deviation * normal(random));
        }
        side
    }

    pub(crate) fn scale(&mut self, name: &str, by: f64) {
        *self.0.get_mut(name).expect("a quantity of the list") *= by;
    }

    pub(crate) fn of(&self, name: &str) -> f64 {
        self.0[name]
    }

    /// Cycles per instruction in which at least `width` uops retire.
    pub(crate) fn retiring(&self, width: u32, widest: u32) -> f64 {
        let ratio = self.of("wider");
        let all: f64 = (0..widest).map(|more| power(ratio, more)).sum();
        self.of("uops") / all * power(ratio, width - 1)
    }
}

/// Without the system's mathematics, which differs between systems in the last digit.
fn power(base: f64, exponent: u32) -> f64 {
    (0..exponent).fold(1.0, |power, _| power * base)
}

/// Nearly normal, and never far out: the sum of twelve uniform draws, less their mean.
pub(crate) fn normal(random: &mut ChaCha8Rng) -> f64 {
    (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0
}
