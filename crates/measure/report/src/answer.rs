//! The answer: the largest gain and loss, in one or two sentences and two cards.
//!
//! A technique that wins in one place may lose in another; a reader who sees only the win is
//! misled. So the loss shown is that of the winner itself where it has one, and the worst of all
//! otherwise.

use serde::Serialize;
use workahead_study::cell::Cell;
use workahead_study::measure::{INSTRUCTIONS, THROUGHPUT};
use workahead_study::results::Finding;
use workahead_study::statistics::Significance;
use workahead_study::verdict;

use crate::view::{View, ratio_words};
use crate::{number, words};

/// The answer.
#[derive(Debug, Serialize)]
pub(crate) struct Answer {
    /// One or two sentences.
    pub(crate) sentence: String,
    /// The comparisons by outcome.
    pub(crate) tally: Option<String>,
    /// The case that wins beside the case that loses.
    pub(crate) cards: Vec<Card>,
}

/// One case in large type.
#[derive(Debug, Serialize)]
pub(crate) struct Card {
    /// `better`, `worse` or `level`.
    pub(crate) tone: &'static str,
    /// Why it is shown.
    pub(crate) heading: String,
    /// `4.62×`.
    pub(crate) figure: String,
    /// `the throughput of sequential`.
    pub(crate) of: String,
    /// The technique and where.
    pub(crate) what: String,
    /// Throughput, interval, share of the limit.
    pub(crate) detail: String,
}

mod settings;

const NOTHING: &str = "Nothing has been measured yet.";

/// A cell with its finding and ratio.
type ComparedCell<'a> = (&'a Cell, &'a Finding, f64);

pub(crate) fn answer(view: &View<'_>) -> Answer {
    let mut answer = found(view);
    if let Some(why) = unanswerable(view) {
        let found = format!("Found instead: {}", answer.sentence);
        answer.sentence = format!("This machine can’t answer the question: {why}. {found}");
    }
    answer
}

/// Why the machine can't answer, where each of the paper's claims lacks something, or the study.
fn unanswerable(view: &View<'_>) -> Option<String> {
    let (spec, host) = (&view.results.spec, &view.results.record.host);
    verdict::missing(&spec.needs, host).or_else(|| {
        let missing = spec.claims.iter().map(|claim| verdict::missing(&claim.needs, host));
        missing.reduce(|one, other| one.and(other)).flatten()
    })
}

/// The finding, whatever the question.
fn found(view: &View<'_>) -> Answer {
    let mut compared: Vec<ComparedCell<'_>> = view
        .cells()
        .iter()
        .filter_map(|cell| {
            let finding = view.finding(cell);
            Some((cell, finding, finding.ratio?.ratio))
        })
        .collect();
    compared.sort_by(|one, other| one.2.total_cmp(&other.2));
    if !view.results.is_timed() {
        return counted(view);
    }
    match (view.baseline(), compared.is_empty()) {
        (Some(baseline), false) => against(view, &baseline, &compared),
        _ => without_baseline(view),
    }
}

fn against(view: &View<'_>, baseline: &str, compared: &[ComparedCell<'_>]) -> Answer {
    let has = |shown: Significance| {
        move |(_, finding, _): &&ComparedCell<'_>| finding.ratio.is_some_and(|r| r.shown() == shown)
    };
    let best = compared.iter().rev().find(has(Significance::Faster));
    let slower: Vec<&ComparedCell<'_>> =
        compared.iter().filter(has(Significance::Slower)).collect();
    let own = best.and_then(|(best, _, _)| {
        slower.iter().find(|(cell, _, _)| have_same_technique(cell, best))
    });
    let worst = own.or(slower.first()).copied();
    let sentence = match view.compares_techniques() {
        true => Extremes { best, worst, of_winner: own.is_some() }.sentence(view, baseline),
        false => settings::sentence(view, baseline, compared),
    };
    // A loss is always shown: the smallest ratio if there is none.
    let least = worst.or_else(|| compared.iter().find(|(_, finding, _)| finding.ratio.is_some()));
    let single = best.filter(|(cell, _, _)| view.threads(cell).is_some_and(|threads| threads > 1));
    let single = single.and_then(|_| {
        let one_thread = |one: &&ComparedCell<'_>| view.threads(one.0) == Some(1);
        compared.iter().rev().filter(one_thread).find(has(Significance::Faster))
    });
    let cards = [
        best.map(|best| ("Gains most", best)),
        single.map(|single| ("Gains most on one thread", single)),
        least.map(|least| (heading(worst), least)),
    ];
    let card = |(heading, one): (&str, &ComparedCell<'_>)| card(view, baseline, heading, one);
    Answer {
        sentence,
        tally: Some(tally(view, compared)),
        cards: cards.into_iter().flatten().map(card).collect(),
    }
}

/// Whether two cells have the same technique, as [`View::technique`] names it: it cuts names.
fn have_same_technique(one: &Cell, other: &Cell) -> bool {
    match one.case() {
        "" => one.place == other.place,
        case => case == other.case(),
    }
}

/// The largest gain and the largest loss among techniques.
struct Extremes<'a, 'b> {
    best: Option<&'b ComparedCell<'a>>,
    worst: Option<&'b ComparedCell<'a>>,
    /// Whether the loss is of the technique with the largest gain.
    of_winner: bool,
}

impl Extremes<'_, '_> {
    fn sentence(&self, view: &View<'_>, baseline: &str) -> String {
        let gain = match self.best {
            Some(best) => gain(view, baseline, best),
            None => format!("No technique is shown to be faster than {baseline} here."),
        };
        let loss = match self.worst {
            Some(worst) => loss(view, worst, self.of_winner),
            None => format!("None is shown to be slower than {baseline}."),
        };
        format!("{gain} {loss}")
    }
}

fn heading(worst: Option<&ComparedCell<'_>>) -> &'static str {
    match worst {
        Some(_) => "Loses",
        None => "Lowest ratio: no loss is shown",
    }
}

fn gain(view: &View<'_>, baseline: &str, (cell, finding, ratio): &ComparedCell<'_>) -> String {
    let (_, interval) = ratio_words(finding);
    let of_limit = match view.limit_fraction(cell) {
        Some(fraction) => {
            format!(", {} of this machine's limit", words::unbroken(&number::percent(fraction)))
        }
        None => String::new(),
    };
    format!(
        "{}{} gains most: {} the {}throughput of {baseline} (95\u{a0}% interval {interval}){of_limit}.",
        words::capital(&view.technique(cell)),
        within(view, cell),
        number::ratio(*ratio),
        if view.is_modelled() { "modelled " } else { "" },
    )
}

fn loss(view: &View<'_>, (cell, finding, ratio): &ComparedCell<'_>, is_winner: bool) -> String {
    let who = match is_winner {
        true => "The same technique".to_owned(),
        false => words::capital(&view.technique(cell)),
    };
    let (_, interval) = ratio_words(finding);
    let place = within(view, cell);
    let most = if is_winner { "" } else { " most" };
    format!("{who} loses{most}{place}: {} ({interval}).", number::ratio(*ratio))
}

/// ` (hash join, out of cache)`; empty if there is only one place.
fn within(view: &View<'_>, cell: &Cell) -> String {
    match view.surroundings(cell) {
        place if cell.case().is_empty() || place.is_empty() => String::new(),
        place => format!(" ({place})"),
    }
}

fn tally(view: &View<'_>, compared: &[ComparedCell<'_>]) -> String {
    let count = |shown: Significance| {
        let is =
            |(_, finding, _): &&ComparedCell<'_>| finding.ratio.is_some_and(|r| r.shown() == shown);
        compared.iter().filter(is).count()
    };
    let kept = match view.is_modelled() {
        true => "modelled comparison",
        false => "comparison",
    };
    format!(
        "{} with the baseline: {} faster, {} slower, {} with no difference shown.",
        words::counted(compared.len(), kept),
        count(Significance::Faster),
        count(Significance::Slower),
        count(Significance::NoDifference)
    )
}

fn card(
    view: &View<'_>,
    baseline: &str,
    heading: &str,
    (cell, finding, ratio): &ComparedCell<'_>,
) -> Card {
    let tone = match finding.ratio.map(|ratio| ratio.shown()) {
        Some(Significance::Faster) => "better",
        Some(Significance::Slower) => "worse",
        _ => "level",
    };
    let (_, interval) = ratio_words(finding);
    let interval = match finding.ratio.map(|ratio| ratio.shown()) {
        Some(Significance::NoDifference) => interval,
        // A model's interval is the ratio itself, and the text says so.
        _ if finding.ratio.is_some_and(|ratio| ratio.interval.is_some_and(|i| i.low >= i.high)) => {
            interval
        }
        _ => format!("95 % interval {interval}"),
    };
    let throughput = view
        .value(cell, THROUGHPUT)
        .map(|value| format!("{} {}", number::plain(value), view.unit(THROUGHPUT)));
    let limit = view.limit_fraction(cell);
    let limit = limit.map(|fraction| format!("{} of the limit", number::percent(fraction)));
    let detail = [Some(interval), throughput, limit].into_iter().flatten();
    let detail: Vec<String> = detail.map(|part| words::unbroken(&part)).collect();
    let place = view.surroundings(cell);
    let mut what = view.technique(cell);
    if !(cell.case().is_empty() || place.is_empty()) {
        what.push_str(&format!(" – {place}"));
    }
    if let Some(threads) = view.threads_words(cell) {
        what.push_str(&format!(", {threads}"));
    }
    Card {
        tone,
        heading: heading.to_owned(),
        figure: number::ratio(*ratio),
        of: format!("the throughput of {baseline}"),
        what,
        detail: detail.join(" · "),
    }
}

fn without_baseline(view: &View<'_>) -> Answer {
    let measured = view.cells().iter().filter_map(|cell| {
        let value = view.value(cell, THROUGHPUT)?;
        value.is_finite().then_some((cell, value))
    });
    let sentence = match measured.max_by(|one, other| one.1.total_cmp(&other.1)) {
        None => NOTHING.to_owned(),
        Some((cell, value)) => format!(
            "{}{} is the fastest: {} {}. Nothing is compared with a baseline.",
            words::capital(&view.technique(cell)),
            within(view, cell),
            number::plain(value),
            view.unit(THROUGHPUT)
        ),
    };
    Answer { sentence, tally: None, cards: Vec::new() }
}

/// Without times: the cells with the most and the fewest instructions.
fn counted(view: &View<'_>) -> Answer {
    let count = |cell| Some((cell, view.value(cell, INSTRUCTIONS)?));
    let mut counted: Vec<(&Cell, f64)> = view.cells().iter().filter_map(count).collect();
    counted.sort_by(|one, other| one.1.total_cmp(&other.1));
    let unit = view.unit(INSTRUCTIONS);
    let place = |cell: &Cell| words::capital(&view.place(cell, &[]));
    let sentence = match counted[..] {
        [(few, fewest), .., (many, most)] => format!(
            "{} takes most: {} {unit}. {} takes fewest: {}.",
            place(many),
            number::plain(most),
            place(few),
            number::plain(fewest)
        ),
        [(_, count)] => format!("It takes {} {unit}.", number::plain(count)),
        [] => {
            return Answer { sentence: NOTHING.to_owned(), tally: None, cards: Vec::new() };
        }
    };
    let why = "Counted by a model of caches; nothing is timed, so there is no throughput.";
    Answer { sentence, tally: Some(why.to_owned()), cards: Vec::new() }
}
