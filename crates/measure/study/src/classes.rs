//! How a query scales with its degree of parallelism: the classes that Chang (2013) found.
//!
//! ```text
//! step d → d'   elapsed(d) / elapsed(d'); ideal: d' / d; gain: log step / log ideal, 1 when ideal
//!
//! plan flip                       the plan differs between two parallel degrees: the steps compare
//!                                 plans, not hardware, and are no other class (Q15)
//! super-scaling                   a step above the ideal, or a good one with less CPU: the
//!                                 parallel plan is cheaper than the serial one (Q2, 11, 13, 18)
//! inefficient, then scales        the first step poor, a later one good (Q6, Q15)
//! conventional                    every step good and none better than the one before (Q10)
//! does not scale                  no step good
//! ```
//!
//! *Good* is at least half of the ideal gain, for a doubling a step of √2. Where repetitions give a
//! step an interval, the interval must lie above the ideal; without one the step itself.

use serde::Serialize;

use crate::statistics::{Interval, Mean, Ratio, mean};

mod scaling_curve;

pub use scaling_curve::{ScalingCurve, scaling_curves};

/// The least share of the ideal gain that is good.
pub const GOOD: f64 = 0.5;

/// Gains that differ by less are the same: a twentieth of the ideal.
const GAIN_TOLERANCE: f64 = 0.05;

/// CPU time that falls by less than a twentieth is the same.
const CPU_FALLS: f64 = 0.95;

/// The times at one degree of parallelism.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The degree of parallelism.
    pub degree: u32,
    /// Elapsed time, a value per repetition.
    pub elapsed_s: Vec<f64>,
    /// CPU time of all workers, a value per repetition; `None` if unknown.
    pub cpu_s: Vec<f64>,
    /// Fingerprint of the plan without its parallel operators; `None` if unknown.
    pub plan: Option<String>,
}

/// From one degree to the next.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// From this degree.
    pub from: u32,
    /// To this one.
    pub to: u32,
    /// Elapsed time before over after.
    pub speedup: f64,
    /// Its interval, from repetitions.
    pub interval: Option<Interval>,
    /// The speed-up if all work were shared out.
    pub ideal: f64,
    /// How much of the ideal was reached, in logs: 0 nothing, 1 all.
    pub gain: f64,
    /// CPU time after over before.
    pub cpu: Option<f64>,
    /// Faster than ideal.
    pub is_above_ideal: bool,
    /// Less CPU time than before.
    pub cpu_falls: bool,
    /// The plan is another one.
    pub plan_changes: bool,
}

/// A class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Every step good, none better than the one before.
    Conventional,
    /// Better than ideal, or with less CPU.
    SuperScaling,
    /// The first step poor, a later one good.
    InefficientThenScales,
    /// Another plan between parallel degrees.
    PlanFlip,
    /// No step good.
    DoesNotScale,
    /// None of these.
    Irregular,
}

impl Class {
    /// As reports print it.
    pub fn text(self) -> &'static str {
        match self {
            Class::Conventional => "conventional",
            Class::SuperScaling => "super-scaling",
            Class::InefficientThenScales => "inefficient parallel plan that then scales",
            Class::PlanFlip => "plan flip",
            Class::DoesNotScale => "does not scale",
            Class::Irregular => "irregular",
        }
    }
}

/// A query over its degrees of parallelism.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scaling {
    /// The class.
    pub class: Class,
    /// Why, one line.
    pub reason: String,
    /// Step by step.
    pub steps: Vec<Step>,
}

impl Scaling {
    /// From points ordered by degree; `None` from fewer than two.
    pub fn of(points: &[Point]) -> Option<Scaling> {
        let steps: Option<Vec<Step>> =
            points.windows(2).map(|two| step(&two[0], &two[1])).collect();
        let steps = steps.filter(|steps| !steps.is_empty())?;
        let (class, reason) = classify(&steps);
        Some(Scaling { class, reason, steps })
    }
}

fn step(before: &Point, after: &Point) -> Option<Step> {
    let pairs: Vec<(f64, f64)> =
        before.elapsed_s.iter().copied().zip(after.elapsed_s.iter().copied()).collect();
    let ratio = Ratio::paired(&pairs)?;
    let ideal = f64::from(after.degree) / f64::from(before.degree);
    let cpu = |point: &Point| mean(&point.cpu_s, Mean::Plain);
    let cpu = cpu(after).zip(cpu(before)).map(|(after, before)| after / before);
    let cpu_pairs =
        after.cpu_s.iter().copied().zip(before.cpu_s.iter().copied()).collect::<Vec<_>>();
    let interval = Ratio::paired(&cpu_pairs).and_then(|ratio| ratio.interval);
    let is_sure = interval.is_none_or(|interval| interval.high < 1.0);
    Some(Step {
        from: before.degree,
        to: after.degree,
        speedup: ratio.ratio,
        interval: ratio.interval,
        ideal,
        gain: ratio.ratio.ln() / ideal.ln(),
        cpu,
        is_above_ideal: ratio.interval.map_or(ratio.ratio, |interval| interval.low) > ideal,
        cpu_falls: is_sure && cpu.is_some_and(|cpu| cpu < CPU_FALLS),
        plan_changes: matches!((&before.plan, &after.plan), (Some(a), Some(b)) if a != b),
    })
}

fn classify(steps: &[Step]) -> (Class, String) {
    let name = |step: &Step| format!("{} to {}", step.from, step.to);
    let is_good = |step: &Step| step.gain >= GOOD;
    if let Some(flip) = steps.iter().find(|step| step.plan_changes && step.from > 1) {
        return (Class::PlanFlip, format!("another plan from {}", name(flip)));
    }
    if let Some(best) = steps.iter().find(|step| step.is_above_ideal) {
        let why =
            format!("{}: {:.2} times as fast, ideal {}", name(best), best.speedup, best.ideal);
        return (Class::SuperScaling, why);
    }
    // Less CPU in hardly less time is work that waits, not a cheaper plan.
    if let Some(falls) = steps.iter().find(|step| step.cpu_falls && is_good(step)) {
        let share = falls.cpu.unwrap_or(1.0) * 100.0;
        return (Class::SuperScaling, format!("{}: {share:.0} % of the CPU time", name(falls)));
    }
    let (first, later) = (&steps[0], &steps[1..]);
    if !is_good(first) {
        return match later.iter().find(|step| is_good(step)) {
            Some(good) => {
                let why = format!("{} poor, {} good", name(first), name(good));
                (Class::InefficientThenScales, why)
            }
            None => (Class::DoesNotScale, "no step reaches half of the ideal gain".to_owned()),
        };
    }
    let rises = steps.windows(2).any(|two| two[1].gain > two[0].gain + GAIN_TOLERANCE);
    match rises {
        true => (Class::Irregular, "a later step gains more than the one before".to_owned()),
        false => (Class::Conventional, "no step gains more than the one before".to_owned()),
    }
}

#[cfg(test)]
mod tests;
