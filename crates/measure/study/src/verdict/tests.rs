//! The rule of verdicts, case by case.

use super::*;
use crate::setting::Settings;

fn claim(ratio: Option<f64>, direction: Option<Direction>) -> Claim {
    Claim {
        measure: None,
        row: "E4.6".to_owned(),
        figure: "Fig. 6b".to_owned(),
        cells: Settings::new(),
        ratio,
        direction,
        against: Settings::new(),
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

fn word(paper: f64, low: f64, high: f64) -> Word {
    judge(&claim(Some(paper), None), ours(low, high)).0
}

#[test]
fn the_rule_on_the_faster_side() {
    assert_eq!(word(1.5, 1.1, 1.2), Word::Agrees);
    assert_eq!(word(1.5, 3.0, 4.0), Word::Agrees, "sizes are not judged");
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
    assert_eq!(judge(&faster, ours(1.1, 1.2)).0, Word::Agrees);
    assert_eq!(judge(&faster, ours(0.9, 1.2)).0, Word::CannotBeSaidHere);
    let curve = claim(None, None);
    assert_eq!(judge(&curve, ours(1.1, 1.2)).0, Word::CannotBeSaidHere);
}

#[test]
fn a_wide_interval_asks_for_repetitions() {
    let (_, reason) = judge(&claim(Some(1.5), None), ours(0.8, 1.8));
    assert!(reason.ends_with("no difference shown; more repetitions may help"), "{reason}");
}

#[test]
fn without_an_interval_there_is_no_verdict() {
    let once = Some(Ratio { ratio: 2.0, interval: None, pairs: 1, p: None });
    let (word, reason) = judge(&claim(Some(1.5), None), once);
    assert_eq!(
        (word, reason.as_str()),
        (Word::CannotBeSaidHere, "one repetition gives no interval")
    );
    assert_eq!(judge(&claim(Some(1.5), None), None).0, Word::CannotBeSaidHere);
}

#[test]
fn several_cells_agree_together_or_not_at_all() {
    let of = |words: &[Word]| {
        together(&words.iter().map(|word| (*word, "why".to_owned())).collect::<Vec<_>>()).0
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

/// "No better" is met by what is slower and by what is the same.
#[test]
fn no_better_includes_slower() {
    let word = |low, high| judge(&claim(None, Some(Direction::NotFaster)), ours(low, high)).0;
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
        judge(&claim(paper, direction), Some(exact))
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
