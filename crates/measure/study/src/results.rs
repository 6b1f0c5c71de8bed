//! A result directory, loaded: record, observations, findings.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::path::Path;

use serde::Serialize;

use crate::cell::Cell;
use crate::claim::Claim;
use crate::engine::Sample;
use crate::error::StudyError;
use crate::log;
use crate::measure::{INSTRUCTIONS, THROUGHPUT, TIMES};
use crate::observation::{Observation, Outcome};
use crate::plans::{Label, Node, PlanText};
use crate::record::Record;
use crate::run_plan::RunPlan;
use crate::setting::Settings;
use crate::spec::Spec;
use crate::statistics::{Interval, Mean, Overlap, Ratio, Summary, holm, mean};
use crate::throughput::Unit;
use crate::verdict::{self, Judgement, Origin, Verdict};

mod collection;
mod observations;

pub use observations::Observations;

/// The least share of the requested processor time in an undisturbed run: the rest went to other
/// programs, or to the host of a virtual machine.
pub const CPU_SHARE_QUIET: f64 = 0.8;

/// A run, finished or not.
#[derive(Debug, Clone, PartialEq)]
pub struct Results {
    /// The record of the run.
    pub record: Record,
    /// The study as it was run.
    pub spec: Spec,
    /// Its cells.
    pub run_plan: RunPlan,
    /// Observations in the order of visits: by block, repetition, slot.
    pub observations: Observations,
}

/// The finding of one cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// Index of the cell.
    pub cell: usize,
    /// The cell in words.
    pub label: String,
    /// Samples it rests on.
    pub samples: usize,
    /// Throughput, by the study's mean; `None` if nothing is timed.
    pub mtuples_per_s: Option<f64>,
    /// Instructions for each tuple, by the study's mean, where a model counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions_per_tuple: Option<f64>,
    /// Throughput over the baseline's; none for the baseline itself.
    pub ratio: Option<Ratio>,
    /// The p value of the ratio, adjusted for all ratios of the study (Holm 1979).
    pub p_adjusted: Option<f64>,
    /// Hassanein's rule on the same two cells; the ratio's interval decides.
    pub overlap: Option<Overlap>,
    /// Whether the query plan is the baseline's, if known.
    pub plan: Option<Label>,
    /// The summary of its throughputs.
    pub summary: Option<Summary>,
    /// Whether others are compared with it.
    pub is_baseline: bool,
    /// Why there is no sample, or not all of them.
    pub failure: Option<String>,
    /// The limitation of this machine for it.
    pub limitation: Option<String>,
    /// Why it can't be run on this machine.
    pub impossible: Option<String>,
}

impl Results {
    /// Loads a directory that a run wrote. Nothing is run.
    pub fn load(dir: &Path) -> Result<Results, StudyError> {
        let record = Record::load(dir)?;
        let spec = record.spec()?;
        let run_plan = RunPlan::new(&spec).skipping(&record.needs);
        let mut observations = log::read(dir, &record.run_plan_fingerprint, &run_plan)?;
        let block = |observation: &Observation| run_plan.cells[observation.cell].block;
        observations.sort_by_key(|seen| (block(seen), seen.repetition, seen.slot));
        Ok(Results { record, spec, run_plan, observations: observations.into() })
    }

    /// Observations of one cell, by repetition.
    pub fn of_cell(&self, cell: usize) -> impl Iterator<Item = &Observation> {
        self.observations.of_cell(cell)
    }

    /// Whether its times are the engine's own.
    pub fn is_timed(&self) -> bool {
        self.spec.method.instrumented.is_none()
    }

    /// The main measure: throughput, or instructions if nothing is timed.
    pub fn headline(&self) -> &'static str {
        if self.is_timed() { THROUGHPUT } else { INSTRUCTIONS }
    }

    /// A measure of an observation; not of time if the times are a tool's.
    pub fn measure(&self, seen: &Observation, name: &str) -> Option<f64> {
        match TIMES.contains(&name) && !self.is_timed() {
            true => None,
            false => seen.measure(name),
        }
    }

    /// A measure of a cell, by the study's mean.
    pub fn value(&self, cell: usize, measure: &str) -> Option<f64> {
        mean(&self.values(cell, measure), self.spec.method.mean)
    }

    /// The unit of its throughputs.
    pub fn unit(&self) -> Unit {
        let values =
            self.run_plan.cells.iter().filter_map(|cell| self.value(cell.index, THROUGHPUT));
        Unit::of(&self.spec.method.tuples, values)
    }

    /// The share of its threads' time in which a sample had a CPU: the median over all samples
    /// whose engine reports `threads`, and `cpus` if those are fewer. `None` without such samples.
    pub fn cpu_share(&self) -> Option<f64> {
        if !self.is_timed() {
            return None;
        }
        let share = |sample: &Sample| {
            let requested = sample.measure("cpus").or_else(|| sample.measure("threads"));
            Some(sample.cpu_s? / (sample.wall_s * requested.filter(|n| *n >= 1.0)?))
        };
        let samples = self.observations.iter().filter_map(Observation::sample);
        let shares: Vec<f64> = samples.filter_map(share).collect();
        mean(&shares, Mean::Median)
    }

    /// Why this run supports no conclusion, if other programs took too much of the machine.
    pub fn disturbance(&self) -> Option<String> {
        let share = self.cpu_share().filter(|share| *share < CPU_SHARE_QUIET)?;
        Some(format!(
            "the machine was busy, the threads had {:.0} % of the processor time they asked for: \
             run it again when nothing else runs",
            share * 100.0
        ))
    }

    /// Names of everything the engine measured beside time.
    pub fn measures(&self) -> Vec<String> {
        let samples = self.observations.iter().filter_map(Observation::sample);
        let names = samples.flat_map(|sample| sample.measures.keys().cloned());
        names.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
    }

    /// Whether every cell has all its samples, or the reason why not.
    pub fn is_complete(&self) -> bool {
        let done = |cell: &Cell| {
            self.run_plan.skipped.contains(&cell.index)
                || self.failure(cell.index).is_some()
                || self.of_cell(cell.index).count() == self.run_plan.repetitions as usize
        };
        self.run_plan.cells.iter().all(done)
    }

    /// Why a cell failed, if it did.
    pub fn failure(&self, cell: usize) -> Option<&str> {
        self.of_cell(cell).find_map(|observation| match &observation.outcome {
            Outcome::Failed { failure } => Some(failure.as_str()),
            Outcome::Sample(_) => None,
        })
    }

    /// Why a cell has no sample, or none with this figure, in words.
    pub fn absence(&self, cell: usize) -> String {
        let impossible = self.record.needs.get(cell).and_then(|need| need.impossible.as_ref());
        match (self.failure(cell), impossible) {
            (Some(failure), _) => format!("failed: {failure}"),
            (None, Some(why)) => format!("not here: {why}"),
            (None, None) if self.of_cell(cell).next().is_some() => "has no such figure".to_owned(),
            (None, None) => "not run yet".to_owned(),
        }
    }

    /// Throughput of a cell over the throughput of the cell that differs by `baseline`, paired by
    /// repetition. None for the baseline itself and without one.
    pub fn ratio(&self, cell: &Cell, baseline: &Settings) -> Option<Ratio> {
        self.ratio_of(cell, baseline, THROUGHPUT)
    }

    /// The same for any measure.
    pub fn ratio_of(&self, cell: &Cell, baseline: &Settings, measure: &str) -> Option<Ratio> {
        let base = self.other(cell, baseline)?;
        Ratio::paired(&self.paired(cell.index, base.index, measure)).map(|ratio| self.exact(ratio))
    }

    /// A model always gives the same result: one sample is enough, and rounding of the logarithms
    /// of several is not an interval.
    fn exact(&self, ratio: Ratio) -> Ratio {
        match self.record.host.is_modelled() {
            true => Ratio { interval: Some(Interval::at(ratio.ratio)), ..ratio },
            false => ratio,
        }
    }

    /// Two measures of one cell, in pairs of the same repetition.
    fn paired_within(&self, cell: usize, measure: &str, over: &str) -> Vec<(f64, f64)> {
        let pair =
            |seen: &Observation| Some((self.measure(seen, measure)?, self.measure(seen, over)?));
        self.of_cell(cell).filter_map(pair).collect()
    }

    /// The baseline of a cell, unless it is the cell itself.
    fn other(&self, cell: &Cell, baseline: &Settings) -> Option<&Cell> {
        self.run_plan.baseline_of(cell, baseline).filter(|base| base.index != cell.index)
    }

    /// A measure of two cells, in pairs of the same repetition.
    pub fn paired(&self, cell: usize, base: usize, measure: &str) -> Vec<(f64, f64)> {
        self.paired_measures((cell, measure), (base, measure))
    }

    /// A measure of one cell and another of another, in pairs of the same repetition.
    fn paired_measures(
        &self,
        (cell, measure): (usize, &str),
        (base, over): (usize, &str),
    ) -> Vec<(f64, f64)> {
        let of_base: HashMap<u32, &Observation> =
            self.of_cell(base).map(|seen| (seen.repetition, seen)).collect();
        let pair = |seen: &Observation| {
            let other = of_base.get(&seen.repetition)?;
            Some((self.measure(seen, measure)?, self.measure(other, over)?))
        };
        self.of_cell(cell).filter_map(pair).collect()
    }

    /// Every value of a measure of a cell.
    pub fn values(&self, cell: usize, measure: &str) -> Vec<f64> {
        self.of_cell(cell).filter_map(|seen| self.measure(seen, measure)).collect()
    }

    /// The summary of a measure of a cell.
    pub fn summary(&self, cell: usize, measure: &str) -> Option<Summary> {
        Summary::of(&self.values(cell, measure), self.spec.seed)
    }

    /// The query plan of a cell: the first that was kept.
    pub fn plan_of(&self, cell: usize) -> Option<&PlanText> {
        self.of_cell(cell).find_map(|seen| seen.sample()?.plan.as_ref())
    }

    /// A cell's query plan with the times of its operators, if it was run for them.
    pub fn timed_plan_of(&self, cell: usize) -> Option<Node> {
        self.of_cell(cell).find_map(|seen| seen.sample()?.plan.as_ref()?.timed())
    }

    /// Whether two cells have the same query plan; `None` if one of them is unknown.
    pub fn plan_label(&self, cell: usize, base: usize) -> Option<Label> {
        Some(self.plan_of(cell)?.against(self.plan_of(base)?))
    }

    /// The findings of all cells.
    pub fn findings(&self) -> Vec<Finding> {
        let mut findings: Vec<Finding> =
            self.run_plan.cells.iter().map(|cell| self.finding(cell)).collect();
        let p: Vec<Option<f64>> = findings.iter().map(|finding| finding.ratio?.p).collect();
        for (finding, adjusted) in findings.iter_mut().zip(holm(&p)) {
            finding.p_adjusted = adjusted;
        }
        findings
    }

    fn finding(&self, cell: &Cell) -> Finding {
        let baseline = &self.spec.method.baseline;
        let other = self.other(cell, baseline).map(|base| base.index);
        let need = self.record.needs.get(cell.index);
        let overlap = other.and_then(|base| {
            let values = |cell| self.values(cell, THROUGHPUT);
            Overlap::of(&values(cell.index), &values(base))
        });
        Finding {
            cell: cell.index,
            label: cell.label(&self.run_plan.axes),
            samples: self.of_cell(cell.index).filter(|seen| seen.sample().is_some()).count(),
            mtuples_per_s: self.value(cell.index, THROUGHPUT),
            instructions_per_tuple: self.value(cell.index, INSTRUCTIONS),
            ratio: self.ratio(cell, baseline),
            p_adjusted: None,
            overlap,
            plan: other.and_then(|base| self.plan_label(cell.index, base)),
            summary: self.summary(cell.index, THROUGHPUT),
            is_baseline: !baseline.is_empty()
                && self.run_plan.baseline_of(cell, baseline).is_some_and(|b| b.index == cell.index),
            failure: self.failure(cell.index).map(str::to_owned),
            limitation: need
                .filter(|need| need.impossible.is_none())
                .and_then(|need| need.limitation.as_ref())
                .map(ToString::to_string),
            impossible: need.and_then(|need| need.impossible.as_ref()).map(ToString::to_string),
        }
    }

    /// A verdict for every claim of the paper, in the study's order.
    pub fn verdicts(&self) -> Vec<Verdict> {
        self.verdicts_of(self.spec.claims.iter())
    }

    /// The same with every claim reduced to its direction, for figures that the paper only draws.
    pub fn verdicts_of_direction(&self) -> Vec<Verdict> {
        self.verdicts_of(self.spec.claims.iter().map(verdict::direction_only))
    }

    fn verdicts_of<C: Borrow<Claim>>(&self, claims: impl Iterator<Item = C>) -> Vec<Verdict> {
        let disturbance = self.disturbance();
        let verdict = |(index, claim): (usize, C)| {
            let claim = claim.borrow();
            let missing = self.missing(claim).or_else(|| disturbance.clone());
            self.verdict(index, claim, missing)
        };
        claims.enumerate().map(verdict).collect()
    }

    fn verdict(&self, index: usize, claim: &Claim, missing: Option<String>) -> Verdict {
        let is_meant = |cell: &&Cell| {
            let is_excepted = claim.except.iter().any(|except| cell.has(except));
            self.run_plan.means(&claim.cells, cell) && !is_excepted
        };
        let meant = self.run_plan.cells.iter().filter(is_meant);
        let is_other = |cell: &&Cell| {
            let base = self.run_plan.baseline_of(cell, self.baseline(claim));
            let is_compared = claim.over.is_none() && claim.value.is_none();
            !is_compared || base.is_none_or(|base| base.index != cell.index)
        };
        let meant = meant.filter(is_other);
        let cells: Vec<(usize, Option<Ratio>)> =
            meant.map(|cell| (cell.index, self.figure(cell, claim))).collect();
        let judgement = match missing {
            Some(missing) => Judgement::unsaid(missing),
            None => verdict::judge_cells(claim, &cells, Origin::of(&self.record.host)),
        };
        Verdict { claim: index, judgement, tier: self.record.host.tier.clone(), cells }
    }

    /// A requirement of a claim that this run lacks.
    fn missing(&self, claim: &Claim) -> Option<String> {
        let needs: Vec<_> = self.spec.needs.iter().chain(&claim.needs).copied().collect();
        verdict::missing(&needs, &self.record.host)
    }

    fn baseline<'a>(&'a self, claim: &'a Claim) -> &'a Settings {
        match claim.against.is_empty() {
            true => &self.spec.method.baseline,
            false => &claim.against,
        }
    }

    /// Our figure for a claim at a cell: a ratio of two cells, of two measures of one, of two such
    /// ratios, or of a measure to the paper's value.
    fn figure(&self, cell: &Cell, claim: &Claim) -> Option<Ratio> {
        let pairs = self.pairs(cell, claim)?;
        let pairs = match claim.than.is_empty() {
            true => pairs,
            false => {
                // (a / b) / (c / d) of the same repetition, as one ratio of a · d to b · c.
                let others = self.pairs(self.run_plan.baseline_of(cell, &claim.than)?, claim)?;
                let both = pairs.into_iter().zip(others);
                both.map(|((a, b), (c, d))| (a * d, b * c)).collect()
            }
        };
        Ratio::of_counts(&pairs).map(|ratio| self.exact(ratio))
    }

    fn pairs(&self, cell: &Cell, claim: &Claim) -> Option<Vec<(f64, f64)>> {
        let measure = claim.measure.as_deref().unwrap_or(THROUGHPUT);
        Some(match (claim.value, &claim.over) {
            (Some(value), None) => {
                self.values(cell.index, measure).into_iter().map(|ours| (ours, value)).collect()
            }
            // A value of two measures: a share.
            (Some(value), Some(over)) => {
                let within = self.paired_within(cell.index, measure, over);
                within.into_iter().map(|(part, whole)| (part, whole * value)).collect()
            }
            (None, Some(over)) if claim.against.is_empty() => {
                self.paired_within(cell.index, measure, over)
            }
            (None, over) => {
                let base = self.other(cell, self.baseline(claim))?.index;
                let over = over.as_deref().unwrap_or(measure);
                self.paired_measures((cell.index, measure), (base, over))
            }
        })
    }
}
