//! Bar charts: drawn and omitted values.

use super::*;
use crate::chart::svg::tests::is_balanced;
use proptest::prelude::*;

fn bar(name: &str, value: f64, ratio: f64) -> Bar {
    Bar {
        heading: None,
        name: name.to_owned(),
        reading: Reading::Value { value, interval: Some((value * 0.97, value * 1.03)) },
        ratio: number::ratio(ratio),
        ratio_interval: number::ratio_interval((ratio * 0.96, ratio * 1.04)),
        tone: if ratio > 1.0 { Tone::Better } else { Tone::Worse },
        limit: Some(Limit { value: 41.5, label: "limit, 1 thread".to_owned() }),
        paper_figures: Vec::new(),
    }
}

fn chart(bars: Vec<Bar>) -> Bars {
    Bars { description: "a chart".to_owned(), unit: "Mtuples/s".to_owned(), aside: false, bars }
}

pub(crate) fn sample() -> Bars {
    let mut sequential = bar("sequential", 9.1, 1.0);
    sequential.tone = Tone::Baseline;
    sequential.ratio_interval = String::new();
    let mut bi = bar("bi-threaded AMAC", 42.0, 4.62);
    bi.limit = Some(Limit { value: 79.0, label: "limit, 2 threads".to_owned() });
    bi.paper_figures.push(PaperFigure { value: 9.1 * 1.5, label: "Fig. 6b: 1.50×".to_owned() });
    let mut set = bar("work-ahead set, backward and spinning, 128 entries", 13.2, 1.45);
    set.limit = bi.limit.clone();
    set.paper_figures.push(PaperFigure { value: 9.1 * 1.55, label: "Fig. 6b: 1.55×".to_owned() });
    let mut level = bar("group prefetching", 9.3, 1.02);
    level.tone = Tone::Level;
    level.ratio_interval = "no difference".to_owned();
    let mut failed = bar("staged, no prefetch", f64::NAN, f64::NAN);
    (failed.ratio, failed.ratio_interval) = (String::new(), String::new());
    failed.reading = Reading::Missing("wrong answer: 12 rows too few".to_owned());
    chart(vec![sequential, bar("coroutines", 7.0, 0.77), level, failed, bi, set])
}

#[test]
fn a_bar_is_drawn_to_scale_and_named() {
    let drawn = chart(vec![bar("a <b>", 30.0, 2.0)]).draw(Screen::Wide);
    // Limit 41.5 makes the axis 0 to 50 over 528 units from 232: 30 is at 548.8.
    let shape = "<rect class=\"bar better\" x=\"232\" y=\"32\" width=\"316.8\" height=\"18\">\
                 <title>a &lt;b&gt;: 30.0 Mtuples/s, 95 % interval 29.1 to 30.9; 2.00× the baseline\
                 </title></rect>";
    assert!(drawn.contains(shape), "{drawn}");
    assert!(drawn.contains("<line class=\"limit\" x1=\"670.2\""), "{drawn}");
    assert!(drawn.contains(">limit, 1 thread: 41.5</text>"), "{drawn}");
}

#[test]
fn a_ratio_of_speed_beside_another_measure_is_called_so() {
    let mut aside = chart(vec![bar("a", 30.0, 2.0)]);
    aside.aside = true;
    let drawn = aside.draw(Screen::Wide);
    assert!(drawn.contains(">speed</text>") && !drawn.contains(">ratio</text>"), "{drawn}");
    assert!(drawn.contains("2.00× the speed of the baseline</title>"), "{drawn}");
    assert!(aside.draw(Screen::Narrow).contains("30.0 · 2.00× speed</text>"));
}

#[test]
fn a_failed_row_says_why_and_has_no_bar() {
    let drawn = sample().draw(Screen::Narrow);
    assert!(drawn.contains("wrong answer: 12 rows too few"));
    assert_eq!(drawn.matches("<rect").count(), 5);
    assert_eq!(drawn.matches("class=\"paper\"").count(), 2);
}

#[test]
fn a_far_limit_is_named_at_the_edge() {
    let mut far = bar("in cache", 30.0, 0.8);
    far.limit = Some(Limit { value: 2300.0, label: "limit".to_owned() });
    let drawn = chart(vec![far]).draw(Screen::Wide);
    assert!(drawn.contains("limit: 2,300 →") && !drawn.contains("class=\"limit\""), "{drawn}");
}

#[test]
fn a_limit_is_drawn_in_every_row_and_named_once() {
    let drawn = sample().draw(Screen::Wide);
    assert_eq!(drawn.matches("class=\"limit\"").count(), 6);
    assert_eq!(drawn.matches("class=\"limit-label\"").count(), 2);
}

proptest! {
    #[test]
    fn nothing_breaks_the_drawing(
        values in prop::collection::vec(
            (any::<f64>(), any::<f64>(), any::<f64>(), ".{0,30}"),
            0..8,
        ),
    ) {
        let bars = values.into_iter().map(|(value, other, limit, name)| Bar {
            heading: None,
            name: name.clone(),
            reading: Reading::Value { value, interval: Some((other, value)) },
            ratio: number::ratio(value / other),
            ratio_interval: String::new(),
            tone: Tone::Better,
            limit: Some(Limit { value: limit, label: name.clone() }),
            paper_figures: vec![PaperFigure { value: other, label: name }],
        });
        let chart = chart(bars.collect());
        for screen in [Screen::Wide, Screen::Narrow] {
            let drawn = chart.draw(screen);
            for attribute in numeric_attributes(&drawn) {
                let read: f64 = attribute.parse().unwrap();
                prop_assert!(read.is_finite() && read.abs() < 1e5, "{attribute}");
            }
            prop_assert!(is_balanced(&drawn), "{drawn}");
        }
    }
}

/// The values of the attributes that are lengths.
fn numeric_attributes(drawn: &str) -> impl Iterator<Item = &str> {
    let names =
        [" x=\"", " y=\"", " x1=\"", " x2=\"", " y1=\"", " y2=\"", " width=\"", " height=\""];
    names
        .into_iter()
        .flat_map(|name| drawn.split(name).skip(1).filter_map(|rest| rest.split('"').next()))
}
