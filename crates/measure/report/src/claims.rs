//! The paper's claims beside our figures, each with its verdict.

use serde::Serialize;
use workahead_study::claim::{Claim, Direction, Extent};
use workahead_study::setting::Settings;
use workahead_study::statistics::{Interval, Ratio, Significance};
use workahead_study::verdict::{Verdict, Word};

use crate::view::View;
use crate::{number, words};

/// A claim on more cells than this is shown by its smallest and largest ratio.
const LISTED_MAX: usize = 3;

/// One claim.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) row: String,
    pub(crate) figure: String,
    pub(crate) says: String,
    /// The paper's ratio, or its direction.
    pub(crate) paper: String,
    /// Ours, one entry per cell or the range of all.
    pub(crate) ours: Vec<String>,
    /// *agrees*, *disagrees* or *cannot be said here*.
    pub(crate) verdict: &'static str,
    /// How far ours is from the paper's figure.
    pub(crate) size: &'static str,
    /// Class of the verdict.
    pub(crate) class: &'static str,
    pub(crate) reason: String,
    pub(crate) tier: String,
}

pub(crate) fn rows(view: &View<'_>) -> Vec<Row> {
    let verdicts = view.results.verdicts();
    verdicts.into_iter().map(|verdict| row(view, verdict)).collect()
}

fn row(view: &View<'_>, verdict: Verdict) -> Row {
    let claim = &view.results.spec.claims[verdict.claim];
    Row {
        row: claim.row.clone(),
        figure: claim.figure.clone(),
        says: claim.says.clone(),
        paper: paper_words(claim),
        ours: ours(view, claim, &verdict),
        verdict: verdict.judgement.direction.text(),
        size: verdict.judgement.size.text(),
        class: class(verdict.judgement.direction),
        reason: verdict.judgement.reason,
        tier: if view.is_modelled() { "E".to_owned() } else { verdict.tier },
    }
}

fn paper_words(claim: &Claim) -> String {
    let value = claim.value.map(number::plain);
    let ratio = claim.ratio.map(number::ratio);
    let direction = claim.direction.map(|direction| match (direction, &claim.measure) {
        (Direction::Faster, None) => "faster",
        (Direction::Slower, None) => "slower",
        (Direction::Faster, Some(_)) => "more",
        (Direction::Slower, Some(_)) => "less",
        (Direction::Same, _) => "the same",
        (Direction::NotFaster, None) => "not faster",
        (Direction::NotFaster, Some(_)) => "not more",
    });
    let extent = match claim.at {
        Extent::Every => "",
        Extent::Most => " at most",
        Extent::Least => " at least",
    };
    let of = claim.measure.as_deref().map(|measure| format!(" of {}", words::quantity(measure)));
    let listed = |settings: &Settings| -> String {
        let each = settings.iter().map(|(name, value)| words::setting(name, value));
        each.collect::<Vec<_>>().join(", ")
    };
    let beside = |name: &str, settings: &Settings| match settings.is_empty() {
        true => String::new(),
        false => format!(" {name} {}", listed(settings)),
    };
    let (against, than) = (beside("against", &claim.against), beside("over that of", &claim.than));
    let parts: Vec<String> =
        value.into_iter().chain(ratio).chain(direction.map(str::to_owned)).collect();
    match parts.is_empty() {
        true => "no figure".to_owned(),
        false => {
            format!("{}{extent}{}{against}{than}", parts.join(", "), of.unwrap_or_default())
        }
    }
}

fn ours(view: &View<'_>, claim: &Claim, verdict: &Verdict) -> Vec<String> {
    if let Some(value) = claim.value {
        return values(view, value, verdict);
    }
    let known: Vec<(usize, Ratio)> =
        verdict.cells.iter().filter_map(|(cell, ratio)| Some((*cell, (*ratio)?))).collect();
    let modelled = if view.is_modelled() { " modelled" } else { "" };
    let by_ratio =
        |one: &&(usize, Ratio), other: &&(usize, Ratio)| one.1.ratio.total_cmp(&other.1.ratio);
    let range = known.iter().min_by(by_ratio).zip(known.iter().max_by(by_ratio));
    match (known.len(), range) {
        (0, _) | (_, None) => vec![number::NONE.to_owned()],
        (1, _) => vec![format!("{}{modelled}", ratio_words(known[0].1))],
        (few, _) if few <= LISTED_MAX => {
            let one = |(cell, ratio): &(usize, Ratio)| {
                let place = view.place(&view.cells()[*cell], &[]);
                format!("{}{modelled} – {place}", ratio_words(*ratio))
            };
            known.iter().map(one).collect()
        }
        (many, Some((least, most))) => {
            let (least, most) = (number::ratio(least.1.ratio), number::ratio(most.1.ratio));
            vec![format!("{least} to {most}{modelled} in {many} cells")]
        }
    }
}

/// Our values where the paper has one: the smallest and the largest.
fn values(view: &View<'_>, value: f64, verdict: &Verdict) -> Vec<String> {
    let known = verdict.cells.iter().filter_map(|(_, ratio)| Some((*ratio)?.ratio * value));
    let mut known: Vec<f64> = known.collect();
    known.sort_by(f64::total_cmp);
    let modelled = if view.is_modelled() { " modelled" } else { "" };
    vec![match (known.first(), known.last()) {
        (Some(least), Some(most)) if least < most => {
            format!("{} to {}{modelled}", number::plain(*least), number::plain(*most))
        }
        (Some(only), _) => format!("{}{modelled}", number::plain(*only)),
        _ => number::NONE.to_owned(),
    }]
}

fn ratio_words(ratio: Ratio) -> String {
    let interval = match (ratio.interval, ratio.shown()) {
        (None, _) => "one sample only".to_owned(),
        (Some(Interval { low, high }), _) if low >= high => "always the same".to_owned(),
        (Some(ends), Significance::NoDifference) => {
            format!("{}, no difference shown", number::ratio_interval((ends.low, ends.high)))
        }
        (Some(ends), _) => number::ratio_interval((ends.low, ends.high)),
    };
    format!("{} ({interval})", number::ratio(ratio.ratio))
}

fn class(word: Word) -> &'static str {
    match word {
        Word::Agrees => "agrees",
        Word::Disagrees => "disagrees",
        Word::CannotBeSaidHere => "unsaid",
    }
}
