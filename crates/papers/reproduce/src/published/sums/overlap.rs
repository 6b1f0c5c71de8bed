//! Figure 8: the bars that its text implies, and how much of them the tables explain.

use super::{SIZES, at, exact, said};
use crate::published::derived::{Check, Input, Nature, RecomputedFigure};
use workahead_counters::cycles::{Component, NonOverlappedSum, Origin, Value};

pub(super) fn all() -> Vec<RecomputedFigure> {
    SIZES.into_iter().flat_map(|size| [bar(size), explained(size), rest(size)]).collect()
}

fn measured(size: &str) -> Vec<Input> {
    let share = at("Figure 8", "Measured CPI of the non-overlapped total", size);
    vec![at("Table 14", "Overall: Measured CPI", size), share]
}

fn implied(v: &[f64]) -> Value {
    NonOverlappedSum::implied_cpi(&Ok(v[0]), &Ok(v[1] / 100.0))
}

/// The bar's height (A19's 6.23, 4.88, 4.14).
fn bar(size: &str) -> RecomputedFigure {
    let says = format!("{size}: non-overlapped CPI that Figure 8 implies");
    Check::new("E2.12", says, measured(size)).by(implied)
}

fn parts(size: &str) -> Vec<Input> {
    vec![
        at("Table 14", "Overall: Computation", size),
        at("Table 14", "Overall: Resource stalls", size),
        at("Table 11", "L1 I-cache misses", size),
        at("Table 11", "L1 D-cache misses", size),
        at("Table 11", "Overall L2 misses", size),
        at("Table 7", size, "4 P"),
        at("Table 5", "Branch frequency", "Overall"),
        at("Table 5", "Branch misprediction ratio", "Overall"),
        exact(said("branch-penalty")),
        exact(at("Table 3", "Hit penalty", "L1 Data")),
        exact(at("Table 3", "Hit penalty", "L2 (unified)")),
    ]
}

fn sum(v: &[f64]) -> Value {
    let quoted = |place: &str| Origin::Quoted(format!("Keeton et al. 1998, {place}"));
    let hit_in_l2 = v[9] + v[10];
    let misses = |name, per_1000: f64, penalty, place| {
        Component::of_events(name, &Ok(per_1000 / 1000.0), penalty, quoted(place))
    };
    let mispredicted = Ok(v[6] / 100.0 * (v[7] / 100.0));
    let components = vec![
        Component::of_cycles("computation", &Ok(v[0])),
        Component::of_cycles("resource stalls", &Ok(v[1])),
        misses("L1I misses", v[2], hit_in_l2, "Table 3"),
        misses("L1D misses", v[3], hit_in_l2, "Table 3"),
        misses("L2 misses", v[4], v[5], "Table 7"),
        Component::of_events("branches", &mispredicted, v[8], quoted("Table 5")),
    ];
    NonOverlappedSum { components }.cpi()
}

/// The parts of the bar that the tables give.
fn explained(size: &str) -> RecomputedFigure {
    let says = format!("{size}: non-overlapped CPI without ITLB and minor stalls, by the tables");
    Check::new("E2.12", says, parts(size))
        .nature(Nature::Estimate)
        .note("7 cycles for a miss of L1; branches are those of the base system")
        .by(sum)
}

/// The rest of the bar, for ITLB misses and minor stalls.
fn rest(size: &str) -> RecomputedFigure {
    let mut inputs = measured(size);
    inputs.extend(parts(size));
    let says = format!("{size}: what Figure 8 leaves for ITLB and minor stalls");
    Check::new("E2.12", says, inputs)
        .nature(Nature::Estimate)
        .note("with 13 L2 misses instead of 11 at 512 KB all three sizes would leave alike")
        .by(|v| Ok(implied(&v[..2])? - sum(&v[2..])?))
}
