//! Stacked bars: drawn parts and named omissions.

use proptest::prelude::*;

use super::*;
use crate::chart::svg::tests::is_balanced;

const NAMES: [&str; 3] = ["computation", "resource stalls", "instruction <stalls>"];

fn bar(label: &str, values: &[f64], mark: Option<f64>) -> Bar {
    let parts = NAMES.iter().zip(values).map(|(name, value)| ((*name).to_owned(), *value));
    Bar { label: label.to_owned(), parts: parts.collect(), mark }
}

fn chart(bars: Vec<Bar>) -> Stacked {
    Stacked {
        description: "a chart".to_owned(),
        unit: "cycles per instruction".to_owned(),
        names: NAMES.map(str::to_owned).into(),
        mark: "measured",
        joined: false,
        bars,
    }
}

/// An attribute of every rectangle whose title begins so.
fn lengths(drawn: &str, title: &str, attribute: &str) -> Vec<f64> {
    let shapes = drawn.split("<rect ").skip(1);
    let titled = shapes.filter(|shape| shape.contains(&format!("<title>{title}")));
    let read = |shape: &str| {
        let (_, rest) = shape.split_once(&format!("{attribute}=\"")).unwrap();
        rest.split('"').next().unwrap().parse().unwrap()
    };
    titled.map(read).collect()
}

#[test]
fn parts_lie_end_to_end_and_as_long_as_they_are() {
    // The axis is 0 to 4 over 312 units from 14.
    let drawn = chart(vec![bar("all", &[1.0, 2.0, 0.5], Some(4.0))]).draw(Screen::Narrow);
    assert!(is_balanced(&drawn), "{drawn}");
    assert_eq!(lengths(&drawn, "all:", " x"), [14.0, 92.0, 248.0]);
    assert_eq!(lengths(&drawn, "all:", "width"), [78.0, 156.0, 39.0]);
    assert!(drawn.contains("instruction &lt;stalls&gt; 0.500 cycles per instruction</title>"));
    assert!(drawn.contains("class=\"mark\" x1=\"326\""), "{drawn}");
    assert!(drawn.contains(">measured 4.00</text>"), "{drawn}");
    assert!(!drawn.contains("without"));
}

#[test]
fn a_part_without_a_value_is_named_and_not_drawn() {
    let drawn = chart(vec![
        bar("user", &[1.0], Some(2.0)),
        bar("kernel", &[1.0, f64::NAN, 0.3], None),
        bar("none", &[], Some(1.5)),
    ])
    .draw(Screen::Wide);
    assert!(
        drawn.contains("without resource stalls, instruction &lt;stalls&gt;</text>")
            || drawn.contains("without resource stalls, instruction &lt;stalls&gt;<title>"),
        "{drawn}"
    );
    assert!(drawn.contains("no part was counted"), "{drawn}");
    assert!(!drawn.contains("resource stalls 0"));
    assert_eq!(lengths(&drawn, "kernel:", "width").len(), 2);
    assert_eq!(drawn.matches("class=\"mark\"").count(), 2 + 1, "two marks and their key");
    // Resource stalls have no value anywhere, so they have no key.
    assert!(!drawn.contains(">resource stalls</text>"), "{drawn}");
}

#[test]
fn negative_parts_are_named() {
    let drawn = chart(vec![bar("a", &[1.0, -0.02, 0.3], None)]).draw(Screen::Wide);
    assert!(drawn.contains("resource stalls −0.0200, not drawn"), "{drawn}");
    assert_eq!(lengths(&drawn, "a:", "width").len(), 2);
}

#[test]
fn marks_are_joined_along_an_axis_only() {
    let bars =
        vec![bar("1", &[1.0], Some(2.0)), bar("2", &[1.0], None), bar("4", &[1.0], Some(3.0))];
    let apart = chart(bars);
    let joined = Stacked { joined: true, ..apart.clone() };
    assert!(!apart.draw(Screen::Wide).contains("polyline"));
    let drawn = joined.draw(Screen::Wide);
    let (_, points) = drawn.split_once("points=\"").unwrap();
    assert_eq!(points.split('"').next().unwrap().split(' ').count(), 2, "a gap is passed over");
}

#[test]
fn the_style_sheet_knows_every_class() {
    let style = include_str!("../../../templates/style.css");
    for index in 0..COLOURS {
        assert!(style.contains(&format!(".part.p{index}")), "{index}");
    }
    for class in ["svg .mark ", "svg .mark-line", ".part-figure"] {
        assert!(style.contains(class), "{class}");
    }
}

proptest! {
    #[test]
    fn nothing_breaks_the_drawing(
        bars in prop::collection::vec(
            ("\\PC{0,40}", prop::collection::vec(any::<f64>(), 0..4), any::<Option<f64>>()),
            0..6,
        ),
        joined in any::<bool>(),
    ) {
        let bars = bars.iter().map(|(label, values, mark)| bar(label, values, *mark)).collect();
        let chart = Stacked { joined, ..chart(bars) };
        for screen in [Screen::Wide, Screen::Narrow] {
            let drawn = chart.draw(screen);
            prop_assert!(is_balanced(&drawn), "{drawn}");
            for rest in [" x=\"", "width=\""].iter().flat_map(|name| drawn.split(name).skip(1)) {
                let read: f64 = rest.split('"').next().unwrap().parse().unwrap();
                prop_assert!((0.0..=screen.width()).contains(&read), "{read}");
            }
        }
    }
}
