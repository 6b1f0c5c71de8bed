//! A query's answer, comparable between engines.
//!
//! Engines differ in the digits of divisions and averages (MariaDB keeps four more than it was
//! given, DuckDB takes floating point), in blanks after `char`, and in the order of rows that a
//! query leaves equal. Everything else must be the same. The specification's own rules of
//! validation (TPC-H 3.0.1, clause 2.1.3.5) allow a cent in sums and a hundredth in averages and
//! ratios; ours are narrower.

use std::cmp::Ordering;

use crate::checksum::Checksum;
use crate::client::AnswerSummary;
use crate::session::{AnswerLimit, Row, Session, SessionError, StatementId, Value, rows_within};

/// How far numbers may lie apart: absolutely, for the digits that MariaDB keeps of a division, and
/// relatively, for sums in floating point.
const APART: f64 = 1e-4;
const APART_OF_VALUE: f64 = 1e-9;

/// Rows in the order in which they came.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    rows: Vec<Vec<Cell>>,
}

#[derive(Debug, Clone, PartialEq)]
enum Cell {
    Null,
    Number(f64),
    Text(String),
}

impl Answer {
    /// The answer to a query without values.
    ///
    /// # Errors
    /// When it is longer than the limit, or a value is not of its type.
    pub(super) fn to(
        session: &mut dyn Session,
        query: StatementId,
        limit: AnswerLimit,
    ) -> Result<Self, SessionError> {
        let rows = rows_within(session, query, &[], limit, cells)?;
        Ok(Self { rows })
    }

    /// How many rows there are.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// In short. Numbers count with six digits: engines differ in those behind.
    #[must_use]
    pub fn answered(&self) -> AnswerSummary {
        let checksums = self.rows.iter().map(|row| {
            let mut checksum = Checksum::new();
            row.iter().for_each(|cell| cell.add_to(&mut checksum));
            checksum.value()
        });
        AnswerSummary {
            rows: self.rows.len() as u64,
            checksum: checksums.fold(0, u64::wrapping_add),
        }
    }

    /// The first difference, if there is one.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Option<String> {
        if self.rows.len() != other.rows.len() {
            return Some(format!("{} rows and {}", self.rows.len(), other.rows.len()));
        }
        if same(&self.rows, &other.rows) {
            return None;
        }
        let (one, two) = (self.sorted(), other.sorted());
        let differs = |(one, two): &(&Vec<Cell>, &Vec<Cell>)| !same_row(one, two);
        let (one, two) = one.iter().zip(&two).find(differs)?;
        Some(format!("{one:?} and {two:?}"))
    }

    /// Rows by their texts first: numbers may differ a little, and would order them otherwise.
    fn sorted(&self) -> Vec<Vec<Cell>> {
        let mut rows = self.rows.clone();
        rows.sort_by(|one, two| {
            let texts =
                |row: &[Cell]| row.iter().filter_map(Cell::text).collect::<Vec<_>>().concat();
            let numbers = || one.iter().zip(two).map(|(one, two)| one.compared(two));
            let by_number = || numbers().find(|order| order.is_ne()).unwrap_or(Ordering::Equal);
            texts(one).cmp(&texts(two)).then_with(by_number)
        });
        rows
    }
}

fn cells(row: Row<'_>) -> Result<Vec<Cell>, SessionError> {
    (0..row.columns()).map(|column| row.value(column).map(Cell::of)).collect()
}

fn same(one: &[Vec<Cell>], two: &[Vec<Cell>]) -> bool {
    one.iter().zip(two).all(|(one, two)| same_row(one, two))
}

fn same_row(one: &[Cell], two: &[Cell]) -> bool {
    one.len() == two.len() && one.iter().zip(two).all(|(one, two)| one.is(two))
}

impl Cell {
    fn of(value: Value<'_>) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Int(int) => Self::Number(int as f64),
            Value::Real(real) => Self::Number(real),
            Value::Decimal(decimal) => Self::Number(decimal.real()),
            Value::Text(text) => Self::of_text(text),
            Value::Date(date) => Self::Text(date.to_string()),
            // A day, which some engines widen when an interval was added.
            Value::Timestamp(moment) => {
                Self::Text(moment.to_string().trim_end_matches(" 00:00:00.000000").to_owned())
            }
        }
    }

    /// Text stands for any type where a server did not say which.
    fn of_text(text: &str) -> Self {
        let digits = text.starts_with(|first: char| first.is_ascii_digit() || first == '-');
        match text.parse() {
            Ok(number) if digits => Self::Number(number),
            _ => Self::Text(text.trim_end().to_owned()),
        }
    }

    fn add_to(&self, checksum: &mut Checksum) {
        match self {
            Self::Null => checksum.add(&[1]),
            // Plus nothing, so that nothing has no sign.
            Self::Number(number) => checksum.add(format!("{:.5e}", number + 0.0).as_bytes()),
            Self::Text(text) => checksum.add(text.as_bytes()),
        }
    }

    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    fn compared(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(one), Self::Number(two)) if !self.is(other) => one.total_cmp(two),
            _ => Ordering::Equal,
        }
    }

    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Number(one), Self::Number(two)) => {
                (one - two).abs() <= APART + APART_OF_VALUE * one.abs().max(two.abs())
            }
            _ => self == other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{Date, Decimal, Timestamp};

    fn answer(rows: &[&[Value<'_>]]) -> Answer {
        Answer { rows: rows.iter().map(|row| cells(Row::new(row)).unwrap()).collect() }
    }

    #[test]
    fn answers_agree_but_for_digits_blanks_and_order() {
        let text = Value::Text;
        let postgres = answer(&[&[text("A"), text("25.5000000001")], &[text("B  "), text("13")]]);
        let duckdb = answer(&[&[text("B"), Value::Int(13)], &[text("A"), Value::Real(25.5)]]);
        assert_eq!(postgres.difference(&duckdb), None);
        let day = answer(&[&[Value::Date(Date(0))], &[Value::Null]]);
        let moment = answer(&[&[Value::Timestamp(Timestamp(0))], &[Value::Null]]);
        assert_eq!(day.difference(&moment), None);
        assert_eq!(day.difference(&answer(&[&[text("1970-01-01")], &[Value::Null]])), None);
    }

    #[test]
    fn answers_that_agree_are_the_same_in_short() {
        let short = |rows: &[&[Value<'_>]]| answer(rows).answered();
        let (one, two) = ([Value::Text("A"), Value::Text("25.500000001")], [Value::Null]);
        let first = short(&[&one, &two]);
        assert_eq!(first, short(&[&two, &[Value::Text("A "), Value::Real(25.5)]]));
        assert_eq!(first.rows, 2);
        assert_ne!(first.checksum, short(&[&one, &[Value::Int(0)]]).checksum);
        assert_ne!(first.checksum, short(&[&[one[1], one[0]], &two]).checksum);
        assert_eq!(short(&[&[Value::Real(-0.0)]]), short(&[&[Value::Int(0)]]));
    }

    #[test]
    fn differences_are_reported() {
        let one = answer(&[&[Value::Text("A"), Value::Decimal(Decimal::cents(100))]]);
        for other in [
            answer(&[]),
            answer(&[&[Value::Text("A"), Value::Decimal(Decimal::cents(101))]]),
            answer(&[&[Value::Text("a"), Value::Int(1)]]),
            answer(&[&[Value::Text("A"), Value::Null]]),
            answer(&[&[Value::Text("A")]]),
        ] {
            assert!(one.difference(&other).is_some(), "{other:?}");
        }
        assert_eq!(one.rows(), 1);
    }
}
