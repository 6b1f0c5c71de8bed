//! The table of cells: every figure of the charts in digits, and further ones.

use serde::Serialize;
use workahead_study::cell::Cell;
use workahead_study::engine::Answer;
use workahead_study::results::Finding;
use workahead_study::setting::{Settings, one_line};

use crate::chart::Tone;
use crate::facts::Fact;
use crate::view::{View, ratio_words};
use crate::{number, words};

/// Characters of a cell's settings, which are a tooltip: the tables to be saved have all.
const SETTINGS_CHARS_MAX: usize = 1_000;

/// Cells that share their data.
#[derive(Debug, Serialize)]
pub(crate) struct Group {
    /// Their common label; empty if the study has one block.
    pub(crate) name: String,
    /// The cells.
    pub(crate) rows: Vec<Row>,
}

/// One cell in words.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    /// Class of the row.
    pub(crate) tone: &'static str,
    /// Its label within the group.
    pub(crate) name: String,
    /// The settings that its case makes, where no other row has the same case.
    pub(crate) detail: String,
    /// Every setting, as a user would write it.
    pub(crate) settings: String,
    pub(crate) throughput: String,
    pub(crate) wall: String,
    pub(crate) cpu: String,
    /// Throughput of the slowest and of the fastest sample.
    pub(crate) spread: String,
    pub(crate) ratio: String,
    pub(crate) interval: String,
    /// Beside the interval: the adjusted p value, Hassanein's rule, the plan.
    pub(crate) remarks: Vec<String>,
    /// Further figures of a served database.
    pub(crate) extras: Vec<String>,
    pub(crate) limit: String,
    pub(crate) samples: String,
    /// Why this machine can't run it; else empty.
    pub(crate) absent: String,
    /// Whether all samples' answers were right.
    pub(crate) is_checked: bool,
    /// `2,000,000 rows`, or why there is no answer.
    pub(crate) answer: String,
    /// The checksum over the answer's rows.
    pub(crate) checksum: String,
}

/// The cells of each block, with these further columns.
pub(crate) fn groups(view: &View<'_>, extras: &[Extra]) -> Vec<Group> {
    let run_plan = &view.results.run_plan;
    let blocks = (0..run_plan.blocks).map(|block| run_plan.block(block));
    blocks.filter_map(|cells| group(view, cells, extras)).collect()
}

/// The settings that each case makes, for studies whose cases come again in every group.
pub(crate) fn cases(view: &View<'_>) -> Vec<Fact> {
    let mut facts: Vec<Fact> = Vec::new();
    for cell in view.cells() {
        let fact = Fact { name: cell.case().to_owned(), value: case_settings(view, cell) };
        if !fact.value.is_empty() && !facts.contains(&fact) {
            facts.push(fact);
        }
    }
    facts
}

/// `None` of no cells.
fn group(view: &View<'_>, cells: &[Cell], extras: &[Extra]) -> Option<Group> {
    let first = cells.first()?;
    let shared: Vec<&str> = view.results.run_plan.axes.iter().map(String::as_str).collect();
    let same =
        |axis: &&str| cells.iter().all(|cell| cell.place.get(*axis) == first.place.get(*axis));
    let (shared, own): (Vec<&str>, Vec<&str>) = shared.into_iter().partition(same);
    Some(Group {
        name: view.place(first, &own),
        rows: cells.iter().map(|cell| row(view, cell, &shared, extras)).collect(),
    })
}

fn row(view: &View<'_>, cell: &Cell, shared: &[&str], extras: &[Extra]) -> Row {
    let finding = view.finding(cell);
    let (ratio, interval) = ratio_words(finding);
    let (answer, checksum) = answer_words(view, cell, finding);
    let value = |measure: &str| view.value(cell, measure);
    let words_of = |value: Option<f64>, how: fn(f64) -> String| {
        value.map_or_else(|| number::NONE.to_owned(), how)
    };
    let name = match view.place(cell, shared) {
        nothing if nothing.is_empty() => view.technique(cell),
        name => name,
    };
    Row {
        tone: tone_class(view.tone(finding)),
        name: if name.is_empty() { finding.label.clone() } else { name },
        detail: if view.cases_recur() { String::new() } else { case_settings(view, cell) },
        settings: words::cut(&one_line(&cell.settings), SETTINGS_CHARS_MAX).into_owned(),
        throughput: words_of(value(view.results.headline()), number::plain),
        spread: spread(view, cell),
        wall: words_of(value("wall_s"), number::seconds),
        cpu: words_of(value("cpu_s"), number::seconds),
        ratio: if ratio.is_empty() { number::NONE.to_owned() } else { ratio },
        interval,
        remarks: remarks(finding),
        extras: extras.iter().map(|extra| words_of(value(extra.measure), extra.how)).collect(),
        limit: words_of(view.limit_fraction(cell), number::percent),
        samples: samples(view, finding),
        absent: match finding.samples == 0 && finding.impossible.is_some() {
            true => view.results.absence(cell.index),
            false => String::new(),
        },
        is_checked: finding.failure.is_none() && finding.samples > 0,
        answer,
        checksum,
    }
}

/// A further column.
pub(crate) struct Extra {
    /// Its heading.
    pub(crate) name: &'static str,
    measure: &'static str,
    how: fn(f64) -> String,
}

/// Counts of a model per tuple, other than instructions.
const COUNTED: [(&str, &str); 4] = [
    ("data references", "data_references_per_tuple"),
    ("L1I misses", "l1i_misses_per_tuple"),
    ("L1D misses", "l1d_misses_per_tuple"),
    ("last-level misses", "last_level_misses_per_tuple"),
];

/// The further columns of a result: those whose measures some cell has, which takes a look at all
/// of them.
pub(crate) fn extras(view: &View<'_>) -> Vec<Extra> {
    let all = [
        Extra { name: "p95, ms", measure: "latency_p95_ms", how: number::plain },
        Extra { name: "client share", measure: "client_cpu_share", how: number::percent },
    ];
    let counted = COUNTED.map(|(name, measure)| Extra { name, measure, how: number::plain });
    let is_known =
        |extra: &Extra| view.cells().iter().any(|cell| view.value(cell, extra.measure).is_some());
    all.into_iter().chain(counted).filter(is_known).collect()
}

/// Remarks on a ratio. The interval decides.
fn remarks(finding: &Finding) -> Vec<String> {
    let p = finding.p_adjusted.map(|p| match p {
        tiny if tiny < 0.001 => "p < 0.001, adjusted".to_owned(),
        p => format!("p = {}, adjusted", number::fixed(p, 3)),
    });
    let overlap = finding.overlap.map(|overlap| match overlap.allows_claim {
        true => "mean ± sd apart".to_owned(),
        false => "mean ± sd overlap: no claim by that rule".to_owned(),
    });
    let overlap = overlap.filter(|_| finding.ratio.is_some());
    let plan = finding.plan.map(|label| label.text().to_owned());
    [p, overlap, plan].into_iter().flatten().collect()
}

/// From the slowest sample to the fastest; empty for a single one.
fn spread(view: &View<'_>, cell: &Cell) -> String {
    let mut values = view.values(cell, view.results.headline());
    values.sort_by(f64::total_cmp);
    match values[..] {
        [low, .., high] => format!("{} to {}", number::plain(low), number::plain(high)),
        _ => number::NONE.to_owned(),
    }
}

fn samples(view: &View<'_>, finding: &Finding) -> String {
    match (finding.samples, view.results.run_plan.repetitions as usize) {
        (all, wanted) if all == wanted => all.to_string(),
        (some, wanted) => format!("{some} of {wanted}"),
    }
}

/// The answer in words, and its checksum.
fn answer_words(view: &View<'_>, cell: &Cell, finding: &Finding) -> (String, String) {
    if finding.failure.is_some() {
        return (view.results.absence(cell.index), String::new());
    }
    let mut samples = view.results.of_cell(cell.index).filter_map(|seen| seen.sample());
    match samples.next().map(|sample| sample.answer) {
        None => (view.results.absence(cell.index), String::new()),
        // A server's clients keep no rows; their counts are checked against its data.
        Some(answer) if answer == Answer::default() => {
            let shown = "the clients' counts and the conditions on the data were checked";
            ("checked".to_owned(), shown.to_owned())
        }
        Some(Answer { rows, checksum }) => {
            (format!("{} rows", number::count(rows)), format!("checksum {checksum:016x}"))
        }
    }
}

/// The settings of the case, as a user would write them.
fn case_settings(view: &View<'_>, cell: &Cell) -> String {
    let case = view.results.spec.cases.iter().find(|case| case.name == cell.case());
    let none = Settings::new();
    let settings = case.map_or(&none, |case| &case.settings);
    let is_news =
        |name: &&String| settings.get(*name).map(words::bare).as_deref() != Some(cell.case());
    let shown = settings.keys().filter(is_news);
    shown.map(|name| format!("{name} {}", settings[name])).collect::<Vec<_>>().join(" · ")
}

/// The class that colours a row.
fn tone_class(tone: Tone) -> &'static str {
    match tone {
        Tone::Baseline => "baseline",
        Tone::Better => "better",
        Tone::Worse => "worse",
        Tone::Level => "level",
    }
}
