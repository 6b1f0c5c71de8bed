//! Where the parts of a line chart go.

use super::super::scale::{Scale, Spacing, Ticks};
use super::super::svg::{Element, diamond, label};
use super::super::type_width::{fitted, width_px};
use super::{Curves, PaperPoint, Point, Screen, Sign, XAxis};
use crate::number;

/// Two names closer than this would touch.
const NAME_APART: f64 = 18.0;
/// The height of one line of the key.
const KEY_LINE: f64 = 18.0;

/// Where everything goes.
pub(super) struct Layout {
    pub(super) screen: Screen,
    pub(super) x: Scale,
    pub(super) y: Scale,
    pub(super) y_ticks: Ticks,
    pub(super) height: f64,
}

impl Layout {
    pub(super) fn of(chart: &Curves, screen: Screen) -> Self {
        let y_ticks = chart.y_ticks();
        let key_lines = match screen {
            Screen::Wide => 0.0,
            Screen::Narrow => key_places(chart, screen).last().map_or(0.0, |(_, at, _)| at.1),
        };
        let top = key_lines + 34.0;
        let (left, right, plot_height) = match screen {
            Screen::Wide => (52.0, 770.0, 300.0),
            Screen::Narrow => (40.0, 330.0, 190.0),
        };
        let (low, high) = chart.x_range();
        let spacing =
            if chart.x_axis == XAxis::Doubling { Spacing::Doubling } else { Spacing::Even };
        let x = Scale { spacing, low, high, from: left + 10.0, to: right - 4.0 };
        let y = Scale {
            spacing: Spacing::Even,
            low: y_ticks.low(),
            high: y_ticks.high(),
            from: top + plot_height,
            to: top,
        };
        Self { screen, x, y, y_ticks, height: top + plot_height + 42.0 }
    }

    pub(super) fn at(&self, point: &Point) -> (f64, f64) {
        (self.x.place(point.x), self.y.place(point.y))
    }

    pub(super) fn draw_paper_point(&self, point: &PaperPoint, unit: &str, drawing: &mut Element) {
        let (x, y) = (self.x.place(point.x), self.y.place(point.y));
        let title = format!("the paper, {}: {} {unit}", point.label, number::plain(point.y));
        drawing.push(diamond((x, y), 5.5).titled(&title));
        let (at, anchor) = match x + width_px(&point.label, 11.5) + 10.0 < self.screen.width() {
            true => (x + 9.0, "start"),
            false => (x - 9.0, "end"),
        };
        drawing.push(label("paper-label", (at, y - 7.0), anchor, &point.label));
    }
}

/// The least and the greatest value; `0..=1` where there is none.
pub(super) fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let none = (f64::INFINITY, f64::NEG_INFINITY);
    match values.fold(none, |(low, high), value| (low.min(value), high.max(value))) {
        (low, high) if low <= high => (low, high),
        _ => (0.0, 1.0),
    }
}

/// Places near the `wanted` ones (rising), at least [`NAME_APART`] from each other, from `top`
/// down. More names than fit run over the bottom rather than onto each other.
pub(super) fn spread(wanted: &[f64], (top, bottom): (f64, f64)) -> Vec<f64> {
    let mut places = wanted.to_vec();
    let mut ceiling = f64::INFINITY;
    // Up from the bottom, then down from the top: the second pass wins where there is no room.
    for place in places.iter_mut().rev() {
        *place = place.min(bottom).min(ceiling - NAME_APART);
        ceiling = *place;
    }
    let mut floor = top - NAME_APART;
    for place in &mut places {
        *place = place.max(floor + NAME_APART);
        floor = *place;
    }
    places
}

/// Where each entry of the key goes, and its text.
pub(super) fn key_places(chart: &Curves, screen: Screen) -> Vec<(Sign, (f64, f64), String)> {
    let width = screen.width();
    let (mut x, mut y) = (4.0, 14.0);
    let mut places = Vec::with_capacity(chart.series.len() + 1);
    let series = chart.series.iter().enumerate();
    let series = series.map(|(index, one)| (Sign::Series(index), one.name.as_str()));
    let level = chart.level.iter().map(|(_, name)| (Sign::Level, name.as_str()));
    for (sign, name) in series.chain(level) {
        let text = fitted(name, 12.0, width - 42.0);
        let taken = 24.0 + width_px(&text, 12.0) + 12.0;
        if x > 4.0 && x + taken > width {
            (x, y) = (4.0, y + KEY_LINE);
        }
        places.push((sign, (x, y), text));
        x += taken;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::super::Series;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn names_never_touch(mut wanted in prop::collection::vec(0f64..300.0, 0..12)) {
            wanted.sort_by(f64::total_cmp);
            let places = spread(&wanted, (0.0, 300.0));
            prop_assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= NAME_APART - 1e-9));
            prop_assert!(places.iter().all(|place| *place >= 0.0));
        }

        #[test]
        fn a_key_stays_inside(names in prop::collection::vec("[a-z ]{1,80}", 0..9)) {
            let series = names.into_iter().map(|name| Series { name, points: Vec::new() });
            let chart = Curves { series: series.collect(), ..super::super::tests::sample() };
            for (_, (x, _), text) in key_places(&chart, Screen::Narrow) {
                prop_assert!(x + 24.0 + width_px(&text, 12.0) <= Screen::Narrow.width());
            }
        }
    }
}
