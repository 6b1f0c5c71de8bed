//! A horizontal bar per technique, against the machine's limit and the paper's figure.
//!
//! Bars start at zero, so that lengths compare. The machine's limit is a line across the rows it
//! holds for (a limit of one thread is not that of two); one that would squeeze the bars into a
//! third of the axis is named at the edge instead. The paper's figure is a diamond on a line of its
//! own under our bar, with its source.

use super::scale::Ticks;
use super::svg::{Element, label, line};
use super::type_width::width_px;
use super::{Screen, proper_interval};
use crate::number;
use layout::Layout;

mod layout;

/// A limit this many times beyond everything else is named at the edge, not drawn to scale.
const LIMIT_BEYOND: f64 = 3.0;
/// An interval may lengthen the axis by this much; the rest of a wider one is cut off.
const INTERVAL_BEYOND: f64 = 1.3;

/// A bar chart.
#[derive(Debug, Clone)]
pub(crate) struct Bars {
    /// A description for screen readers.
    pub(crate) description: String,
    /// The unit of the axis: `Mtuples/s`.
    pub(crate) unit: String,
    /// Whether the ratios are of speed while the bars are of something else.
    pub(crate) aside: bool,
    /// One row each, from the top.
    pub(crate) bars: Vec<Bar>,
}

/// One row of a bar chart.
#[derive(Debug, Clone)]
pub(crate) struct Bar {
    /// The heading over the row when a group of rows starts here.
    pub(crate) heading: Option<String>,
    /// The technique.
    pub(crate) name: String,
    /// Its figure, or why there is none.
    pub(crate) reading: Reading,
    /// Its ratio to the baseline in words: `2.31×`.
    pub(crate) ratio: String,
    /// The interval of the ratio in words, or that no difference is shown.
    pub(crate) ratio_interval: String,
    /// How it compares with the baseline.
    pub(crate) tone: Tone,
    /// The machine's limit for this row.
    pub(crate) limit: Option<Limit>,
    /// The paper's figures for this row.
    pub(crate) paper_figures: Vec<PaperFigure>,
}

/// The figure of one row.
#[derive(Debug, Clone)]
pub(crate) enum Reading {
    /// A figure, with its 95 % interval where there is one.
    Value {
        /// In the chart's unit.
        value: f64,
        /// In the chart's unit, low end first.
        interval: Option<(f64, f64)>,
    },
    /// No figure, and why, in a few words.
    Missing(String),
}

/// How a row compares with the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// The baseline itself.
    Baseline,
    /// Better, and the interval leaves 1 out.
    Better,
    /// Worse, and the interval leaves 1 out.
    Worse,
    /// No difference shown.
    Level,
}

/// The machine's limit.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Limit {
    /// In the chart's unit.
    pub(crate) value: f64,
    /// `limit, 2 threads`.
    pub(crate) label: String,
}

/// A figure of the paper, converted to this chart's unit.
#[derive(Debug, Clone)]
pub(crate) struct PaperFigure {
    /// In the chart's unit.
    pub(crate) value: f64,
    /// `Fig. 6b: 1.50×`.
    pub(crate) label: String,
}

impl Tone {
    fn class(self) -> &'static str {
        match self {
            Tone::Baseline => "bar baseline",
            Tone::Better => "bar better",
            Tone::Worse => "bar worse",
            Tone::Level => "bar level",
        }
    }
}

impl Bar {
    fn value(&self) -> Option<f64> {
        match self.reading {
            Reading::Value { value, .. } if value.is_finite() => Some(value.max(0.0)),
            _ => None,
        }
    }

    fn interval(&self) -> Option<(f64, f64)> {
        match self.reading {
            Reading::Value { interval, .. } => proper_interval(interval),
            Reading::Missing(_) => None,
        }
    }

    fn limit(&self) -> Option<&Limit> {
        self.limit.as_ref().filter(|limit| limit.value.is_finite() && limit.value > 0.0)
    }

    fn paper_figures(&self) -> impl Iterator<Item = &PaperFigure> {
        self.paper_figures.iter().filter(|figure| figure.value.is_finite())
    }
}

impl Bars {
    /// The chart as one `<svg>`.
    pub(crate) fn draw(&self, screen: Screen) -> String {
        let layout = Layout::of(self, screen);
        let mut drawing = screen.drawing(layout.height, &self.description);
        self.draw_axis(&layout, &mut drawing);
        self.draw_limits(&layout, &mut drawing);
        for (bar, top) in self.bars.iter().zip(&layout.tops) {
            layout.draw_words(bar, *top, &self.unit, &mut drawing);
            layout.draw_bar(bar, *top, &self.unit, &mut drawing);
            for (index, figure) in bar.paper_figures().enumerate() {
                let y = layout.paper_y(*top, index);
                layout.draw_paper_figure(figure, y, &self.unit, &mut drawing);
            }
        }
        drawing.to_string()
    }

    fn draw_axis(&self, layout: &Layout, drawing: &mut Element) {
        let bottom = layout.bottom();
        for tick in &layout.ticks.values {
            let x = layout.scale.place(*tick);
            drawing.push(line("grid", (x, layout.head - 4.0), (x, bottom)));
            let text = number::tick(*tick, layout.ticks.step);
            drawing.push(label("tick", (x, bottom + 15.0), "middle", &text));
        }
        let middle = (layout.scale.from + layout.scale.to) / 2.0;
        drawing.push(label("unit", (middle, bottom + 31.0), "middle", &self.unit));
        if layout.screen == Screen::Wide {
            let compared = if self.aside { "speed" } else { "ratio" };
            let mut head = |x, anchor, text: &str| {
                drawing.push(label("head", (x, layout.head - 10.0), anchor, text));
            };
            head(836.0, "end", &self.unit);
            let has_ratio = |bar: &Bar| !(bar.ratio.is_empty() && bar.ratio_interval.is_empty());
            if self.bars.iter().any(has_ratio) {
                head(898.0, "end", compared);
                head(908.0, "start", "95 % interval");
            }
        }
    }

    /// A line across every row that has a limit, and one label per limit, at the top.
    fn draw_limits(&self, layout: &Layout, drawing: &mut Element) {
        for (bar, top) in self.bars.iter().zip(&layout.tops) {
            let Some(limit) = bar.limit().filter(|limit| limit.value <= layout.ticks.high()) else {
                continue;
            };
            let x = layout.scale.place(limit.value);
            let (from, to) = layout.limit_span(bar, *top);
            let title = format!("{}: {} {}", limit.label, number::plain(limit.value), self.unit);
            drawing.push(line("limit", (x, from), (x, to)).titled(&title));
        }
        for (lane, (limit, text)) in self.limit_words(layout).iter().enumerate() {
            let y = 13.0 + 15.0 * lane as f64;
            let x = layout.scale.place(limit.value);
            let half = width_px(text, 11.5 * layout::BOLDER) / 2.0;
            let room = (half + 1.0, layout.label_end() - half);
            let x_text = if room.0 < room.1 { x.clamp(room.0, room.1) } else { room.0 };
            drawing.push(label("limit-label", (x_text, y), "middle", text));
            if limit.value <= layout.ticks.high() {
                drawing.push(line("limit-leader", (x, y + 4.0), (x, layout.head - 4.0)));
            }
        }
    }

    /// The limits in words, the largest first so that no leader crosses a label.
    fn limit_words(&self, layout: &Layout) -> Vec<(&Limit, String)> {
        let mut limits = self.limits();
        limits.sort_by(|one, other| other.value.total_cmp(&one.value));
        let words = |limit: &Limit| {
            let arrow = if limit.value > layout.ticks.high() { " →" } else { "" };
            format!("{}: {}{arrow}", limit.label, number::plain(limit.value))
        };
        limits.into_iter().map(|limit| (limit, words(limit))).collect()
    }

    /// The different limits of the rows.
    fn limits(&self) -> Vec<&Limit> {
        let mut limits: Vec<&Limit> = Vec::new();
        for limit in self.bars.iter().filter_map(Bar::limit) {
            if !limits.contains(&limit) {
                limits.push(limit);
            }
        }
        limits
    }

    /// The axis: everything that is drawn to scale, from zero.
    fn ticks(&self, screen: Screen) -> Ticks {
        let largest = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
        let figures = self.bars.iter().flat_map(Bar::paper_figures).map(|figure| figure.value);
        let values = self.bars.iter().filter_map(Bar::value);
        let drawn = largest(&mut values.chain(figures));
        let ends = self.bars.iter().filter_map(Bar::interval).map(|(_, high)| high);
        let drawn = largest(&mut ends.map(|high| high.min(drawn * INTERVAL_BEYOND))).max(drawn);
        let limits = self.bars.iter().filter_map(Bar::limit).map(|limit| limit.value);
        let limit = largest(&mut limits.filter(|limit| *limit <= drawn * LIMIT_BEYOND));
        let wanted = if screen == Screen::Wide { 7.0 } else { 4.0 };
        Ticks::covering(0.0, drawn.max(limit), wanted)
    }
}

#[cfg(test)]
pub(crate) mod tests;
