//! Drawings for pages of other crates: figures of a few subjects, and their ratios.

use serde::Serialize;

use crate::chart::heat::{Heat, Hues, Row, Square};
use crate::chart::{Bar, Bars, Reading, Screen, Tone};
use crate::number;

/// The farthest ratio that has a colour of its own: one outlier must not make all others pale.
const FAR: f64 = 4.0;

/// A drawing for a wide page and for a narrow one: the style sheet shows one of them.
#[derive(Debug, Clone, Serialize)]
pub struct Drawing {
    /// For a laptop.
    pub wide: String,
    /// For a phone, or one of several panels.
    pub narrow: String,
}

/// How a subject compares with the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The subject that others are compared with.
    Baseline,
    /// The best, or level with it.
    Best,
    /// Neither.
    Other,
}

/// A subject's figure.
#[derive(Debug, Clone)]
pub struct SubjectFigure {
    /// The subject.
    pub name: String,
    /// The figure, and the ends of what was measured.
    pub value: Option<(f64, (f64, f64))>,
    /// How it compares.
    pub standing: Standing,
}

/// A ratio above 1 where the subject is better.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RelativeFigure {
    /// The ratio.
    pub ratio: f64,
    /// Whether it is more than chance.
    pub is_sure: bool,
}

/// A bar for each subject, with the ends of what was measured.
pub fn bars(description: &str, unit: &str, subjects: &[SubjectFigure]) -> Drawing {
    let bar = |subject: &SubjectFigure| Bar {
        heading: None,
        name: subject.name.clone(),
        reading: match subject.value {
            Some((value, ends)) => Reading::Value { value, interval: Some(ends) },
            None => Reading::Missing("not measured".to_owned()),
        },
        ratio: String::new(),
        ratio_interval: String::new(),
        tone: match subject.standing {
            Standing::Baseline => Tone::Baseline,
            Standing::Best => Tone::Better,
            Standing::Other => Tone::Level,
        },
        limit: None,
        paper_figures: Vec::new(),
    };
    let chart = Bars {
        description: description.to_owned(),
        unit: unit.to_owned(),
        aside: false,
        bars: subjects.iter().map(bar).collect(),
    };
    Drawing { wide: chart.draw(Screen::Wide), narrow: chart.draw(Screen::Narrow) }
}

/// A table of ratios: a row each, with a square for every column.
pub fn ratios(
    description: &str,
    columns: &[String],
    rows: &[(String, Vec<Option<RelativeFigure>>)],
) -> Drawing {
    let square = |(column, compared): (&String, &Option<RelativeFigure>)| match compared {
        Some(RelativeFigure { ratio, is_sure }) => Square::Value {
            value: ratio.clamp(1.0 / FAR, FAR),
            words: format!("{}×", number::plain(*ratio)),
            is_sure: *is_sure,
            title: format!("{column}: {}×", number::plain(*ratio)),
        },
        None => Square::Missing("not measured, or no ratio".to_owned()),
    };
    let row = |(name, squares): &(String, Vec<Option<RelativeFigure>>)| Row {
        name: name.clone(),
        note: String::new(),
        squares: columns.iter().zip(squares).map(square).collect(),
    };
    let chart = Heat {
        description: description.to_owned(),
        along: String::new(),
        columns: columns.to_vec(),
        rows: rows.iter().map(row).collect(),
        hues: Hues::AroundOne,
    };
    Drawing { wide: chart.draw(Screen::Wide), narrow: chart.draw(Screen::Narrow) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subject_has_its_mark() {
        let subject =
            |name: &str, value, standing| SubjectFigure { name: name.to_owned(), value, standing };
        let drawn = bars(
            "spins",
            "spins/s",
            &[
                subject("one", Some((4.0, (3.0, 5.0))), Standing::Baseline),
                subject("two", None, Standing::Other),
                subject("three", Some((8.0, (8.0, 8.0))), Standing::Best),
            ],
        );
        for part in ["one", "two", "three", "not measured", "bar better", "bar baseline"] {
            assert!(drawn.wide.contains(part) && drawn.narrow.contains(part), "{part}");
        }
    }

    #[test]
    fn a_far_ratio_leaves_the_others_their_colour() {
        let compared = |ratio| Some(RelativeFigure { ratio, is_sure: true });
        let rows = [("waits".to_owned(), vec![compared(2.0), compared(900.0), None])];
        let names = ["a", "b", "c"].map(str::to_owned);
        let drawn = ratios("waits", &names, &rows).wide;
        for part in ["900×", "2.00×", "heat up2", "heat up4", "heat none"] {
            assert!(drawn.contains(part), "{part}: {drawn}");
        }
    }
}
