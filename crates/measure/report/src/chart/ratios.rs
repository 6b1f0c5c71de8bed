//! Ratios to a baseline as bars that start at 1, each with its interval.
//!
//! The axis is logarithmic, so that "twice" and "half" lie equally far from the line at 1. A row
//! may hold several ratios of the same cell: its speed, and below it its CPU time.

use super::scale::{Scale, Spacing};
use super::svg::{Element, label, line};
use super::type_width::fitted;
use super::{Screen, Tone, proper_interval};
use crate::number;

/// The axis reaches at least this far to both sides.
const REACH_MIN: f64 = 1.25;
/// An interval may lengthen the axis by this factor; the rest of a wider one is cut off.
const INTERVAL_BEYOND: f64 = 1.5;
/// Values that an axis may name.
const TICKS: [f64; 19] = [
    0.01, 0.03, 0.1, 0.2, 0.33, 0.5, 0.67, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0,
    30.0, 100.0,
];
/// The height of one ratio.
const LINE_HEIGHT: f64 = 19.0;
const HEADING_HEIGHT: f64 = 26.0;
const FOOT_HEIGHT: f64 = 40.0;

/// A chart of ratios.
#[derive(Debug, Clone)]
pub(crate) struct Ratios {
    /// A description for screen readers.
    pub(crate) description: String,
    /// Title of the axis.
    pub(crate) unit: String,
    /// From the top.
    pub(crate) rows: Vec<Row>,
}

/// One row.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// The heading over the row when a group of rows starts here.
    pub(crate) heading: Option<String>,
    pub(crate) name: String,
    /// Its ratios; none with a reason.
    pub(crate) marks: Vec<Mark>,
    /// Why there is no ratio.
    pub(crate) missing: String,
}

/// One ratio.
#[derive(Debug, Clone)]
pub(crate) struct Mark {
    pub(crate) ratio: f64,
    pub(crate) interval: Option<(f64, f64)>,
    pub(crate) kind: Kind,
    /// After the bar: the interval in words, and the plan's label.
    pub(crate) words: String,
}

/// The measure of a ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Speed, and how it compares.
    Speed(Tone),
    /// CPU time: more is worse.
    Cpu,
}

impl Mark {
    fn class(&self) -> &'static str {
        match self.kind {
            Kind::Speed(Tone::Better) => "bar better",
            Kind::Speed(Tone::Worse) => "bar worse",
            Kind::Speed(Tone::Level) => "bar level",
            Kind::Speed(Tone::Baseline) => "bar baseline",
            Kind::Cpu => "bar cpu",
        }
    }

    fn is_drawn(&self) -> bool {
        self.ratio.is_finite() && self.ratio > 0.0
    }
}

/// Where everything goes.
struct Layout {
    screen: Screen,
    scale: Scale,
    ticks: Vec<f64>,
    tops: Vec<f64>,
    height: f64,
}

impl Ratios {
    /// The chart as one `<svg>`.
    pub(crate) fn draw(&self, screen: Screen) -> String {
        let layout = self.layout(screen);
        let mut drawing = screen.drawing(layout.height, &self.description);
        let bottom = layout.height - FOOT_HEIGHT;
        for tick in &layout.ticks {
            let x = layout.scale.place(*tick);
            let class = if *tick == 1.0 { "level-line" } else { "grid" };
            drawing.push(line(class, (x, 4.0), (x, bottom)));
            let text = format!("{}×", number::exact(*tick));
            drawing.push(label("tick", (x, bottom + 15.0), "middle", &text));
        }
        let middle = (layout.scale.from + layout.scale.to) / 2.0;
        drawing.push(label("unit", (middle, bottom + 32.0), "middle", &self.unit));
        for (row, top) in self.rows.iter().zip(&layout.tops) {
            layout.draw_row(row, *top, &mut drawing);
        }
        drawing.to_string()
    }

    fn layout(&self, screen: Screen) -> Layout {
        let (low, high) = self.range();
        let (from, to) = match screen {
            Screen::Wide => (232.0, 720.0),
            Screen::Narrow => (8.0, 330.0),
        };
        let scale = Scale { spacing: Spacing::Doubling, low, high, from, to };
        let mut y = 8.0;
        let mut tops = Vec::with_capacity(self.rows.len());
        for row in &self.rows {
            y += row.heading.as_ref().map_or(0.0, |_| HEADING_HEIGHT);
            tops.push(y);
            let name = if screen == Screen::Wide { 4.0 } else { LINE_HEIGHT };
            y += name + LINE_HEIGHT * row.marks.len().max(1) as f64;
        }
        let ticks = ticks(&scale, if screen == Screen::Wide { 56.0 } else { 44.0 });
        Layout { screen, scale, ticks, tops, height: y + FOOT_HEIGHT }
    }

    /// The range of the axis: every ratio, and its interval as far as it is not far beyond.
    fn range(&self) -> (f64, f64) {
        let marks = || self.rows.iter().flat_map(|row| &row.marks).filter(|mark| mark.is_drawn());
        let (mut low, mut high) = (1.0 / REACH_MIN, REACH_MIN);
        for mark in marks() {
            (low, high) = (low.min(mark.ratio), high.max(mark.ratio));
        }
        let (least, most) = (low / INTERVAL_BEYOND, high * INTERVAL_BEYOND);
        for (from, to) in marks().filter_map(|mark| proper_interval(mark.interval)) {
            (low, high) = (low.min(from.max(least)), high.max(to.min(most)));
        }
        (low * 0.97, high * 1.03)
    }
}

/// The named values on an axis, thinned from 1 outwards until none touches its neighbour.
fn ticks(scale: &Scale, apart: f64) -> Vec<f64> {
    let on_axis = |tick: &&f64| (scale.low..=scale.high).contains(*tick);
    let mut kept: Vec<f64> = vec![1.0];
    let mut candidates: Vec<f64> = TICKS.iter().filter(on_axis).copied().collect();
    // Halves and doubles are familiar: they are kept before the rest.
    let is_round = |tick: f64| [0.1, 0.5, 2.0, 10.0].contains(&tick);
    candidates.sort_by_key(|tick| (!is_round(*tick), (tick.ln().abs() * -1e6) as i64));
    for tick in candidates {
        let x = scale.place(tick);
        if kept.iter().all(|other| (scale.place(*other) - x).abs() >= apart) {
            kept.push(tick);
        }
    }
    kept.sort_by(f64::total_cmp);
    kept
}

impl Layout {
    fn draw_row(&self, row: &Row, top: f64, drawing: &mut Element) {
        if let Some(heading) = &row.heading {
            drawing.push(label("group", (4.0, top - 7.0), "start", heading));
        }
        let mut y = top;
        match self.screen {
            Screen::Wide => {
                let name = fitted(&row.name, 13.0, 218.0);
                let at = (222.0, top + 14.5);
                drawing.push(label("name", at, "end", &name).titled(&row.name));
            }
            Screen::Narrow => {
                let name = fitted(&row.name, 12.0, 330.0);
                let at = (4.0, top + 14.0);
                drawing.push(label("name", at, "start", &name).titled(&row.name));
                y += LINE_HEIGHT;
            }
        }
        let drawn: Vec<&Mark> = row.marks.iter().filter(|mark| mark.is_drawn()).collect();
        if drawn.is_empty() {
            let room = self.scale.to - self.scale.from - 8.0;
            let shown = fitted(&row.missing, 12.0, room);
            let at = (self.scale.from + 4.0, y + 14.0);
            drawing.push(label("missing", at, "start", &shown).titled(&row.missing));
        }
        for mark in drawn {
            self.draw_mark(&row.name, mark, y, drawing);
            y += LINE_HEIGHT;
        }
    }

    fn draw_mark(&self, name: &str, mark: &Mark, y: f64, drawing: &mut Element) {
        let (one, end) = (self.scale.place(1.0), self.scale.place(mark.ratio));
        let (from, width) = (one.min(end), (end - one).abs().max(1.0));
        let title = format!("{name}: {} {}", number::ratio(mark.ratio), mark.words);
        let bar = Element::new("rect").class(mark.class()).at("x", from).at("y", y + 4.0);
        drawing.push(bar.at("width", width).at("height", 12.0).titled(&title));
        if let Some((low, high)) = proper_interval(mark.interval) {
            let (low, high) = (self.scale.place(low), self.scale.place(high));
            let middle = y + 10.0;
            drawing.push(line("whisker", (low, middle), (high, middle)));
            for x in [low, high] {
                drawing.push(line("whisker", (x, middle - 3.5), (x, middle + 3.5)));
            }
        }
        let figure = number::ratio(mark.ratio);
        match self.screen {
            Screen::Wide => {
                drawing.push(label("figure", (782.0, y + 14.5), "end", &figure));
                let words = fitted(&mark.words, 12.0, 206.0);
                drawing.push(label("interval", (792.0, y + 14.5), "start", &words).titled(&title));
            }
            Screen::Narrow if mark.kind == Kind::Cpu => {}
            Screen::Narrow => {
                drawing.push(label("figure", (336.0, y - 5.0), "end", &figure));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::svg::tests::is_balanced;
    use proptest::prelude::*;

    fn chart(ratios: &[f64]) -> Ratios {
        let mark = |ratio: f64| Mark {
            ratio,
            interval: Some((ratio * 0.9, ratio * 1.1)),
            kind: Kind::Speed(Tone::Better),
            words: "a <b>".to_owned(),
        };
        let row = |ratio: &f64| Row {
            heading: Some("unj".to_owned()),
            name: "10 clients".to_owned(),
            marks: vec![mark(*ratio), Mark { kind: Kind::Cpu, ..mark(*ratio) }],
            missing: "not here".to_owned(),
        };
        Ratios {
            description: "ratios".to_owned(),
            unit: "times as fast".to_owned(),
            rows: ratios.iter().map(row).collect(),
        }
    }

    #[test]
    fn twice_and_half_are_equally_long() {
        let chart = chart(&[2.0, 0.5]);
        let layout = chart.layout(Screen::Wide);
        let [half, one, two] = [0.5, 1.0, 2.0].map(|ratio| layout.scale.place(ratio));
        assert!((two - one - (one - half)).abs() < 1e-6);
        assert!(
            [0.5, 1.0, 2.0].iter().all(|tick| layout.ticks.contains(tick)),
            "{:?}",
            layout.ticks
        );
    }

    #[test]
    fn a_row_without_a_ratio_says_why() {
        let mut chart = chart(&[f64::NAN]);
        assert!(chart.draw(Screen::Wide).contains("not here"));
        chart.rows[0].marks.clear();
        assert!(chart.draw(Screen::Narrow).contains("not here"));
    }

    proptest! {
        #[test]
        fn any_ratios_draw(ratios in prop::collection::vec(any::<f64>(), 0..9)) {
            for screen in [Screen::Wide, Screen::Narrow] {
                let drawn = chart(&ratios).draw(screen);
                prop_assert!(is_balanced(&drawn) && !drawn.contains("NaN"));
            }
        }

        #[test]
        fn ticks_never_touch(low in 0.02f64..0.9, high in 1.1f64..90.0) {
            let scale = Scale { spacing: Spacing::Doubling, low, high, from: 0.0, to: 300.0 };
            let places: Vec<f64> = ticks(&scale, 44.0).iter().map(|x| scale.place(*x)).collect();
            prop_assert!(places.windows(2).all(|two| two[1] - two[0] >= 44.0));
        }
    }
}
