//! Parts of a whole, one bar each, against the measured whole.
//!
//! ```text
//!   computation ▓▓  resource stalls ▒▒  instruction stalls ░░      ┃ measured
//!   one CPU                                      measured 2.31
//!   ▓▓▓▓▓▓▓▓▓▓▓▒▒▒▒▒▒▒▒▒▒▒▒░░░░░░          ┃
//!                                          ╲     joined where bars lie along an axis
//!   two CPUs                                ╲    measured 2.60
//!   ▓▓▓▓▓▓▓▓▓▓▓▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒             ┃
//!   without instruction stalls
//! ```
//! The shape of Keeton et al. (1998), figures 2, 3 and 5; with joined marks that of figure 8. A
//! part without a value is named under its bar and takes no room: no bar is drawn for uncounted
//! parts, and a stack that ends before its mark says that something is missing or overlaps.

use super::Screen;
use super::scale::Ticks;
use super::svg::{Element, label, line, polyline};
use super::type_width::{fitted, width_px};
use crate::number;

/// Colours that the style sheet has for parts.
const COLOURS: usize = 9;
const KEY_ROW: f64 = 19.0;
const TYPE: f64 = 12.0;
const SMALL_TYPE: f64 = 11.5;
const BAR: f64 = 18.0;
/// A line of words over a bar or under it.
const WORDS: f64 = 19.0;
const GAP: f64 = 10.0;
/// The axis under the bars.
const AXIS: f64 = 38.0;
/// Half of the first and of the last tick's number stands out beyond the axis.
const SIDE: f64 = 14.0;

/// A chart of stacked bars.
#[derive(Debug, Clone)]
pub(crate) struct Stacked {
    /// A description for screen readers.
    pub(crate) description: String,
    /// The unit of the axis.
    pub(crate) unit: String,
    /// Every part in the order of stacking, also those that no bar has.
    pub(crate) names: Vec<String>,
    /// The word for a mark: `measured`.
    pub(crate) mark: &'static str,
    /// Whether the bars lie along an axis, so that a line may join the marks.
    pub(crate) joined: bool,
    /// From the top.
    pub(crate) bars: Vec<Bar>,
}

/// One bar.
#[derive(Debug, Clone)]
pub(crate) struct Bar {
    /// Its label.
    pub(crate) label: String,
    /// Parts by name; missing ones have no value.
    pub(crate) parts: Vec<(String, f64)>,
    /// The whole as it was measured.
    pub(crate) mark: Option<f64>,
}

impl Bar {
    fn part(&self, name: &str) -> Option<f64> {
        let part = self.parts.iter().find(|(other, _)| other == name);
        part.map(|(_, value)| *value).filter(|value| value.is_finite())
    }

    fn mark(&self) -> Option<f64> {
        self.mark.filter(|mark| mark.is_finite() && *mark >= 0.0)
    }
}

impl Stacked {
    /// The chart as one `<svg>`.
    pub(crate) fn draw(&self, screen: Screen) -> String {
        let width = screen.width();
        let keys = self.keys(width);
        let top = keys.last().map_or(0.0, |key| key.y) + KEY_ROW + 4.0;
        let mut tops = Vec::with_capacity(self.bars.len());
        let mut bottom = top;
        for bar in &self.bars {
            tops.push(bottom);
            let words = if self.note(bar).is_empty() { WORDS } else { 2.0 * WORDS };
            bottom += words + BAR + GAP;
        }
        let scale = Scale { ticks: self.ticks(screen), width };
        let mut drawing = screen.drawing(bottom + AXIS, &self.description);
        keys.iter().for_each(|key| key.draw(&mut drawing));
        self.draw_grid(&scale, &tops, &mut drawing);
        self.draw_ticks(&scale, bottom, &mut drawing);
        let marks = self.marks(&tops, &scale);
        // Before the words, whose margins then interrupt it.
        if self.joined && marks.len() > 1 {
            drawing.push(polyline("mark-line", &marks));
        }
        for (bar, top) in self.bars.iter().zip(&tops) {
            self.draw_bar(bar, *top, &scale, &mut drawing);
        }
        for (x, y) in marks {
            let half = BAR / 2.0 + 3.0;
            drawing.push(line("mark", (x, y - half), (x, y + half)));
        }
        drawing.to_string()
    }

    fn names(&self) -> impl Iterator<Item = (usize, &str)> {
        self.names.iter().map(String::as_str).enumerate()
    }

    /// The key, in as many rows as it needs, without parts that no bar has.
    fn keys(&self, width: f64) -> Vec<Key<'_>> {
        let is_drawn = |name: &str| self.bars.iter().any(|bar| bar.part(name).is_some());
        let parts = self.names().filter(|(_, name)| is_drawn(name));
        let mut keys: Vec<Key<'_>> =
            parts.map(|(index, name)| Key::new(Sign::Part(index), name)).collect();
        if self.bars.iter().any(|bar| bar.mark().is_some()) {
            keys.push(Key::new(Sign::Mark, self.mark));
        }
        let (mut x, mut y) = (SIDE, 0.0);
        for key in &mut keys {
            let room = 20.0 + width_px(key.words, SMALL_TYPE) + 16.0;
            if x > SIDE && x + room > width {
                (x, y) = (SIDE, y + KEY_ROW);
            }
            (key.x, key.y) = (x, y);
            x += room;
        }
        keys
    }

    /// Lines behind every bar, but not behind its words.
    fn draw_grid(&self, scale: &Scale, tops: &[f64], drawing: &mut Element) {
        for tick in &scale.ticks.values {
            let x = scale.x(*tick);
            let class = if *tick == 0.0 { "axis" } else { "grid" };
            for top in tops {
                drawing.push(line(class, (x, top + WORDS - 3.0), (x, top + WORDS + BAR + 3.0)));
            }
        }
    }

    /// The numbers and the unit under the last bar.
    fn draw_ticks(&self, scale: &Scale, bottom: f64, drawing: &mut Element) {
        for tick in &scale.ticks.values {
            let words = number::tick(*tick, scale.ticks.step);
            drawing.push(label("tick", (scale.x(*tick), bottom + 14.0), "middle", &words));
        }
        drawing.push(label("unit", (scale.width / 2.0, bottom + 31.0), "middle", &self.unit));
    }

    fn draw_bar(&self, bar: &Bar, top: f64, scale: &Scale, drawing: &mut Element) {
        let mark = bar.mark().map(|mark| format!("{} {}", self.mark, number::plain(mark)));
        let mark = mark.unwrap_or_default();
        let room = scale.width - 2.0 * SIDE - width_px(&mark, TYPE) - 10.0;
        let name = label("name", (SIDE, top + 12.0), "start", &fitted(&bar.label, TYPE, room));
        drawing.push(name.titled(&bar.label));
        drawing.push(label("figure", (scale.width - SIDE, top + 12.0), "end", &mark));
        let mut sum = 0.0;
        for (index, name) in self.names() {
            let Some(value) = bar.part(name).filter(|value| *value > 0.0) else { continue };
            let (x, end) = (scale.x(sum), scale.x(sum + value));
            let title = format!("{}: {name} {} {}", bar.label, number::plain(value), self.unit);
            let class = format!("part p{}", index % COLOURS);
            let shape = Element::new("rect").class(&class).at("x", x).at("y", top + WORDS);
            let shape = shape.at("width", end - x).at("height", BAR);
            drawing.push(shape.titled(&title));
            let words = number::plain(value);
            if width_px(&words, SMALL_TYPE) + 4.0 <= end - x {
                let at = ((x + end) / 2.0, top + WORDS + 13.0);
                drawing.push(label("part-figure", at, "middle", &words).titled(&title));
            }
            sum += value;
        }
        let note = self.note(bar);
        if !note.is_empty() {
            let at = (SIDE, top + WORDS + BAR + 13.0);
            let fitted = fitted(&note, SMALL_TYPE, scale.width - SIDE);
            drawing.push(label("missing", at, "start", &fitted).titled(&note));
        }
    }

    /// Parts that the bar omits.
    fn note(&self, bar: &Bar) -> String {
        let absent: Vec<&str> =
            self.names().map(|(_, name)| name).filter(|name| bar.part(name).is_none()).collect();
        let below = self.names().filter_map(|(_, name)| {
            let value = bar.part(name).filter(|value| *value < 0.0)?;
            Some(format!("{name} {}, not drawn", number::plain(value)))
        });
        let mut notes: Vec<String> = below.collect();
        match absent.len() {
            0 => {}
            all if all == self.names.len() => notes.push("no part was counted".to_owned()),
            _ => notes.push(format!("without {}", absent.join(", "))),
        }
        notes.join("; ")
    }

    /// Positions of the drawn marks.
    fn marks(&self, tops: &[f64], scale: &Scale) -> Vec<(f64, f64)> {
        let middle = |top: f64| top + WORDS + BAR / 2.0;
        let bars = self.bars.iter().zip(tops);
        bars.filter_map(|(bar, top)| Some((scale.x(bar.mark()?), middle(*top)))).collect()
    }

    /// From zero over the longest stack and the furthest mark.
    fn ticks(&self, screen: Screen) -> Ticks {
        let sum = |bar: &Bar| -> f64 {
            let parts = self.names().filter_map(|(_, name)| bar.part(name));
            parts.filter(|value| *value > 0.0).sum()
        };
        let ends = self.bars.iter().flat_map(|bar| [sum(bar), bar.mark().unwrap_or(0.0)]);
        let furthest = ends.filter(|end| end.is_finite()).fold(0.0, f64::max);
        // Shares that add up to 1 except for rounding need no further tick.
        let furthest = if (furthest - 1.0).abs() < 0.02 { 1.0 } else { furthest };
        Ticks::covering(0.0, furthest, if screen == Screen::Wide { 8.0 } else { 4.0 })
    }
}

/// Where values lie.
struct Scale {
    ticks: Ticks,
    width: f64,
}

impl Scale {
    fn x(&self, value: f64) -> f64 {
        let share = (value - self.ticks.low()) / (self.ticks.high() - self.ticks.low());
        (SIDE + share * (self.width - 2.0 * SIDE)).clamp(0.0, self.width)
    }
}

/// A sign with its words.
struct Key<'a> {
    sign: Sign,
    words: &'a str,
    x: f64,
    y: f64,
}

enum Sign {
    Part(usize),
    Mark,
}

impl<'a> Key<'a> {
    fn new(sign: Sign, words: &'a str) -> Self {
        Self { sign, words, x: 0.0, y: 0.0 }
    }

    fn draw(&self, drawing: &mut Element) {
        let Self { x, y, .. } = *self;
        drawing.push(match self.sign {
            Sign::Part(index) => {
                let class = format!("part p{}", index % COLOURS);
                let square = Element::new("rect").class(&class).at("x", x).at("y", y + 2.0);
                square.at("width", 14.0).at("height", 12.0)
            }
            Sign::Mark => line("mark", (x + 7.0, y), (x + 7.0, y + 16.0)),
        });
        drawing.push(label("tick", (x + 20.0, y + 12.0), "start", self.words));
    }
}

#[cfg(test)]
mod tests;
