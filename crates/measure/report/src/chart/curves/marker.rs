//! The signs of the series: each has its own shape, dash and colour.

use super::super::svg::{Element, line, polygon};

/// How many colours the style sheet has for series; beyond them, shape and dash still differ.
const COLOURS: usize = 6;
const HALF: f64 = 4.0;
const KEY_WIDTH: f64 = 20.0;

/// The class that gives a series its colour and its dash.
pub(super) fn series_class(index: usize) -> String {
    format!("s{} d{}", index % COLOURS, index / COLOURS % 2)
}

/// The sign of a series at a point. The diamond is left to the paper.
pub(super) fn marker(index: usize, (x, y): (f64, f64)) -> Element {
    match index % 5 {
        0 => Element::new("circle").class("dot").at("cx", x).at("cy", y).at("r", HALF),
        1 => polygon("dot", &square((x, y))),
        2 => polygon(
            "dot",
            &[(x, y - HALF - 1.0), (x + HALF + 1.0, y + HALF), (x - HALF - 1.0, y + HALF)],
        ),
        3 => polygon(
            "dot",
            &[(x, y + HALF + 1.0), (x + HALF + 1.0, y - HALF), (x - HALF - 1.0, y - HALF)],
        ),
        _ => {
            let mut cross = Element::new("g").class("cross");
            cross.push(line("stroke", (x - HALF, y - HALF), (x + HALF, y + HALF)));
            cross.push(line("stroke", (x - HALF, y + HALF), (x + HALF, y - HALF)));
            cross
        }
    }
}

/// The line that a name belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    /// A series, by its index.
    Series(usize),
    /// The baseline's level.
    Level,
}

impl Sign {
    /// A short piece of the line with its marker, [`KEY_WIDTH`] wide, from a point on.
    pub(super) fn key(self, (x, y): (f64, f64)) -> Element {
        let end = (x + KEY_WIDTH, y);
        match self {
            Sign::Level => line("level-line", (x, y), end),
            Sign::Series(index) => {
                let mut key = Element::new("g").class(&format!("series {}", series_class(index)));
                key.push(line("curve", (x, y), end));
                key.push(marker(index, (x + KEY_WIDTH / 2.0, y)));
                key
            }
        }
    }
}

fn square((x, y): (f64, f64)) -> [(f64, f64); 4] {
    let half = HALF - 0.5;
    [(x - half, y - half), (x + half, y - half), (x + half, y + half), (x - half, y + half)]
}
