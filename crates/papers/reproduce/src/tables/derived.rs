//! Figures of the papers that are not in the catalogue of metrics, but follow from some that are.

use workahead_counters::cycles::{Breakdown, Profile, Value, ratio};

/// A figure that follows from metrics.
#[derive(Debug, Clone, Copy)]
pub struct DerivedFigure {
    /// Its name in the papers' data.
    pub name: &'static str,
    /// Its parts; of those that a stream does not give, where else they come from.
    pub says: &'static str,
    /// The metrics that it takes.
    pub(super) inputs: &'static [&'static str],
    /// Out of the inputs' values; none of what a stream does not give.
    pub(super) of: Option<fn(&[f64]) -> Value>,
}

impl DerivedFigure {
    /// The value that follows from metrics; none where one of them is missing, or it follows from
    /// none.
    #[must_use]
    pub fn from(&self, metric: impl Fn(&str) -> Option<f64>) -> Option<f64> {
        let inputs = self.inputs.iter().map(|input| metric(input));
        (self.of?)(&inputs.collect::<Option<Vec<f64>>>()?).ok()
    }
}

const PARTS: &[&str] = &[
    "computation_cpi",
    "resource_stall_cpi",
    "instruction_stall_cpi",
    "cpi",
    "uops_per_instruction",
];

const WIDTHS: &[&str] = &[
    "retire_0", "retire_1", "retire_2", "retire_3", "retire_4", "retire_5", "retire_6", "retire_7",
    "retire_8",
];

/// All of them.
pub const DERIVED: &[DerivedFigure] = &[
    of("computed_cpi", "the sum of computation and both stalls", PARTS, |parts| {
        breakdown(parts).computed()
    }),
    of("computed_ucpi", "computed CPI over uops per instruction", PARTS, |parts| {
        per_uop(parts).computed()
    }),
    of("resource_ucpi", "resource stalls over uops per instruction", PARTS, |parts| {
        per_uop(parts).resource
    }),
    of("instruction_ucpi", "instruction stalls over uops per instruction", PARTS, |parts| {
        per_uop(parts).instruction
    }),
    of("stalled_share", "both stalls over measured CPI", PARTS, |parts| {
        breakdown(parts).stalled_share(&Ok(parts[3]))
    }),
    of("l1i_apki", "misses over the miss ratio", &["l1i_mpki", "l1i_miss_ratio"], accesses),
    of("l1d_apki", "misses over the miss ratio", &["l1d_mpki", "l1d_miss_ratio"], accesses),
    of("retire_1_uop_share", "from the retire profile by cycles", WIDTHS, |cycles| {
        uop_share(cycles, 1)
    }),
    of("retire_2_uop_share", "from the retire profile by cycles", WIDTHS, |cycles| {
        uop_share(cycles, 2)
    }),
    of("retire_3_uop_share", "from the retire profile by cycles", WIDTHS, |cycles| {
        uop_share(cycles, 3)
    }),
    elsewhere("overlap", "the penalties of misses are measured beside the counting, not by it"),
];

/// The one of a name.
#[must_use]
pub fn derived(name: &str) -> Option<&'static DerivedFigure> {
    DERIVED.iter().find(|derived| derived.name == name)
}

const fn of(
    name: &'static str,
    says: &'static str,
    inputs: &'static [&'static str],
    of: fn(&[f64]) -> Value,
) -> DerivedFigure {
    DerivedFigure { name, says, inputs, of: Some(of) }
}

const fn elsewhere(name: &'static str, says: &'static str) -> DerivedFigure {
    DerivedFigure { name, says, inputs: &[], of: None }
}

fn breakdown(parts: &[f64]) -> Breakdown {
    Breakdown { computation: Ok(parts[0]), resource: Ok(parts[1]), instruction: Ok(parts[2]) }
}

fn per_uop(parts: &[f64]) -> Breakdown {
    breakdown(parts).per_uop(&Ok(parts[4]))
}

fn accesses(of: &[f64]) -> Value {
    ratio(&Ok(of[0]), &Ok(of[1]), "the miss ratio")
}

/// Which share of all uops retires in cycles of this width. The last width stands for all wider
/// ones.
fn uop_share(cycles: &[f64], width: usize) -> Value {
    Ok(Profile::new("uops by retire width", cycles)?.instruction_shares()?[width - 1])
}
