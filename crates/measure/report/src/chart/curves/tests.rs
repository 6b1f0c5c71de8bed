//! Curves: axes, names, keys, and broken numbers.

use super::*;
use crate::chart::svg::tests::is_balanced;
use proptest::prelude::*;

fn series(name: &str, height: f64, peak: f64) -> Series {
    let sizes = (4..=13).map(|power| f64::from(power).exp2());
    let points = sizes.map(|x| {
        let y = 1.0 + height * (-((x.log2() - peak) / 2.2).powi(2)).exp() - 0.12;
        Point { x, y, interval: Some((y * 0.98, y * 1.02)) }
    });
    Series { name: name.to_owned(), points: points.collect() }
}

pub(crate) fn sample() -> Curves {
    Curves {
        description: "ratio over set size".to_owned(),
        x_unit: "work-ahead-set size, entries".to_owned(),
        y_unit: "ratio to sequential, ×".to_owned(),
        x_axis: XAxis::Doubling,
        series: vec![
            series("backward, spin", 0.55, 8.0),
            series("backward, no spin", 0.5, 8.3),
            series("forward, spin", 0.2, 7.0),
            series("forward, no spin", 0.22, 7.5),
        ],
        level: Some((1.0, "baseline: sequential".to_owned())),
        paper_points: vec![PaperPoint { x: 128.0, y: 1.68, label: "Fig. 6a: 1.68×".to_owned() }],
        paper_levels: vec![(1.55, "Fig. 14a: up to 1.52×".to_owned())],
    }
}

#[test]
fn doublings_are_evenly_apart_and_named() {
    let drawn = sample().draw(Screen::Wide);
    for size in ["16", "128", "8192"] {
        assert!(drawn.contains(&format!(">{size}</text>")), "{size}");
    }
    // 16 at 62 and 8192 at 766: each doubling is 78.2 on.
    let start = "<polyline class=\"curve\" points=\"62,";
    assert!(drawn.contains(start) && drawn.contains(" 140.2,") && drawn.contains(" 766,"));
    assert!(drawn.contains("class=\"level-line\""));
    assert!(drawn.contains("work-ahead-set size, entries 128: "));
}

#[test]
fn a_narrow_drawing_has_a_key_instead_of_names_at_the_lines() {
    let drawn = sample().draw(Screen::Narrow);
    assert!(!drawn.contains("leader"));
    assert_eq!(drawn.matches(">forward, spin</text>").count(), 1);
}

#[test]
fn words_make_an_axis_too() {
    let mut chart = sample();
    chart.x_axis = XAxis::Named(vec!["clustered".to_owned(), "unclustered".to_owned()]);
    for one in &mut chart.series {
        one.points.truncate(2);
        one.points.iter_mut().enumerate().for_each(|(at, point)| point.x = at as f64);
    }
    chart.paper_points.clear();
    let drawn = chart.draw(Screen::Wide);
    assert!(drawn.contains(">unclustered</text>"));
}

proptest! {
    #[test]
    fn nothing_breaks_the_drawing(
        points in prop::collection::vec((any::<f64>(), any::<f64>()), 0..6),
        x_axis in prop_oneof![Just(XAxis::Doubling), Just(XAxis::Even), Just(XAxis::Named(vec![]))],
        level in any::<f64>(),
    ) {
        let points = points.into_iter().map(|(x, y)| Point { x, y, interval: Some((x, y)) });
        let series = vec![Series { name: "<x>".to_owned(), points: points.collect() }];
        let chart = Curves { x_axis, series, level: Some((level, "&".to_owned())), ..sample() };
        for screen in [Screen::Wide, Screen::Narrow] {
            let drawn = chart.draw(screen);
            prop_assert!(!drawn.contains("NaN") && !drawn.contains("inf\""));
            prop_assert!(is_balanced(&drawn), "{drawn}");
        }
    }
}
