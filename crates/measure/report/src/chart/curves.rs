//! Lines over a size: one per series, with the baseline's level and the paper's points.
//!
//! Sizes that double lie on a doubling axis. Series differ by marker and dash as well as by
//! colour; each is named at its last point where there is room, otherwise in a key above the
//! drawing. The vertical axis starts at zero unless all lines keep to its upper part; then the
//! ticks say where it starts.

use super::scale::{Ticks, powers_of_two};
use super::svg::{Element, diamond, label, line, polyline};
use super::type_width::fitted;
use super::{Screen, proper_interval};
use crate::number;
use layout::{Layout, key_places, range, spread};
use marker::{Sign, marker, series_class};

mod layout;
mod marker;

/// Lines that all lie above this share of the highest point get an axis that does not start at
/// zero.
const ZERO_BELOW_SHARE: f64 = 0.55;

/// A line chart.
#[derive(Debug, Clone)]
pub(crate) struct Curves {
    /// A description for screen readers.
    pub(crate) description: String,
    /// Title of the horizontal axis, with its unit.
    pub(crate) x_unit: String,
    /// Title of the vertical axis, with its unit.
    pub(crate) y_unit: String,
    /// How the horizontal axis is laid out.
    pub(crate) x_axis: XAxis,
    /// The lines.
    pub(crate) series: Vec<Series>,
    /// The baseline's level and its name.
    pub(crate) level: Option<(f64, String)>,
    /// The paper's figures.
    pub(crate) paper_points: Vec<PaperPoint>,
    /// The paper's figures that hold for the whole axis, with their names.
    pub(crate) paper_levels: Vec<(f64, String)>,
}

/// The horizontal axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum XAxis {
    /// Sizes that double.
    Doubling,
    /// Numbers at even distances.
    Even,
    /// Words: the first at 0, the next at 1.
    Named(Vec<String>),
}

/// One line.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    /// Its label.
    pub(crate) name: String,
    /// From left to right.
    pub(crate) points: Vec<Point>,
}

/// One measured point.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
    /// The 95 % interval, low end first.
    pub(crate) interval: Option<(f64, f64)>,
}

/// A figure of the paper.
#[derive(Debug, Clone)]
pub(crate) struct PaperPoint {
    pub(crate) x: f64,
    pub(crate) y: f64,
    /// `Fig. 6a: 1.68×`.
    pub(crate) label: String,
}

impl Series {
    fn drawn(&self) -> impl Iterator<Item = &Point> {
        self.points.iter().filter(|point| point.x.is_finite() && point.y.is_finite())
    }
}

impl Curves {
    /// The chart as one `<svg>`.
    pub(crate) fn draw(&self, screen: Screen) -> String {
        let layout = Layout::of(self, screen);
        let mut drawing = screen.drawing(layout.height, &self.description);
        self.draw_axes(&layout, &mut drawing);
        self.draw_level(&layout, &mut drawing);
        self.draw_paper_levels(&layout, &mut drawing);
        for (index, series) in self.series.iter().enumerate() {
            self.draw_series(&layout, (index, series), &mut drawing);
        }
        for point in
            self.paper_points.iter().filter(|point| point.x.is_finite() && point.y.is_finite())
        {
            layout.draw_paper_point(point, &self.y_unit, &mut drawing);
        }
        match screen {
            Screen::Wide => self.draw_names(&layout, &mut drawing),
            Screen::Narrow => self.draw_key(&layout, &mut drawing),
        }
        drawing.to_string()
    }

    fn draw_axes(&self, layout: &Layout, drawing: &mut Element) {
        let (left, right) = (layout.x.from, layout.x.to);
        let (top, bottom) = (layout.y.to, layout.y.from);
        for tick in &layout.y_ticks.values {
            let y = layout.y.place(*tick);
            drawing.push(line("grid", (left, y), (right, y)));
            let text = number::tick(*tick, layout.y_ticks.step);
            drawing.push(label("tick", (left - 7.0, y + 4.0), "end", &text));
        }
        for (x, text) in self.x_ticks(layout.screen) {
            let x = layout.x.place(x);
            drawing.push(line("axis", (x, bottom), (x, bottom + 4.0)));
            drawing.push(label("tick", (x, bottom + 17.0), "middle", &text));
        }
        drawing.push(line("axis", (left, bottom), (right, bottom)));
        let unit_at = ((left + right) / 2.0, bottom + 34.0);
        drawing.push(label("unit", unit_at, "middle", &self.x_unit));
        let y_unit = fitted(&self.y_unit, 12.0, layout.screen.width() - 8.0);
        drawing.push(label("unit", (4.0, top - 12.0), "start", &y_unit));
    }

    fn draw_level(&self, layout: &Layout, drawing: &mut Element) {
        let Some((level, name)) = self.level.as_ref().filter(|(level, _)| level.is_finite()) else {
            return;
        };
        let y = layout.y.place(*level);
        drawing.push(line("level-line", (layout.x.from, y), (layout.x.to, y)).titled(name));
    }

    fn draw_paper_levels(&self, layout: &Layout, drawing: &mut Element) {
        for (level, name) in self.paper_levels.iter().filter(|(level, _)| level.is_finite()) {
            let y = layout.y.place(*level);
            drawing.push(line("paper-level", (layout.x.from, y), (layout.x.to, y)).titled(name));
            drawing.push(diamond((layout.x.from, y), 5.0).titled(name));
            let text = fitted(name, 11.5, layout.x.to - layout.x.from - 12.0);
            drawing.push(label("paper-label", (layout.x.from + 9.0, y - 5.0), "start", &text));
        }
    }

    fn draw_series(
        &self,
        layout: &Layout,
        (index, series): (usize, &Series),
        drawing: &mut Element,
    ) {
        let places: Vec<(f64, f64)> = series.drawn().map(|point| layout.at(point)).collect();
        let mut group = Element::new("g").class(&format!("series {}", series_class(index)));
        if places.len() > 1 {
            group.push(polyline("curve", &places).titled(&series.name));
        }
        for (point, (x, y)) in series.drawn().zip(&places) {
            if let Some((low, high)) = proper_interval(point.interval) {
                let (low, high) = (layout.y.place(low), layout.y.place(high));
                group.push(line("whisker", (*x, low), (*x, high)));
            }
            let title = format!("{}, {}", series.name, self.words(point));
            group.push(marker(index, (*x, *y)).titled(&title));
        }
        drawing.push(group);
    }

    fn words(&self, point: &Point) -> String {
        let x = match &self.x_axis {
            XAxis::Named(names) => names.get(point.x as usize).cloned().unwrap_or_default(),
            XAxis::Doubling | XAxis::Even => number::exact(point.x),
        };
        let mut words = format!("{} {x}: {} {}", self.x_unit, number::plain(point.y), self.y_unit);
        if let Some((low, high)) = proper_interval(point.interval) {
            let ends = format!("{} to {}", number::plain(low), number::plain(high));
            words.push_str(&format!(", 95 % interval {ends}"));
        }
        words
    }

    /// Each name beside the last point of its line, moved apart where they would overlap.
    fn draw_names(&self, layout: &Layout, drawing: &mut Element) {
        let mut names: Vec<(Sign, &str, f64)> = Vec::new();
        for (index, series) in self.series.iter().enumerate() {
            if let Some(last) = series.drawn().last() {
                names.push((Sign::Series(index), &series.name, layout.at(last).1));
            }
        }
        if let Some((level, name)) = self.level.as_ref().filter(|(level, _)| level.is_finite()) {
            names.push((Sign::Level, name, layout.y.place(*level)));
        }
        names.sort_by(|one, other| one.2.total_cmp(&other.2));
        let wanted: Vec<f64> = names.iter().map(|(_, _, y)| *y).collect();
        let lines = spread(&wanted, (layout.y.to, layout.y.from));
        for ((sign, name, y), y_text) in names.iter().zip(lines) {
            let elbow = layout.x.to + 10.0;
            let leader = line("leader", (layout.x.to + 1.0, *y), (elbow + 2.0, y_text));
            drawing.push(leader);
            drawing.push(sign.key((elbow + 3.0, y_text)));
            let text = fitted(name, 13.0, layout.screen.width() - elbow - 29.0);
            let at = (elbow + 27.0, y_text + 4.5);
            drawing.push(label("name", at, "start", &text).titled(name));
        }
    }

    /// The key above a narrow drawing: as many names in a line as fit.
    fn draw_key(&self, layout: &Layout, drawing: &mut Element) {
        for (sign, (x, y), text) in key_places(self, layout.screen) {
            drawing.push(sign.key((x, y - 4.0)));
            drawing.push(label("name", (x + 24.0, y), "start", &text));
        }
    }

    fn x_ticks(&self, screen: Screen) -> Vec<(f64, String)> {
        let most = if screen == Screen::Wide { 12 } else { 6 };
        let (low, high) = self.x_range();
        match &self.x_axis {
            XAxis::Named(names) => {
                let room = screen.width() * 0.7 / names.len().max(1) as f64;
                let named = names.iter().enumerate();
                named.map(|(index, name)| (index as f64, fitted(name, 11.5, room))).collect()
            }
            XAxis::Doubling => {
                let powers = powers_of_two(low, high, most);
                let within = powers.into_iter().filter(|x| (low..=high).contains(x));
                within.map(|x| (x, number::exact(x))).collect()
            }
            XAxis::Even => {
                let ticks = Ticks::covering(low, high, most as f64);
                let step = ticks.step;
                let within = ticks.values.into_iter().filter(|x| (low..=high).contains(x));
                within.map(|x| (x, number::tick(x, step))).collect()
            }
        }
    }

    fn x_range(&self) -> (f64, f64) {
        if let XAxis::Named(names) = &self.x_axis {
            return (-0.5, names.len() as f64 - 0.5);
        }
        let paper_points = self.paper_points.iter().map(|point| point.x).filter(|x| x.is_finite());
        let points = self.series.iter().flat_map(Series::drawn).map(|point| point.x);
        range(points.chain(paper_points))
    }

    fn y_ticks(&self) -> Ticks {
        let drawn = || self.series.iter().flat_map(Series::drawn);
        let ends = drawn().filter_map(|point| proper_interval(point.interval));
        let paper_points = self.paper_points.iter().map(|point| point.y);
        let levels = self.level.iter().chain(&self.paper_levels).map(|(level, _)| *level);
        let values = drawn().map(|point| point.y).chain(ends.flat_map(|(low, high)| [low, high]));
        let (low, high) = range(values.chain(paper_points).chain(levels).filter(|y| y.is_finite()));
        let low = if low >= 0.0 && low < high * ZERO_BELOW_SHARE { 0.0 } else { low };
        Ticks::covering(low, high, 5.0)
    }
}

#[cfg(test)]
pub(crate) mod tests;
