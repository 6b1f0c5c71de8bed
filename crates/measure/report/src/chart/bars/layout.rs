//! Where the parts of a bar chart go, and the rows themselves.

use super::super::scale::{Scale, Spacing, Ticks};
use super::super::svg::{Element, diamond, label, line};
use super::super::type_width::{fitted, width_px};
use super::{Bar, Bars, PaperFigure, Reading, Screen};
use crate::number;

/// How much wider bold type runs.
pub(super) const BOLDER: f64 = 1.1;
/// The height of one figure of the paper under its row.
const PAPER_HEIGHT: f64 = 17.0;
/// The height of a heading over a group of rows.
const HEADING_HEIGHT: f64 = 24.0;
/// The axis, its ticks and its unit.
const FOOT_HEIGHT: f64 = 40.0;

/// Where everything goes.
pub(super) struct Layout {
    pub(super) screen: Screen,
    pub(super) ticks: Ticks,
    pub(super) scale: Scale,
    /// Whether the ratios are of speed while the bars are of something else.
    aside: bool,
    /// The height above the first row.
    pub(super) head: f64,
    /// The top of each row.
    pub(super) tops: Vec<f64>,
    pub(super) height: f64,
}

impl Layout {
    pub(super) fn of(chart: &Bars, screen: Screen) -> Self {
        let ticks = chart.ticks(screen);
        let (from, to) = match screen {
            Screen::Wide => (232.0, 760.0),
            Screen::Narrow => (4.0, 326.0),
        };
        let scale =
            Scale { spacing: Spacing::Even, low: ticks.low(), high: ticks.high(), from, to };
        let lanes = 15.0 * chart.limits().len() as f64;
        let head = match screen {
            Screen::Wide => lanes.max(14.0) + 14.0,
            Screen::Narrow => lanes + 10.0,
        };
        let mut y = head;
        let mut tops = Vec::with_capacity(chart.bars.len());
        for bar in &chart.bars {
            y += bar.heading.as_ref().map_or(0.0, |_| HEADING_HEIGHT);
            tops.push(y);
            y += row_height(screen) + PAPER_HEIGHT * bar.paper_figures().count() as f64;
        }
        Self { screen, ticks, scale, aside: chart.aside, head, tops, height: y + FOOT_HEIGHT }
    }

    pub(super) fn bottom(&self) -> f64 {
        self.height - FOOT_HEIGHT
    }

    /// The top and the height of the bar in a row.
    fn bar_at(&self, top: f64) -> (f64, f64) {
        match self.screen {
            Screen::Wide => (top + 3.0, 18.0),
            Screen::Narrow => (top + 17.0, 13.0),
        }
    }

    pub(super) fn paper_y(&self, top: f64, index: usize) -> f64 {
        top + row_height(self.screen) + PAPER_HEIGHT * index as f64 + 5.0
    }

    /// How far labels over the rows may reach to the right: not into the heads of the figures.
    pub(super) fn label_end(&self) -> f64 {
        match self.screen {
            Screen::Wide => self.scale.to + 8.0,
            Screen::Narrow => self.screen.width() - 2.0,
        }
    }

    /// From where to where a limit's line runs in a row: all of it, but never through words.
    pub(super) fn limit_span(&self, bar: &Bar, top: f64) -> (f64, f64) {
        let figures_height = PAPER_HEIGHT * bar.paper_figures().count() as f64;
        match self.screen {
            Screen::Wide => (top - 2.0, top + row_height(self.screen) + figures_height - 2.0),
            Screen::Narrow => (top + 14.0, top + row_height(self.screen) + figures_height - 3.0),
        }
    }

    /// The name of the technique and its figures.
    pub(super) fn draw_words(&self, bar: &Bar, top: f64, unit: &str, drawing: &mut Element) {
        if let Some(heading) = &bar.heading {
            drawing.push(label("group", (4.0, top - 6.0), "start", heading));
        }
        let figure = bar.value().map_or_else(|| number::NONE.to_owned(), number::plain);
        let title = format!("{}: {figure} {unit}", bar.name);
        match self.screen {
            Screen::Wide => {
                let y = top + 16.5;
                let name = fitted(&bar.name, 13.0, 218.0);
                drawing.push(label("name", (222.0, y), "end", &name).titled(&title));
                drawing.push(label("figure", (836.0, y), "end", &figure));
                drawing.push(label("ratio", (898.0, y), "end", &bar.ratio));
                let interval = fitted(&bar.ratio_interval, 12.0, 92.0);
                drawing.push(label("interval", (908.0, y), "start", &interval));
            }
            Screen::Narrow => {
                let y = top + 12.0;
                let words = match bar.ratio.is_empty() {
                    true => figure,
                    false if self.aside => format!("{figure} · {} speed", bar.ratio),
                    false => format!("{figure} · {}", bar.ratio),
                };
                let room = 330.0 - width_px(&words, 12.0 * BOLDER) - 8.0;
                let name = fitted(&bar.name, 12.0, room);
                drawing.push(label("name", (4.0, y), "start", &name).titled(&title));
                drawing.push(label("figure", (336.0, y), "end", &words));
            }
        }
    }

    /// The bar with its interval, or why there is none.
    pub(super) fn draw_bar(&self, bar: &Bar, top: f64, unit: &str, drawing: &mut Element) {
        let (y, height) = self.bar_at(top);
        let Some(value) = bar.value() else {
            let why = match &bar.reading {
                Reading::Missing(why) => why.as_str(),
                Reading::Value { .. } => "no figure",
            };
            let shown = fitted(why, 12.0, self.scale.to - self.scale.from - 8.0);
            let at = (self.scale.from + 4.0, y + height / 2.0 + 4.0);
            drawing.push(label("missing", at, "start", &shown).titled(why));
            return;
        };
        let end = self.scale.place(value);
        let mut title = format!("{}: {} {unit}", bar.name, number::plain(value));
        let interval = bar.interval();
        if let Some((low, high)) = interval {
            let ends = format!("{} to {}", number::plain(low), number::plain(high));
            title.push_str(&format!(", 95 % interval {ends}"));
        }
        if !bar.ratio.is_empty() {
            let of = if self.aside { "the speed of the baseline" } else { "the baseline" };
            title.push_str(&format!("; {} {of}", bar.ratio));
        }
        let shape = Element::new("rect").class(bar.tone.class()).at("x", self.scale.from);
        let shape = shape.at("y", y).at("width", (end - self.scale.from).max(1.0));
        drawing.push(shape.at("height", height).titled(&title));
        if let Some((low, high)) = interval {
            let (low, high) = (self.scale.place(low), self.scale.place(high));
            let middle = y + height / 2.0;
            drawing.push(line("whisker", (low, middle), (high, middle)));
            for x in [low, high].into_iter().filter(|x| *x < self.scale.to) {
                drawing.push(line("whisker", (x, middle - 4.0), (x, middle + 4.0)));
            }
        }
    }

    /// A diamond and its source, on the side where there is room.
    pub(super) fn draw_paper_figure(
        &self,
        figure: &PaperFigure,
        y: f64,
        unit: &str,
        drawing: &mut Element,
    ) {
        let x = self.scale.place(figure.value);
        let value = number::plain(figure.value);
        let title = format!("the paper, {}; on this machine {value} {unit}", figure.label);
        drawing.push(diamond((x, y), 5.0).titled(&title));
        let right = self.scale.to.max(self.screen.width() - 14.0) - x - 10.0;
        let left = x - self.scale.from - 10.0;
        let wanted = width_px(&figure.label, 11.5);
        let (at, anchor, room) = match wanted <= right || right >= left {
            true => (x + 9.0, "start", right),
            false => (x - 9.0, "end", left),
        };
        let text = fitted(&figure.label, 11.5, room);
        drawing.push(label("paper-label", (at, y + 4.0), anchor, &text).titled(&title));
    }
}

fn row_height(screen: Screen) -> f64 {
    match screen {
        Screen::Wide => 26.0,
        Screen::Narrow => 36.0,
    }
}
