//! The contents of a page, before it is HTML or Markdown.

use serde::Serialize;
use workahead_study::results::{self, Results};
use workahead_study::statistics::OUTLIER_RULE;

use crate::answer::{Answer, answer};
use crate::counted::{CountsSection, counted};
use crate::download::{self, Download};
use crate::facts::{self, Fact};
use crate::figures::{Figure, figures};
use crate::functions::published::PublishedFunctions;
use crate::functions::{Functions, functions};
use crate::instrumented::{InstrumentedSection, instrumented};
use crate::limitations::limitations;
use crate::view::View;
use crate::{
    claims, date, gains_and_losses, number, plan_cost_change, plans, rows, samples, words,
};

/// The page, in its order.
#[derive(Debug, Serialize)]
pub(crate) struct Page {
    pub(crate) study: String,
    pub(crate) title: String,
    pub(crate) question: String,
    pub(crate) date: String,
    pub(crate) machine_name: String,
    pub(crate) is_modelled: bool,
    /// The evidence tier with its meaning.
    pub(crate) tier: String,
    pub(crate) scale: Option<String>,
    /// The state of an unfinished run: `23 of 45 samples so far`.
    pub(crate) unfinished: Option<String>,
    /// A warning if the run waited for CPUs.
    pub(crate) busy: Option<String>,
    pub(crate) answer: Answer,
    /// Gains and losses of each technique, if it is tried in more than one place.
    pub(crate) gains_and_losses: Vec<gains_and_losses::Row>,
    /// The baseline.
    pub(crate) baseline: Option<String>,
    pub(crate) figures: Vec<Figure>,
    /// Unit of the table's first figure.
    /// Whether times are the engine's own; there are none for cells that run under a tool.
    pub(crate) is_timed: bool,
    pub(crate) unit: String,
    pub(crate) groups: Vec<rows::Group>,
    /// Whether any cell is measured against a limit.
    pub(crate) has_limits: bool,
    /// Names of further columns.
    pub(crate) extras: Vec<String>,
    /// Counters, if the study collects them.
    pub(crate) counted: Option<CountsSection>,
    /// Function profiles, if the study collects them.
    pub(crate) functions: Option<Functions>,
    /// Instructions by function, if counted.
    pub(crate) instrumented: Option<InstrumentedSection>,
    /// All means and intervals of each cell.
    pub(crate) samples: Vec<samples::Row>,
    /// The rule for outliers.
    pub(crate) outlier_rule: &'static str,
    /// A sentence on all query plans.
    pub(crate) plans_sentence: Option<String>,
    /// Plans that differ, side by side.
    pub(crate) plans: Vec<plans::Pair>,
    /// Those of steps that were faster than ideal, with the times of operators.
    pub(crate) plan_cost_changes: Vec<plans::Pair>,
    /// Whether techniques of ours are compared, rather than settings.
    pub(crate) compares_techniques: bool,
    /// The raw tables.
    pub(crate) downloads: Vec<Download>,
    pub(crate) claims: Vec<claims::Row>,
    pub(crate) limitations: Vec<String>,
    pub(crate) failures: Vec<Failure>,
    pub(crate) machine: Vec<Fact>,
    pub(crate) limits: Vec<Fact>,
    pub(crate) method: Vec<Fact>,
    /// The settings of each case, if the table does not have them.
    pub(crate) cases: Vec<Fact>,
    pub(crate) versions: Vec<Fact>,
    /// Settings common to all cells.
    pub(crate) settings: Vec<Fact>,
    /// The study's TOML.
    pub(crate) toml: String,
}

/// A cell that failed.
#[derive(Debug, Serialize)]
pub(crate) struct Failure {
    pub(crate) cell: String,
    pub(crate) why: String,
    /// Its samples before.
    pub(crate) samples: usize,
}

impl Page {
    pub(crate) fn of(results: &Results, published: &[PublishedFunctions]) -> Self {
        let view = View::of(results);
        let extras = rows::extras(&view);
        let record = &results.record;
        Self {
            study: record.study.clone(),
            title: results.spec.title.clone(),
            question: results.spec.question.clone(),
            date: date::utc(record.started_unix_ms),
            machine_name: record.host.name.clone(),
            is_modelled: view.is_modelled(),
            tier: words::capital(&view.tier()),
            scale: results.spec.scale.clone(),
            unfinished: unfinished(results),
            busy: busy(&view),
            answer: answer(&view),
            gains_and_losses: gains_and_losses::rows(&view),
            baseline: view.baseline(),
            figures: figures(&view),
            unit: view.unit(results.headline()),
            is_timed: results.is_timed(),
            groups: rows::groups(&view, &extras),
            has_limits: view.cells().iter().any(|cell| view.limit_fraction(cell).is_some()),
            extras: extras.iter().map(|extra| extra.name.to_owned()).collect(),
            counted: counted(&view),
            functions: functions(&view, published),
            instrumented: instrumented(&view),
            samples: samples::rows(&view),
            outlier_rule: OUTLIER_RULE,
            plans_sentence: plans::sentence(&view),
            plans: plans::pairs(&view),
            plan_cost_changes: plan_cost_change::pairs(&view),
            compares_techniques: view.compares_techniques(),
            downloads: download::tables(results),
            claims: claims::rows(&view),
            limitations: limitations(&view),
            failures: failures(&view),
            machine: facts::machine(&view),
            limits: facts::limits(&view),
            method: facts::method(&view),
            cases: if view.cases_recur() { rows::cases(&view) } else { Vec::new() },
            versions: facts::versions(&view),
            settings: facts::settings(&view),
            toml: record.text.clone(),
        }
    }
}

impl Page {
    /// The page with an answer from outside, which needed no more samples than there are.
    pub(crate) fn answered(self, sentence: &str, notes: &[String]) -> Self {
        let tally = Some(notes.join(" "));
        let answer = Answer { sentence: sentence.to_owned(), tally, cards: Vec::new() };
        Self { answer, unfinished: None, ..self }
    }
}

fn unfinished(results: &Results) -> Option<String> {
    let (kept, wanted) = (results.observations.len(), results.run_plan.samples());
    (!results.is_complete()).then(|| format!("{kept} of {wanted} samples so far"))
}

fn busy(view: &View<'_>) -> Option<String> {
    let share = view.results.cpu_share().filter(|share| *share < results::CPU_SHARE_QUIET)?;
    Some(format!(
        "The threads of this run had {} of the processor time that they asked for; other programs \
         had the rest. Throughputs are too low and intervals too wide, most of all for two \
         threads: run it again when nothing else runs.",
        number::percent(share)
    ))
}

fn failures(view: &View<'_>) -> Vec<Failure> {
    let failed = view.findings.iter().filter_map(|finding| {
        let why = finding.failure.clone()?;
        Some(Failure { cell: finding.label.clone(), why, samples: finding.samples })
    });
    failed.collect()
}
