//! The rule of verdicts, case by case.

use super::*;
use crate::setting::Settings;

fn claim(ratio: Option<f64>, direction: Option<Direction>) -> Claim {
    Claim {
        measure: None,
        row: "E4.6".to_owned(),
        figure: "Fig. 6b".to_owned(),
        cells: Settings::new(),
        except: Vec::new(),
        ratio,
        value: None,
        at: Extent::Every,
        direction,
        against: Settings::new(),
        than: Settings::new(),
        says: String::new(),
        needs: Vec::new(),
        over: None,
        hypothesis: None,
    }
}

fn ours(low: f64, high: f64) -> Option<Ratio> {
    Some(Ratio {
        ratio: (low * high).sqrt(),
        interval: Some(Interval { low, high }),
        pairs: 5,
        p: None,
    })
}

fn judged(claim: &Claim, ours: Option<Ratio>) -> Judgement {
    judge(claim, ours, Origin::Measured)
}

fn word(paper: f64, low: f64, high: f64) -> Word {
    judged(&claim(Some(paper), None), ours(low, high)).direction
}

fn size(paper: f64, low: f64, high: f64) -> Size {
    judged(&claim(Some(paper), None), ours(low, high)).size
}

#[test]
fn the_rule_on_the_faster_side() {
    assert_eq!(word(1.5, 1.1, 1.2), Word::Agrees);
    assert_eq!(word(1.5, 3.0, 4.0), Word::Agrees, "a size is another word");
    assert_eq!(word(1.5, 0.8, 0.9), Word::Disagrees);
    assert_eq!(word(1.5, 0.98, 1.02), Word::Disagrees, "the paper's size is excluded");
    assert_eq!(word(1.5, 0.8, 1.8), Word::CannotBeSaidHere, "too wide");
    assert_eq!(word(1.5, 1.0, 1.2), Word::Disagrees, "touching 1 includes it");
}

#[test]
fn the_rule_is_mirrored_on_the_slower_side() {
    let words = [(1.1, 1.2), (3.0, 4.0), (0.8, 0.9), (0.98, 1.02), (0.8, 1.8)];
    for (low, high) in words {
        assert_eq!(word(1.5, low, high), word(1.0 / 1.5, 1.0 / high, 1.0 / low));
    }
}

#[test]
fn the_rule_for_the_same() {
    assert_eq!(word(1.0, 0.98, 1.03), Word::Agrees);
    assert_eq!(word(1.02, 0.98, 1.03), Word::Agrees);
    assert_eq!(word(1.0, 1.10, 1.20), Word::Disagrees);
    assert_eq!(word(1.0, 0.90, 1.20), Word::CannotBeSaidHere);
}

#[test]
fn words_and_curves() {
    let faster = claim(None, Some(Direction::Faster));
    assert_eq!(judged(&faster, ours(1.1, 1.2)).direction, Word::Agrees);
    assert_eq!(judged(&faster, ours(0.9, 1.2)).direction, Word::CannotBeSaidHere);
    let curve = claim(None, None);
    assert_eq!(judged(&curve, ours(1.1, 1.2)).direction, Word::CannotBeSaidHere);
}

#[test]
fn a_wide_interval_asks_for_repetitions() {
    let reason = judged(&claim(Some(1.5), None), ours(0.8, 1.8)).reason;
    assert!(reason.ends_with("no difference shown; more repetitions may help"), "{reason}");
}

#[test]
fn without_an_interval_there_is_no_verdict() {
    let once = Some(Ratio { ratio: 2.0, interval: None, pairs: 1, p: None });
    let judgement = judged(&claim(Some(1.5), None), once);
    assert_eq!(judgement, Judgement::unsaid("one repetition gives no interval"));
    assert_eq!(judged(&claim(Some(1.5), None), None).direction, Word::CannotBeSaidHere);
}

#[test]
fn several_cells_agree_together_or_not_at_all() {
    let of = |words: &[Word]| {
        let one = |word: &Word| Judgement { direction: *word, ..Judgement::unsaid("why") };
        together(&words.iter().map(one).collect::<Vec<_>>()).direction
    };
    use Word::{Agrees, CannotBeSaidHere, Disagrees};
    assert_eq!(of(&[Agrees, Agrees]), Agrees);
    assert_eq!(of(&[Agrees, CannotBeSaidHere]), CannotBeSaidHere);
    assert_eq!(of(&[Agrees, CannotBeSaidHere, Disagrees]), Disagrees);
    assert_eq!(of(&[]), CannotBeSaidHere);
}

#[test]
fn missing_requirements_are_named() {
    use Requirement::{Counters, Model, Siblings};
    let bare = Host { tier_reason: "no PMU".to_owned(), ..Host::default() };
    let rich = Host { siblings: true, counters: true, ..Host::default() };
    assert_eq!(missing(&[], &bare), None);
    assert_eq!(missing(&[Siblings, Counters], &rich), None);
    assert!(missing(&[Counters], &bare).unwrap().contains("no PMU"));
    assert!(missing(&[Siblings], &bare).unwrap().contains("share a core"));
    assert!(missing(&[Model], &rich).is_some(), "nothing measured is a model");
    let modelled = Host { tier: "E".to_owned(), ..Host::default() };
    assert_eq!(missing(&[Siblings, Counters, Model], &modelled), None);
}

/// "No better" is met by a slower figure and by an equal one.
#[test]
fn no_better_includes_slower() {
    let slow = claim(None, Some(Direction::NotFaster));
    let word = |low, high| judged(&slow, ours(low, high)).direction;
    assert_eq!(word(0.8, 0.9), Word::Agrees);
    assert_eq!(word(0.97, 1.04), Word::Agrees);
    assert_eq!(word(0.97, 1.2), Word::CannotBeSaidHere);
    assert_eq!(word(1.06, 1.2), Word::Disagrees);
}

/// A model's ratio is exact: it is its own interval, and repetitions add nothing.
#[test]
fn a_modelled_ratio_is_exact() {
    let modelled = |paper, direction, ratio: f64| {
        let exact = Ratio { interval: Some(Interval::at(ratio)), ..ours(ratio, ratio).unwrap() };
        let found = judge(&claim(paper, direction), Some(exact), Origin::Modelled);
        (found.direction, found.reason)
    };
    let (word, reason) = modelled(Some(1.5), None, 1.2);
    assert_eq!(word, Word::Agrees);
    assert_eq!(reason, "×1.20, modelled: on the paper's side of 1");
    let faster = Some(Direction::Faster);
    let slower = Some(Direction::Slower);
    for ratio in [0.97, 0.99, 1.0, 1.01, 1.03] {
        let words = [modelled(None, faster, ratio), modelled(None, slower, 1.0 / ratio)];
        let expected = match ratio {
            0.97 => Word::Disagrees,
            1.03 => Word::Agrees,
            _ => Word::CannotBeSaidHere,
        };
        for (word, reason) in words {
            assert_eq!(word, expected, "{ratio}: {reason}");
            assert!(!reason.contains("repetitions"), "{reason}");
        }
    }
    // An effect of the paper's size is excluded.
    assert_eq!(modelled(Some(1.5), None, 1.01).0, Word::Disagrees);
    assert_eq!(modelled(Some(1.0), None, 1.04).0, Word::Agrees, "within 5 %");
    let (_, reason) = modelled(None, faster, 1.011);
    assert_eq!(reason, "×1.011, modelled: no difference shown; a model resolves no less than 2 %");
}

/// The farther end of the interval decides, and a wide interval has no size.
#[test]
fn the_size_is_a_factor_to_either_side() {
    assert_eq!(size(1.5, 1.4, 1.6), Size::Within10);
    assert_eq!(size(1.5, 1.25, 1.5), Size::Within25);
    assert_eq!(size(1.5, 1.1, 1.2), Size::Within2x);
    assert_eq!(size(1.5, 3.1, 4.0), Size::Beyond);
    assert_eq!(size(1.5, 0.6, 0.7), Size::Beyond);
    assert_eq!(size(1.5, 2.0, 4.0), Size::NoFigure, "within or beyond, nobody knows");
    assert_eq!(size(1.5, 0.1, 10.0), Size::NoFigure);
    let drawn = claim(None, Some(Direction::Faster));
    assert_eq!(judged(&drawn, ours(1.1, 1.2)).size, Size::NoFigure);
    assert_eq!(Size::worst([Size::Within10, Size::NoFigure, Size::Within2x]), Size::Within2x);
    assert_eq!(Size::worst([Size::NoFigure]), Size::NoFigure);
}

/// A value has no side of 1: it agrees within a quarter.
#[test]
fn a_value_agrees_within_a_quarter() {
    let cpi = Claim { value: Some(1.81), measure: Some("cpi".to_owned()), ..claim(None, None) };
    let found = judged(&cpi, ours(0.95, 1.0));
    assert_eq!((found.direction, found.size), (Word::Agrees, Size::Within10));
    assert_eq!(found.reason, "1.76 (1.72 to 1.81): within 25 % of the paper's");
    let found = judged(&cpi, ours(1.7, 1.8));
    assert_eq!((found.direction, found.size), (Word::Disagrees, Size::Within2x));
    assert_eq!(judged(&cpi, ours(1.0, 1.5)).direction, Word::CannotBeSaidHere);
    let exact = Some(Ratio { interval: Some(Interval::at(1.768)), ..ours(1.768, 1.768).unwrap() });
    let found = judge(&cpi, exact, Origin::Modelled);
    assert_eq!(found.reason, "3.20, modelled: more than the paper's by more than 25 %");
}

/// "Up to" is of one cell, and the best of many noisy ones proves little.
#[test]
fn up_to_is_judged_at_the_best_cell() {
    let up_to = Claim { at: Extent::Most, ..claim(Some(1.49), None) };
    let with_p = |low, high, p| ours(low, high).map(|ratio| Ratio { p: Some(p), ..ratio });
    let cells = [(0, with_p(0.8, 0.9, 0.001)), (1, with_p(1.4, 1.6, 0.001)), (2, None)];
    let found = judge_cells(&up_to, &cells, Origin::Measured);
    assert_eq!((found.direction, found.size), (Word::Agrees, Size::Within10));
    assert!(found.reason.ends_with("the largest of 3 cells"), "{}", found.reason);
    let lucky = [(0, with_p(1.01, 1.6, 0.03)), (1, with_p(0.8, 0.9, 0.001))];
    let found = judge_cells(&up_to, &lucky, Origin::Measured);
    assert_eq!(found.direction, Word::CannotBeSaidHere, "{}", found.reason);
    let down_to = Claim { at: Extent::Least, ..claim(Some(0.34), None) };
    let found = judge_cells(&down_to, &cells, Origin::Measured);
    assert_eq!((found.direction, found.size), (Word::Agrees, Size::Beyond));
    assert_eq!(judge_cells(&up_to, &[], Origin::Measured).direction, Word::CannotBeSaidHere);
}

/// No exclusive line at all is fewer than some: a division by zero hides nothing.
#[test]
fn nothing_against_something_is_a_ratio() {
    let of = |pairs: &[(f64, f64)]| Ratio::of_counts(pairs);
    let more = claim(None, Some(Direction::Faster));
    let infinite = of(&[(3.0, 0.0), (4.0, 0.0)]);
    let found = judge(&more, infinite, Origin::Measured);
    assert_eq!(found.direction, Word::Agrees);
    assert_eq!(found.reason, "×∞ (the other is 0): on the paper's side of 1");
    let printed = claim(Some(6.0), None);
    assert_eq!(judge(&printed, infinite, Origin::Measured).size, Size::Beyond);
    let less = claim(None, Some(Direction::Slower));
    let none = of(&[(0.0, 3.0), (0.0, 4.0)]);
    assert_eq!(judge(&less, none, Origin::Measured).direction, Word::Agrees);
    assert_eq!(judge(&more, none, Origin::Measured).direction, Word::Disagrees);
    let both = of(&[(0.0, 0.0), (0.0, 0.0)]).unwrap();
    assert_eq!(both.ratio, 1.0);
    assert_eq!(of(&[(0.0, 1.0), (1.0, 1.0)]), None, "a mixture has no logarithm");
    assert_eq!(of(&[]), None);
}
