//! Whether two CPUs share a core, from how they slow each other.
//!
//! ```text
//! a loop that keeps the multiplier of a core busy:   alone on a,   alone on b,   both at once
//! both at once ÷ (alone + alone)                     1 on two cores,  ½ on siblings of one core
//! ```
//!
//! A core has one unit that multiplies (or two that its siblings share), and the loop has enough
//! independent products to fill it: siblings halve each other exactly, whatever else they share.
//! Two cores slow each other only by what the clock speed drops when both work. A virtual machine
//! may hide siblings, or place two of its CPUs on one core and not tell; hence the probe, beside
//! what the system says. A repetition in which a thread lost its CPU to something else shows
//! nothing and is thrown away.

mod sibling_pair;

use std::hint::black_box;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::Moment;
use crate::cpus::CpuSet;
use crate::error::Error;
use crate::machine::Machine;
use crate::topology::Smt;

pub use sibling_pair::{SiblingPair, Source};

use super::deadline::Deadline;
use super::team;

/// The evidence about pairs of CPUs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Siblings {
    /// The pairs probed.
    pub pairs: Vec<Pair>,
}

/// Two CPUs that were probed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// The CPUs.
    pub cpus: (usize, usize),
    /// Whether the system says that they share a core; `None` when it does not say.
    pub reported: Option<bool>,
    /// Work per second of both at once, as a share of what they do alone, one after the other;
    /// `None` when the machine was too busy to tell.
    pub throughput_ratio: Option<f64>,
}

/// The verdict of a pair's behaviour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Behaviour {
    /// They halve each other: siblings.
    OneCore,
    /// They don't touch each other.
    TwoCores,
    /// Something between, or the machine was too busy.
    Unclear,
}

/// Siblings give 0.5, and up to 0.6 where a core has a second multiplier to share.
const ONE_CORE_MOST: f64 = 0.67;
/// Two cores give 1, less what the clock drops when both work (up to 15 % on laptops).
const TWO_CORES_LEAST: f64 = 0.8;

impl Pair {
    /// The verdict of their behaviour.
    #[must_use]
    pub fn behaviour(&self) -> Behaviour {
        match self.throughput_ratio {
            Some(ratio) if ratio <= ONE_CORE_MOST => Behaviour::OneCore,
            Some(ratio) if ratio >= TWO_CORES_LEAST => Behaviour::TwoCores,
            _ => Behaviour::Unclear,
        }
    }

    /// Whether they behave otherwise than the system says.
    #[must_use]
    pub fn is_disagreement(&self) -> bool {
        match (self.reported, self.behaviour()) {
            (Some(reported), Behaviour::OneCore) => !reported,
            (Some(reported), Behaviour::TwoCores) => reported,
            (None, _) | (_, Behaviour::Unclear) => false,
        }
    }
}

impl Siblings {
    /// Two CPUs that behave as siblings.
    #[must_use]
    pub fn pair(&self) -> Option<(usize, usize)> {
        let mut pairs = self.pairs.iter();
        pairs.find(|pair| pair.behaviour() == Behaviour::OneCore).map(|pair| pair.cpus)
    }

    /// Probes pairs of the CPUs that may be used, until the deadline.
    pub(super) fn probe(machine: &Machine, deadline: Deadline<'_>) -> Result<Self, Error> {
        let mut pairs = Vec::new();
        for cpus in candidates(machine) {
            deadline.check()?;
            if deadline.passed() {
                break;
            }
            let reported = reported(machine, cpus);
            pairs.push(Pair { cpus, reported, throughput_ratio: ratio(cpus, deadline)? });
        }
        Ok(Self { pairs })
    }
}

/// On so few CPUs every pair is probed.
const ALL_PAIRS_CPUS: usize = 8;
/// Reported pairs that are verified where not every pair is probed.
const REPORTED_PAIRS: usize = 4;
/// Partners probed for the first CPU where not every pair is probed.
const PARTNERS: usize = 64;

/// The pairs worth probing: all of a small machine; of a larger one the first CPU with the others,
/// and some of the pairs that the system reports.
fn candidates(machine: &Machine) -> Vec<(usize, usize)> {
    let cpus: Vec<usize> = machine.allowed_cpus().iter().collect();
    let firsts = if cpus.len() <= ALL_PAIRS_CPUS { cpus.len() } else { 1 };
    let mut pairs = Vec::new();
    for core in &machine.cores {
        let usable: Vec<usize> = core.cpus.intersection(machine.allowed_cpus()).iter().collect();
        if let [first, second, ..] = usable[..] {
            pairs.push((first, second));
        }
    }
    pairs.truncate(REPORTED_PAIRS);
    for (i, &first) in cpus.iter().enumerate().take(firsts) {
        for &second in cpus[i + 1..].iter().take(PARTNERS) {
            if !pairs.contains(&(first, second)) {
                pairs.push((first, second));
            }
        }
    }
    pairs
}

fn reported(machine: &Machine, (one, other): (usize, usize)) -> Option<bool> {
    if machine.smt == Smt::Unknown {
        return None;
    }
    Some(machine.core_of(one)?.cpus.contains(other))
}

/// One sample; long enough for the clock speed to settle on most machines.
const SAMPLE: Duration = Duration::from_millis(4);
/// Undisturbed repetitions wanted, and tries to get them.
const REPETITIONS: usize = 3;
const TRIES: usize = 12;

/// The best ratio of the undisturbed repetitions: a disturbance that goes unseen (the host ran
/// something else on the core) only lowers it.
fn ratio((one, other): (usize, usize), deadline: Deadline<'_>) -> Result<Option<f64>, Error> {
    let mut ratios = Vec::new();
    for _ in 0..TRIES {
        deadline.check()?;
        let alone = [work_on(&[one])?, work_on(&[other])?].concat();
        let both = work_on(&[one, other])?;
        ratios.extend(ratio_of(&alone, &both));
        if ratios.len() == REPETITIONS || deadline.passed() {
            break;
        }
    }
    Ok(ratios.into_iter().reduce(f64::max))
}

/// The work of a thread.
#[derive(Debug, Clone, Copy)]
struct Work {
    /// By the thread's own CPU time.
    per_s: f64,
    /// CPU time by wall time: below 1 when something else had the CPU.
    presence: f64,
}

/// Less than this, and the other ran alone for a while.
const PRESENCE_LEAST: f64 = 0.93;

/// `None` when a thread was disturbed.
fn ratio_of(alone: &[Work], both: &[Work]) -> Option<f64> {
    let sum = |work: &[Work]| work.iter().map(|work| work.per_s).sum::<f64>();
    let ratio = sum(both) / sum(alone);
    let disturbed = both.iter().any(|work| work.presence < PRESENCE_LEAST);
    (!disturbed && ratio.is_finite()).then_some(ratio)
}

fn work_on(cpus: &[usize]) -> Result<Vec<Work>, Error> {
    let allowed: CpuSet = cpus.iter().copied().collect();
    team::together(cpus, &allowed, |i| {
        let began = Moment::now();
        let mut rounds = 0u64;
        while began.wall_s() < SAMPLE.as_secs_f64() {
            multiply(i as u64);
            rounds += 1;
        }
        let elapsed = began.elapsed();
        Work { per_s: rounds as f64 / elapsed.cpu_s, presence: elapsed.cpu_s / elapsed.wall_s }
    })
}

/// Eight independent chains of products: a multiplier takes a new one every cycle and needs three
/// or four cycles for each, so eight fill two of them. (Vectors, if the compiler makes some, keep
/// units busy that siblings share as well.)
fn multiply(first: u64) {
    let factor = black_box(0x9e37_79b9_7f4a_7c15u64);
    let mut chains: [u64; 8] = std::array::from_fn(|i| first + i as u64);
    for _ in 0..2048 {
        for chain in &mut chains {
            *chain = chain.wrapping_mul(factor);
        }
    }
    black_box(chains);
}

#[cfg(test)]
mod tests;
