//! The cells of a paper's table, judged by the rule of claims on values: ours over what is printed.
//!
//! ```text
//!   both figures, ours rounds to what is printed    within 10 %, of a printed 0 too
//!   both figures                                    the factor between them
//!   a model was given ours                          not judged: it would agree with itself
//! ```
//!
//! A table agrees where all of its cells are within 25 %, and has the size of the worst of them.

use workahead_study::verdict::{Judgement, Size, Word};

use super::{Cell, PaperTable, Row};
use crate::published::{PrintedFigure, significant};

/// Metrics that the models of the papers' machines are given, by these very tables: the mix of
/// instructions, and the data references of Keeton's table 12.
const INPUTS: [&str; 5] =
    ["load_share", "store_share", "branch_share", "uops_per_instruction", "l1d_apki"];

const INPUT: &str = "an input of the model, which is not judged";

impl PaperTable {
    /// With each cell judged that has a printed figure and one of ours; `modelled` says whether
    /// ours are of a modelled machine.
    #[must_use]
    pub fn judged(mut self, modelled: bool) -> PaperTable {
        for row in &mut self.rows {
            let metric = row.metric.as_deref();
            let is_input = modelled && metric.is_some_and(|metric| INPUTS.contains(&metric));
            for cell in row.cells.iter_mut().filter(|cell| cell.ours.is_some()) {
                match is_input {
                    true => {
                        let known = cell.instead.take().map(|instead| format!("{instead}; "));
                        cell.instead = Some(known.unwrap_or_default() + INPUT);
                    }
                    false => cell.size = factor(cell).map(|_| size(cell)),
                }
            }
        }
        self
    }

    /// Both words for its judged cells; none without any.
    #[must_use]
    pub fn verdict(&self) -> Option<Judgement> {
        verdict(self.rows.iter().map(|row| (self, row)))
    }
}

/// Both words for the judged cells of some rows, each with its table; none without any.
pub(crate) fn verdict<'a>(
    rows: impl Iterator<Item = (&'a PaperTable, &'a Row)>,
) -> Option<Judgement> {
    let mut judged: Vec<(&PaperTable, &Row, usize)> = Vec::new();
    let mut printed = 0;
    for (table, row) in rows {
        for (column, cell) in row.cells.iter().enumerate() {
            printed += usize::from(figure(cell).is_some());
            if cell.size.is_some() {
                judged.push((table, row, column));
            }
        }
    }
    let cell = |(_, row, column): &(&PaperTable, &'a Row, usize)| &row.cells[*column];
    let sizes = || judged.iter().filter_map(|one| cell(one).size);
    let near = sizes().filter(|size| *size <= Size::Within25).count();
    let all = judged.len();
    let by_factor = |one: &&(_, _, _), other: &&(_, _, _)| {
        let [one, other] = [one, other].map(|of| factor(cell(of)).unwrap_or(1.0));
        one.total_cmp(&other)
    };
    let farthest @ (table, row, column) = judged.iter().max_by(by_factor)?;
    let mut reason = format!("{near} of {all} cells within 25 %");
    if all < printed {
        reason.push_str(&format!(" (of {printed} that are printed)"));
    }
    if near < all {
        let Cell { ours, paper, .. } = cell(farthest);
        let ours = significant(ours.unwrap_or_default(), 3);
        let paper = paper.as_deref().unwrap_or_default();
        let name = format!("{}, {}", row.name, table.columns[*column]);
        reason.push_str(&format!("; farthest: {name}, {ours} for {paper}"));
    }
    let direction = if near == all { Word::Agrees } else { Word::Disagrees };
    Some(Judgement { direction, size: Size::worst(sizes()), reason })
}

/// Why cells with a printed figure are not judged, each reason once.
pub(crate) fn unjudged<'a>(rows: impl Iterator<Item = &'a Row>) -> Vec<&'a str> {
    let cells = rows.flat_map(|row| &row.cells);
    let mut found: Vec<&str> = Vec::new();
    for cell in cells.filter(|cell| cell.size.is_none() && figure(cell).is_some()) {
        let why = cell.why.as_deref().or(cell.instead.as_deref()).unwrap_or_default();
        if !why.is_empty() && !found.contains(&why) {
            found.push(why);
        }
    }
    found
}

/// The printed figure; none of words or of an empty cell.
fn figure(cell: &Cell) -> Option<PrintedFigure> {
    PrintedFigure::try_from(cell.paper.clone()?).ok()
}

fn size(cell: &Cell) -> Size {
    match (figure(cell), cell.ours) {
        (Some(paper), Some(ours)) if rounds_to(paper, ours) => Size::Within10,
        (Some(paper), Some(ours)) => Size::of_figures(paper.value, ours),
        _ => Size::NoFigure,
    }
}

/// How far ours is from the printed figure, to either side; none without both.
fn factor(cell: &Cell) -> Option<f64> {
    let (paper, ours) = (figure(cell)?, cell.ours?);
    match (ours / paper.value).max(paper.value / ours) {
        _ if rounds_to(paper, ours) => Some(1.0),
        factor if factor.is_nan() => Some(f64::INFINITY),
        factor => Some(factor),
    }
}

fn rounds_to(paper: PrintedFigure, ours: f64) -> bool {
    (paper.low()..=paper.high()).contains(&ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, metric: &str, cells: &[(&str, Option<f64>)]) -> Row {
        let cell = |(paper, ours): &(&str, Option<f64>)| Cell {
            paper: Some((*paper).to_owned()).filter(|paper| !paper.is_empty()),
            ours: *ours,
            why: ours.is_none().then(|| "no reason".to_owned()),
            noisy: false,
            instead: None,
            size: None,
        };
        let cells = cells.iter().map(cell).collect();
        Row { name: name.to_owned(), unit: "%".to_owned(), metric: Some(metric.to_owned()), cells }
    }

    fn table(rows: Vec<Row>) -> PaperTable {
        let names = ["DB", "OS"].map(str::to_owned).to_vec();
        let ledger = vec!["E2.2".to_owned()];
        let (id, title) = ("Table 10".to_owned(), "t".to_owned());
        PaperTable { id, title, ledger, columns: names, rows }
    }

    fn size_of(paper: &str, ours: f64) -> Option<Size> {
        let judged = table(vec![row("x", "cpi", &[(paper, Some(ours))])]).judged(false);
        judged.rows[0].cells[0].size
    }

    #[test]
    fn a_cell_is_judged_by_the_factor_to_what_is_printed() {
        assert_eq!(size_of("2.52", 2.7), Some(Size::Within10));
        assert_eq!(size_of("2.52", 3.1), Some(Size::Within25));
        assert_eq!(size_of("2.52", 1.3), Some(Size::Within2x));
        assert_eq!(size_of("2.52", 1.2), Some(Size::Beyond));
        // What rounds to it is no farther than the paper's own digits, and a 0 has no factor.
        assert_eq!(
            (size_of("1", 1.4), size_of("1", 1.6)),
            (Some(Size::Within10), Some(Size::Within2x))
        );
        assert_eq!(
            (size_of("0", 0.0), size_of("0", 0.49)),
            (Some(Size::Within10), Some(Size::Within10))
        );
        assert_eq!(
            (size_of("0", 0.6), size_of("0.4", 0.0)),
            (Some(Size::Beyond), Some(Size::Beyond))
        );
        assert_eq!(
            (size_of("n/a", 1.0), size_of("", 1.0), size_of("4-way", 4.0)),
            (None, None, None)
        );
    }

    #[test]
    fn a_table_counts_its_cells_and_names_the_farthest() {
        let rows = vec![
            row("CPI", "cpi", &[("2.52", Some(2.6)), ("6.41", None)]),
            row("Stalls", "stalled_share", &[("63", Some(70.0)), ("75", Some(30.0))]),
            row("Nothing", "cpi", &[("", Some(1.0)), ("n/a", Some(1.0))]),
        ];
        let said = table(rows).judged(false).verdict().unwrap();
        assert_eq!(said.words(), "disagrees, beyond");
        assert_eq!(
            said.reason,
            "2 of 3 cells within 25 % (of 4 that are printed); farthest: Stalls, OS, 30.0 for 75"
        );
        let near = vec![row("CPI", "cpi", &[("2.52", Some(2.6)), ("6.41", Some(7.5))])];
        let said = table(near).judged(false).verdict().unwrap();
        assert_eq!(
            (said.words().as_str(), said.reason.as_str()),
            ("agrees, within 25 %", "2 of 2 cells within 25 %")
        );
        let none = table(vec![row("CPI", "cpi", &[("2.52", None)])]).judged(false);
        assert_eq!(none.verdict(), None);
        assert_eq!(unjudged(none.rows.iter()), ["no reason"]);
    }

    /// A model that is given the paper's mix has it, which proves nothing.
    #[test]
    fn inputs_of_a_model_are_not_judged() {
        let rows = || vec![row("Loads", "load_share", &[("36", Some(36.0)), ("36", None)])];
        let modelled = table(rows()).judged(true);
        assert_eq!(modelled.verdict(), None);
        assert_eq!(modelled.rows[0].cells[0].instead.as_deref(), Some(INPUT));
        assert_eq!(unjudged(modelled.rows.iter()), [INPUT, "no reason"]);
        assert_eq!(table(rows()).judged(false).verdict().unwrap().words(), "agrees, within 10 %");
    }
}
