//! A result as the sections of the page query it, with the same names everywhere.

use std::collections::{BTreeSet, HashMap};

use workahead_study::cell::Cell;
use workahead_study::measure::{INSTRUCTIONS, THROUGHPUT};
use workahead_study::results::{Finding, Results};
use workahead_study::setting::Setting;
use workahead_study::statistics::{Interval, Ratio, Significance};
use workahead_study::throughput::Unit;

use crate::chart::Tone;
use crate::{number, words};

/// The engine's measure of the machine's limit, in the unit of throughput.
const LIMIT: &str = "limit_mtuples_per_s";
const LIMIT_FRACTION: &str = "limit_fraction";

/// More figures of papers hide what was measured: none is drawn.
const CLAIM_BASELINES_MAX: usize = 5_000;

/// A result with its findings.
pub(crate) struct View<'a> {
    pub(crate) results: &'a Results,
    /// One per cell, in the run plan's order.
    pub(crate) findings: Vec<Finding>,
    /// The unit of throughputs.
    throughput: Unit,
    /// The axes with more than one value.
    varying: BTreeSet<&'a str>,
    /// Whether any cell reports its threads.
    has_threads: bool,
    /// The baseline that a claim's ratio of throughputs is to, by the claim's position and the
    /// index of the cell.
    claim_baselines: HashMap<(usize, usize), usize>,
}

impl<'a> View<'a> {
    pub(crate) fn of(results: &'a Results) -> Self {
        let cells = &results.run_plan.cells;
        let axes = results.run_plan.axes.iter().map(String::as_str);
        let has_several = |axis: &&str| {
            let mut values = cells.iter().map(|cell| cell.place.get(*axis));
            let first = values.next().flatten();
            values.any(|value| value != first)
        };
        Self {
            results,
            findings: results.findings(),
            throughput: results.unit(),
            varying: axes.filter(has_several).collect(),
            has_threads: cells.iter().any(|cell| reported_threads(results, cell).is_some()),
            claim_baselines: claim_baselines(results).unwrap_or_default(),
        }
    }

    /// The baseline of a claim's ratio of throughputs for a cell; none if it is about other cells.
    pub(crate) fn claim_baseline(&self, claim: usize, cell: &Cell) -> Option<&'a Cell> {
        self.claim_baselines
            .get(&(claim, cell.index))
            .map(|base| &self.results.run_plan.cells[*base])
    }

    pub(crate) fn cells(&self) -> &'a [Cell] {
        &self.results.run_plan.cells
    }

    pub(crate) fn finding(&self, cell: &Cell) -> &Finding {
        &self.findings[cell.index]
    }

    /// Whether the figures come from a model. Then every one of them bears the word "modelled".
    pub(crate) fn is_modelled(&self) -> bool {
        let record = &self.results.record;
        record.host.tier == "E" || record.engine.starts_with("model")
    }

    /// The letter of the evidence tier and its meaning.
    pub(crate) fn tier(&self) -> String {
        words::tier(if self.is_modelled() { "E" } else { &self.results.record.host.tier })
    }

    /// A measure with its unit, and the word "modelled" where it is.
    pub(crate) fn unit(&self, measure: &str) -> String {
        let name = match measure {
            THROUGHPUT => self.throughput.name.clone(),
            INSTRUCTIONS => {
                format!("instructions per {}", words::singular(&self.results.spec.method.tuples))
            }
            other => words::measure(other),
        };
        let unit = words::label(&name);
        match self.is_modelled() {
            true => format!("{unit}, modelled"),
            false => unit,
        }
    }

    /// A measure of a cell in the page's unit.
    pub(crate) fn value(&self, cell: &Cell, measure: &str) -> Option<f64> {
        Some(self.results.value(cell.index, measure)? * self.factor(measure))
    }

    /// Every sample of a measure of a cell in the page's unit.
    pub(crate) fn values(&self, cell: &Cell, measure: &str) -> Vec<f64> {
        let values = self.results.values(cell.index, measure).into_iter();
        values.map(|value| value * self.factor(measure)).collect()
    }

    /// The factor from a sample's figure to the page's unit.
    pub(crate) fn factor(&self, measure: &str) -> f64 {
        match measure {
            THROUGHPUT | LIMIT => self.throughput.factor,
            _ => 1.0,
        }
    }

    /// Whether the study compares techniques of ours, which have names of their own, rather than
    /// the settings of a database.
    pub(crate) fn compares_techniques(&self) -> bool {
        self.is_modelled() || self.results.record.engine == "native"
    }

    /// The baseline in words; `None` for a study without one, and where no throughputs are to be
    /// compared with its own.
    pub(crate) fn baseline(&self) -> Option<String> {
        if !self.results.is_timed() {
            return None;
        }
        let baseline = &self.results.spec.method.baseline;
        let parts: Vec<String> =
            baseline.iter().map(|(name, value)| words::setting(name, value)).collect();
        (!parts.is_empty()).then(|| words::label(&parts.join(", ")))
    }

    /// How a cell compares with the baseline.
    pub(crate) fn tone(&self, finding: &Finding) -> Tone {
        match finding.ratio.map(|ratio| ratio.shown()) {
            _ if !self.results.is_timed() => Tone::Level,
            _ if finding.is_baseline => Tone::Baseline,
            Some(Significance::Faster) => Tone::Better,
            Some(Significance::Slower) => Tone::Worse,
            Some(Significance::NoDifference) | None => Tone::Level,
        }
    }

    /// CPU time for each tuple of a cell over its baseline's.
    pub(crate) fn cpu_ratio(&self, cell: &Cell) -> Option<Ratio> {
        let baseline = &self.results.spec.method.baseline;
        let base = self.results.run_plan.baseline_of(cell, baseline)?;
        let is_other = !baseline.is_empty() && base.index != cell.index;
        let pairs = || self.results.paired(cell.index, base.index, "cpu_ns_per_tuple");
        is_other.then(pairs).and_then(|pairs| Ratio::paired(&pairs))
    }

    /// The machine's limit for a cell, in the unit of throughput.
    pub(crate) fn limit(&self, cell: &Cell) -> Option<f64> {
        self.value(cell, LIMIT).filter(|limit| *limit > 0.0)
    }

    /// The share of the machine's limit that a cell reaches.
    pub(crate) fn limit_fraction(&self, cell: &Cell) -> Option<f64> {
        let reported = self.results.value(cell.index, LIMIT_FRACTION);
        reported.or_else(|| Some(self.value(cell, THROUGHPUT)? / self.limit(cell)?))
    }

    /// The 95 % interval of a measure of one cell: that of its ratio to 1.
    pub(crate) fn interval(&self, cell: &Cell, measure: &str) -> Option<(f64, f64)> {
        let seen = self.values(cell, measure);
        let pairs: Vec<(f64, f64)> = seen.into_iter().map(|value| (value, 1.0)).collect();
        let interval = Ratio::paired(&pairs)?.interval?;
        Some((interval.low, interval.high))
    }

    /// The technique of a cell: its case, or all of its place when the study has none.
    pub(crate) fn technique(&self, cell: &Cell) -> String {
        match cell.case() {
            "" => self.place(cell, &[]),
            case => words::label(case),
        }
    }

    /// The coordinates of a cell without its case: `hash join, pages huge`.
    pub(crate) fn surroundings(&self, cell: &Cell) -> String {
        self.place(cell, &["case"])
    }

    /// Whether two cells differ by no other axis than their case. Words don't tell: they are cut.
    pub(crate) fn have_same_surroundings(&self, one: &Cell, other: &Cell) -> bool {
        let mut axes = self.results.run_plan.axes.iter().filter(|axis| *axis != "case");
        axes.all(|axis| one.place.get(axis) == other.place.get(axis))
    }

    /// The coordinates of a cell in words, without some axes and without axes with a single value.
    pub(crate) fn place(&self, cell: &Cell, without: &[&str]) -> String {
        let is_told = |axis: &&String| !without.contains(&axis.as_str()) && self.varies(axis);
        let axes = self.results.run_plan.axes.iter().filter(is_told);
        let value = |axis: &String| Some(words::setting(axis, cell.place.get(axis)?));
        words::label(&axes.filter_map(value).collect::<Vec<_>>().join(", "))
    }

    /// The coordinates of a cell as a phrase: `unj at 10 clients`.
    pub(crate) fn spoken(&self, cell: &Cell, without: &[&str]) -> String {
        let is_told = |axis: &&String| !without.contains(&axis.as_str()) && self.varies(axis);
        let axes = self.results.run_plan.axes.iter().filter(is_told);
        let reported = axes.filter_map(|axis| Some(words::spoken(axis, cell.place.get(axis)?)));
        words::label(&reported.collect::<Vec<_>>().join(" "))
    }

    /// Whether cases recur in other cells, so that their settings are listed once.
    pub(crate) fn cases_recur(&self) -> bool {
        self.cells().len() > self.results.spec.cases.len()
    }

    /// Whether an axis has more than one value.
    pub(crate) fn varies(&self, axis: &str) -> bool {
        self.varying.contains(axis)
    }

    /// The threads of a cell in words: `2 threads`.
    pub(crate) fn threads_words(&self, cell: &Cell) -> Option<String> {
        self.threads(cell).map(|threads| words::counted(threads, "thread"))
    }

    /// The number of threads of a cell, by the engine or its settings; one if only other cells
    /// report it.
    pub(crate) fn threads(&self, cell: &Cell) -> Option<usize> {
        reported_threads(self.results, cell).or(self.has_threads.then_some(1))
    }
}

/// The baselines of all claims; none if they are about too many cells.
fn claim_baselines(results: &Results) -> Option<HashMap<(usize, usize), usize>> {
    let (run_plan, mut claim_baselines) = (&results.run_plan, HashMap::new());
    let claims = results.spec.claims.iter().enumerate();
    for (position, claim) in claims.filter(|(_, claim)| claim.is_of_throughput()) {
        let own = !claim.against.is_empty();
        let against = if own { &claim.against } else { &results.spec.method.baseline };
        for cell in run_plan.cells.iter().filter(|cell| run_plan.means(&claim.cells, cell)) {
            let base = run_plan.baseline_of(cell, against).map(|base| base.index);
            if let Some(base) = base.filter(|base| *base != cell.index) {
                claim_baselines.insert((position, cell.index), base);
            }
            if claim_baselines.len() > CLAIM_BASELINES_MAX {
                return None;
            }
        }
    }
    Some(claim_baselines)
}

fn reported_threads(results: &Results, cell: &Cell) -> Option<usize> {
    let reported = results.value(cell.index, "threads").map(|threads| threads as usize);
    let set = || match cell.get("threads")? {
        Setting::Integer(threads) => usize::try_from(*threads).ok(),
        // `bi:2`, `independent:2`, `single`
        Setting::Text(text) => {
            text.rsplit([':', '=']).next()?.parse().ok().or((text == "single").then_some(1))
        }
        _ => None,
    };
    reported.or_else(set)
}

/// A ratio in words: the figure, and its interval or "no difference shown".
pub(crate) fn ratio_words(finding: &Finding) -> (String, String) {
    match finding.ratio {
        None if finding.is_baseline && finding.mtuples_per_s.is_some() => {
            (number::ratio(1.0), "baseline".to_owned())
        }
        None => (String::new(), String::new()),
        Some(ratio) => (number::ratio(ratio.ratio), interval_words(ratio)),
    }
}

/// The interval of a ratio in words.
fn interval_words(ratio: Ratio) -> String {
    match (ratio.interval, ratio.shown()) {
        (None, _) => "one sample only".to_owned(),
        (Some(Interval { low, high }), _) if low >= high => "modelled, always the same".to_owned(),
        (Some(_), Significance::NoDifference) => "no difference shown".to_owned(),
        (Some(interval), _) => number::ratio_interval((interval.low, interval.high)),
    }
}
