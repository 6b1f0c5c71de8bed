//! Charts as small inline SVG: no script, no font, nothing fetched.
//!
//! ```text
//! Bars    one row per technique:  name ████████|─|   58.3  2.31×      ┆ the machine's limit
//!                                    ◆ the paper's figure
//! Curves  a size on a doubling axis, one line per series, 1.0 drawn as the baseline's level
//! Heat    a table with a number in every cell, coloured by its distance from 1
//! Stacked parts of a whole, and the whole as it was measured
//! Ratios  bars from 1, to both sides, each with its interval
//! flame   callers below callees, as wide as the share of samples
//! ```
//! A chart knows numbers and words, not studies. Values that are not finite are left out and named.
//! It is laid out twice, [`Screen::Wide`] for a laptop and [`Screen::Narrow`] for a phone or one of
//! several panels, because scaled-down text cannot be read; the style sheet shows one of them.
//! Colour never carries meaning alone: bars bear their ratio, lines differ in dash, marker and
//! label. Colours are those of Okabe and Ito ("Color Universal Design", 2008), darkened for text on
//! white where contrast asks for it.

mod bars;
mod curves;
pub(crate) mod flame;
pub(crate) mod heat;
pub(crate) mod ratios;
mod scale;
pub(crate) mod stacked;
mod svg;
mod type_width;

pub(crate) use bars::{Bar, Bars, Limit, PaperFigure, Reading, Tone};
pub(crate) use curves::{Curves, PaperPoint, Point, Series, XAxis};

/// How much room a chart has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Screen {
    /// A column of the page on a laptop: names left, figures right of the bars.
    Wide,
    /// A phone, or one of several panels side by side: names and figures above the bars.
    Narrow,
}

impl Screen {
    /// The width that the chart is drawn for, in CSS pixels.
    fn width(self) -> f64 {
        match self {
            Screen::Wide => 1000.0,
            Screen::Narrow => 340.0,
        }
    }

    fn class(self) -> &'static str {
        match self {
            Screen::Wide => "chart wide",
            Screen::Narrow => "chart narrow",
        }
    }

    /// An empty drawing of this width: `description` is its text for screen readers.
    fn drawing(self, height: f64, description: &str) -> svg::Element {
        let view = format!("0 0 {} {}", self.width(), height.ceil());
        svg::Element::new("svg")
            .class(self.class())
            .with("viewBox", view)
            .at("width", self.width())
            .at("height", height.ceil())
            .with("role", "img")
            .with("aria-label", description)
    }
}

/// The finite ends of an interval, in order.
fn proper_interval(interval: Option<(f64, f64)>) -> Option<(f64, f64)> {
    interval.filter(|(low, high)| low.is_finite() && high.is_finite() && low <= high)
}
