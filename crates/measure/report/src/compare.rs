//! Two results on one page: before and after, cell by cell.

use serde::Serialize;
use workahead_study::comparison::{Comparison, Difference, Line};
use workahead_study::measure::THROUGHPUT;
use workahead_study::results::Results;
use workahead_study::statistics::{Significance, UnpairedComparison};
use workahead_study::throughput::Unit;

use crate::chart::ratios::{Kind, Mark, Ratios, Row};
use crate::chart::{Screen, Tone};
use crate::download::{self, Download};
use crate::plans::{self, Pair};
use crate::{csv, date, number, words};

/// The page.
#[derive(Debug, Serialize)]
pub(crate) struct Page {
    title: String,
    kicker: String,
    sentence: String,
    tally: String,
    unit: String,
    wide: String,
    narrow: String,
    lines: Vec<Words>,
    only_before: Vec<String>,
    only_after: Vec<String>,
    differences: Vec<Difference>,
    plans: Vec<Pair>,
    download: Download,
}

/// One cell in words.
#[derive(Debug, Serialize)]
struct Words {
    tone: &'static str,
    label: String,
    before: String,
    after: String,
    ratio: String,
    interval: String,
    p: String,
    cpu: String,
    plan: &'static str,
    /// Why there is no ratio; empty elsewhere.
    missing: String,
}

/// The line with the clearest change.
pub(crate) fn clearest(compared: &Comparison) -> Option<&Line> {
    let shown =
        |line: &&Line| line.speedup.is_some_and(|one| one.shown() != Significance::NoDifference);
    let far = |line: &&Line| line.speedup.map_or(0.0, |one| one.ratio.ln().abs());
    let lines = compared.lines.iter().filter(shown);
    lines.max_by(|one, two| far(one).total_cmp(&far(two)))
}

/// A comparison in a sentence: the clearest change, and the number of changes.
pub(crate) fn sentence(compared: &Comparison) -> String {
    let Some(most) = clearest(compared) else {
        return "No difference between the two results is shown in any cell.".to_owned();
    };
    let Some(ratio) = most.speedup else { return String::new() };
    format!(
        "{} is {} times as fast after as before{}.",
        words::capital(&most.label),
        number::ratio(ratio.ratio).trim_end_matches('×'),
        interval(&ratio)
            .map(|ends| format!(" [{}]", ends.replace(" to ", ", ")))
            .unwrap_or_default()
    )
}

/// The cells by outcome.
pub(crate) fn tally(compared: &Comparison) -> String {
    let count = |shown: Significance| {
        let is = |line: &&Line| line.speedup.is_some_and(|one| one.shown() == shown);
        compared.lines.iter().filter(is).count()
    };
    let sure = compared.lines.iter().filter(|line| line.p_adjusted.is_some_and(|p| p < 0.05));
    let measured = compared.lines.iter().filter(|line| line.speedup.is_some()).count();
    let absent = match compared.lines.len() - measured {
        0 => String::new(),
        absent => format!(" and {absent} without a figure in one of them"),
    };
    format!(
        "{} in both{absent}: {} faster, {} slower, {} with no difference shown; {} also when p is \
         adjusted for all of them (Holm 1979). The runs are not paired: other differences between \
         them are in the ratios.",
        words::counted(measured, "cell"),
        count(Significance::Faster),
        count(Significance::Slower),
        count(Significance::NoDifference),
        sure.count()
    )
}

impl Page {
    pub(crate) fn of(before: &Results, after: &Results, compared: &Comparison) -> Self {
        let unit = unit(before, after);
        let chart = chart(compared);
        let (one, other) = (&before.record, &after.record);
        let moments = (date::utc(one.started_unix_ms), date::utc(other.started_unix_ms));
        let cells: Vec<(String, usize, usize)> = compared
            .lines
            .iter()
            .map(|line| (line.label.clone(), line.before, line.after))
            .collect();
        Self {
            title: format!("Before and after: {}", after.spec.title),
            kicker: format!(
                "{} of {} against {} of {}, {}",
                one.study, moments.0, other.study, moments.1, other.host.name
            ),
            sentence: sentence(compared),
            tally: tally(compared),
            wide: chart.draw(Screen::Wide),
            narrow: chart.draw(Screen::Narrow),
            lines: compared
                .lines
                .iter()
                .map(|line| words_of(line, (before, after), &unit))
                .collect(),
            only_before: compared.only_before.clone(),
            only_after: compared.only_after.clone(),
            differences: compared.differences.clone(),
            plans: plans::between(before, after, &cells),
            download: download::of_csv("compare.csv", "every cell", |to| {
                csv::comparison(compared, to)
            }),
            unit: unit.name,
        }
    }
}

/// One unit for both results.
pub(crate) fn unit(before: &Results, after: &Results) -> Unit {
    let values = |results: &Results| -> Vec<f64> {
        let cells = results.run_plan.cells.iter();
        cells.filter_map(|cell| results.value(cell.index, THROUGHPUT)).collect()
    };
    let all = values(before).into_iter().chain(values(after));
    Unit::of(&after.spec.method.tuples, all)
}

fn words_of(line: &Line, (before, after): (&Results, &Results), unit: &Unit) -> Words {
    let figure = |results: &Results, cell: usize| {
        let value = results.value(cell, THROUGHPUT).map(|value| unit.scaled(value));
        value.map_or_else(|| number::NONE.to_owned(), number::plain)
    };
    let ratio = |one: Option<UnpairedComparison>| {
        one.map_or_else(|| number::NONE.to_owned(), |one| number::ratio(one.ratio))
    };
    Words {
        tone: match line.speedup.map(|one| one.shown()) {
            Some(Significance::Faster) => "better",
            Some(Significance::Slower) => "worse",
            Some(Significance::NoDifference) | None => "level",
        },
        label: line.label.clone(),
        before: figure(before, line.before),
        after: figure(after, line.after),
        ratio: ratio(line.speedup),
        interval: line.speedup.map(|one| interval_words(&one)).unwrap_or_default(),
        p: line.p_adjusted.map(|p| number::fixed(p, 3)).unwrap_or_default(),
        cpu: ratio(line.cpu),
        plan: line.plan.map(|label| label.text()).unwrap_or_default(),
        missing: line.missing.clone().unwrap_or_default(),
    }
}

fn interval(ratio: &UnpairedComparison) -> Option<String> {
    ratio.interval.map(|ends| number::ratio_interval((ends.low, ends.high)))
}

fn interval_words(ratio: &UnpairedComparison) -> String {
    match (interval(ratio), ratio.shown()) {
        (None, _) => "one sample only".to_owned(),
        (Some(ends), Significance::NoDifference) => format!("{ends}, no difference shown"),
        (Some(ends), _) => ends,
    }
}

fn chart(compared: &Comparison) -> Ratios {
    let row = |line: &Line| {
        let speed = line.speedup.map(|one| {
            let tone = match one.shown() {
                Significance::Faster => Tone::Better,
                Significance::Slower => Tone::Worse,
                Significance::NoDifference => Tone::Level,
            };
            mark(&one, Kind::Speed(tone))
        });
        Row {
            heading: None,
            name: line.label.clone(),
            marks: speed.into_iter().collect(),
            missing: line.missing.clone().unwrap_or_default(),
        }
    };
    Ratios {
        description: "Throughput after over before, cell by cell".to_owned(),
        unit: "times as fast as before".to_owned(),
        rows: compared.lines.iter().filter(|line| line.speedup.is_some()).map(row).collect(),
    }
}

fn mark(one: &UnpairedComparison, kind: Kind) -> Mark {
    let words = interval(one).unwrap_or_else(|| "one sample".to_owned());
    let interval = one.interval.map(|ends| (ends.low, ends.high));
    Mark { ratio: one.ratio, interval, kind, words }
}
