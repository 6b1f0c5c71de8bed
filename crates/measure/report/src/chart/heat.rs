//! A table whose cells are coloured by how far they lie from 1, or from the least value.
//!
//! The number stands in every cell, so that colour is an addition: two hues away from 1 in the
//! steps of their logarithm, one hue for other values. A number in bold type has an interval that
//! leaves out 1. Hues are classes; the style sheet lays them over the card in both themes.

use super::Screen;
use super::svg::{Element, label};
use super::type_width::fitted;

/// Steps away from 1 in either direction.
const STEPS: f64 = 4.0;
/// The strongest colour is at least this far from 1: noise must not look like a difference.
const FULL_FROM_RATIO: f64 = 1.25;
/// From this step on the colour is too strong for the page's ink.
const STRONG_FROM: i32 = 3;
/// The names of columns and of their axis.
const HEAD_HEIGHT: f64 = 40.0;

/// A coloured table.
#[derive(Debug, Clone)]
pub(crate) struct Heat {
    /// A description for screen readers.
    pub(crate) description: String,
    /// The axis of the columns.
    pub(crate) along: String,
    /// Their names.
    pub(crate) columns: Vec<String>,
    /// The rows from the top.
    pub(crate) rows: Vec<Row>,
    /// The meaning of colours.
    pub(crate) hues: Hues,
}

/// The meaning of colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hues {
    /// On which side of 1 a ratio lies, and how far.
    AroundOne,
    /// How large a value is.
    Rising,
}

/// One row.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) name: String,
    /// A note on the whole row, after its cells; omitted in narrow drawings.
    pub(crate) note: String,
    /// One per column.
    pub(crate) squares: Vec<Square>,
}

/// One cell.
#[derive(Debug, Clone)]
pub(crate) enum Square {
    /// A figure.
    Value {
        /// The value of the colour.
        value: f64,
        /// The text.
        words: String,
        /// Whether its interval leaves out 1.
        is_sure: bool,
        /// The tooltip.
        title: String,
    },
    /// No figure, and why.
    Missing(String),
}

/// Where everything goes.
struct Layout {
    names: f64,
    width: f64,
    height: f64,
    type_px: f64,
}

impl Heat {
    /// The table as one `<svg>`.
    pub(crate) fn draw(&self, screen: Screen) -> String {
        let layout = self.layout(screen);
        let height = HEAD_HEIGHT + layout.height * self.rows.len() as f64 + 4.0;
        let mut drawing = screen.drawing(height, &self.description);
        let middle = layout.names + layout.width * self.columns.len() as f64 / 2.0;
        let along = fitted(&self.along, 12.0, screen.width() - layout.names);
        drawing.push(label("unit", (middle, 12.0), "middle", &along));
        for (at, column) in self.columns.iter().enumerate() {
            let x = layout.names + layout.width * (at as f64 + 0.5);
            let text = fitted(column, 11.5, layout.width - 2.0);
            drawing.push(label("tick", (x, 32.0), "middle", &text).titled(column));
        }
        let full = self.full();
        for (at, row) in self.rows.iter().enumerate() {
            let top = HEAD_HEIGHT + layout.height * at as f64;
            let baseline = top + layout.height / 2.0 + 4.5;
            let name = fitted(&row.name, layout.type_px, layout.names - 10.0);
            let name = label("name", (layout.names - 8.0, baseline), "end", &name);
            drawing.push(name.titled(&row.name));
            for (column, square) in row.squares.iter().enumerate() {
                let x = layout.names + layout.width * column as f64;
                self.draw_square(square, ((x, top), &layout, full), &mut drawing);
            }
            if screen == Screen::Wide && !row.note.is_empty() {
                let x = layout.names + layout.width * self.columns.len() as f64 + 12.0;
                let note = fitted(&row.note, 12.0, screen.width() - x);
                drawing.push(label("interval", (x, baseline), "start", &note).titled(&row.note));
            }
        }
        drawing.to_string()
    }

    fn layout(&self, screen: Screen) -> Layout {
        let columns = self.columns.len().max(1) as f64;
        let has_notes = self.rows.iter().any(|row| !row.note.is_empty());
        match screen {
            Screen::Wide => {
                let room = if has_notes { 520.0 } else { 800.0 };
                let width = (room / columns).min(110.0);
                Layout { names: 190.0, width, height: 32.0, type_px: 13.0 }
            }
            Screen::Narrow => {
                let names = if columns > 5.0 { 74.0 } else { 104.0 };
                let width = ((338.0 - names) / columns).min(70.0);
                Layout { names, width, height: 28.0, type_px: 12.0 }
            }
        }
    }

    /// The distance that has the strongest colour.
    fn full(&self) -> f64 {
        let squares = self.rows.iter().flat_map(|row| &row.squares);
        let distance = |square: &Square| match square {
            Square::Value { value, .. } if self.hues == Hues::AroundOne => value.ln().abs(),
            Square::Value { value, .. } => value.abs(),
            Square::Missing(_) => 0.0,
        };
        let most = squares.map(distance).filter(|far| far.is_finite()).fold(0.0, f64::max);
        match self.hues {
            Hues::AroundOne => most.max(FULL_FROM_RATIO.ln()),
            Hues::Rising if most > 0.0 => most,
            Hues::Rising => 1.0,
        }
    }

    /// The step of a value: below 0 for less than 1.
    fn step(&self, value: f64, full: f64) -> i32 {
        let share = match self.hues {
            Hues::AroundOne => value.ln() / full,
            Hues::Rising => value / full,
        };
        (share.clamp(-1.0, 1.0) * STEPS).round() as i32
    }

    fn draw_square(
        &self,
        square: &Square,
        ((x, top), layout, full): ((f64, f64), &Layout, f64),
        drawing: &mut Element,
    ) {
        let rect = |class: &str| {
            let rect = Element::new("rect").class(class).at("x", x + 1.0).at("y", top + 1.0);
            rect.at("width", layout.width - 2.0).at("height", layout.height - 2.0)
        };
        let middle = (x + layout.width / 2.0, top + layout.height / 2.0 + 4.5);
        match square {
            Square::Value { value, words, is_sure, title } if value.is_finite() => {
                let step = self.step(*value, full);
                let side = if step < 0 { "down" } else { "up" };
                drawing.push(rect(&format!("heat {side}{}", step.abs())).titled(title));
                let mut class = "heat-figure".to_owned();
                class.push_str(if step.abs() >= STRONG_FROM { " on-strong" } else { "" });
                class.push_str(if *is_sure { " sure" } else { "" });
                let text = fitted(words, layout.type_px, layout.width - 2.0);
                drawing.push(label(&class, middle, "middle", &text));
            }
            Square::Value { title, .. } => drawing.push(rect("heat none").titled(title)),
            Square::Missing(why) => {
                drawing.push(rect("heat none").titled(why));
                drawing.push(label("heat-figure soft", middle, "middle", crate::number::NONE));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::svg::tests::is_balanced;
    use proptest::prelude::*;

    fn value(value: f64) -> Square {
        let words = format!("{value:.2}");
        Square::Value { value, words, is_sure: true, title: "a <b>".to_owned() }
    }

    fn heat(rows: Vec<Vec<Square>>, hues: Hues) -> Heat {
        let columns = rows.first().map_or(0, Vec::len);
        let row = |squares| Row { name: "unj".to_owned(), note: String::new(), squares };
        Heat {
            description: "a table".to_owned(),
            along: "clients".to_owned(),
            columns: (0..columns).map(|at| at.to_string()).collect(),
            rows: rows.into_iter().map(row).collect(),
            hues,
        }
    }

    #[test]
    fn twice_and_half_are_equally_strong() {
        let drawn = heat(vec![vec![value(2.0), value(0.5), value(1.0)]], Hues::AroundOne);
        let drawn = drawn.draw(Screen::Wide);
        for class in ["heat up4", "heat down4", "heat up0", "on-strong sure"] {
            assert!(drawn.contains(class), "{class} is not in {drawn}");
        }
        // A table of noise is pale: 2 % is far from the strongest colour.
        let pale = heat(vec![vec![value(1.02), value(0.98)]], Hues::AroundOne).draw(Screen::Wide);
        assert!(pale.contains("heat up0") && !pale.contains("up4"), "{pale}");
    }

    #[test]
    fn missing_values_have_a_reason() {
        let squares = vec![Square::Missing("not here: no siblings".to_owned()), value(f64::NAN)];
        let drawn = heat(vec![squares], Hues::AroundOne).draw(Screen::Narrow);
        assert!(drawn.contains("not here: no siblings"), "{drawn}");
        assert_eq!(drawn.matches("heat none").count(), 2);
    }

    proptest! {
        #[test]
        fn any_numbers_draw(values in prop::collection::vec(any::<f64>(), 1..12)) {
            for hues in [Hues::AroundOne, Hues::Rising] {
                let rows = vec![values.iter().copied().map(value).collect()];
                for screen in [Screen::Wide, Screen::Narrow] {
                    let drawn = heat(rows.clone(), hues).draw(screen);
                    prop_assert!(is_balanced(&drawn) && !drawn.contains("NaN"));
                }
            }
        }
    }
}
