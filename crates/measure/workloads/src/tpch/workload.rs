//! The queries as a workload of a database: derived from TPC-H, and not its power or throughput
//! test.
//!
//! The texts are the same in all four dialects; what an engine answers first is kept, compared with
//! what it answers later and to other clients, and can be compared with another engine's
//! ([`Queries::answers`]).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Decimal128Type, Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;

use super::{Answer, Layout, Part, QUERIES, Table, Tpch, correlated_query, query, schema};
use crate::WorkloadError;
use crate::client::{
    self, AnswerSummary, AttemptResult, Client, Condition, ExplainRequest, Moment, Next, Order,
    Outcome, RowSink, Workload,
};
use crate::cycle::Cycle;
use crate::random::Random;
use crate::session::{
    AnswerLimit, Date, Decimal, Dialect, Session, SessionError, StatementId, Value,
};

/// Stream of the seed.
const CLIENTS: u32 = 0x0000_0c01;
/// Rows made at a time.
const BATCH_ROWS: usize = 8192;

/// Whose texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Texts {
    /// The specification's.
    AsSpecified,
    /// With the bounds on dates that follow from others.
    DateCorrelated,
}

/// Which queries, on what.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The data set.
    pub tpch: Tpch,
    /// In which order lineitem lies.
    pub layout: Layout,
    /// Queries by their numbers, from 1.
    pub numbers: Vec<usize>,
    /// Whose texts.
    pub texts: Texts,
    /// In which order clients ask them.
    pub order: Order,
    /// Determines that order.
    pub seed: u64,
}

impl Options {
    /// All queries as specified, in their order, on a data set as specified.
    #[must_use]
    pub fn of(tpch: Tpch) -> Self {
        Self {
            tpch,
            layout: Layout::ByKey,
            numbers: (1..=QUERIES).collect(),
            texts: Texts::AsSpecified,
            order: Order::AsWritten,
            seed: 1,
        }
    }
}

/// Some of the queries, on tables of one scale.
#[derive(Debug, Clone)]
pub struct Queries {
    options: Arc<Options>,
    texts: Arc<Vec<Cow<'static, str>>>,
    answers: Arc<Mutex<BTreeMap<usize, FirstAnswer>>>,
}

/// The first answer, and how a later answer differed.
#[derive(Debug, Clone)]
struct FirstAnswer {
    answer: Answer,
    difference: Option<String>,
}

impl Queries {
    /// The workload of these options.
    ///
    /// # Errors
    /// When there is no query, or a number that no query has.
    pub fn new(options: Options) -> Result<Self, WorkloadError> {
        if options.numbers.is_empty() {
            return Err(WorkloadError::Nothing("query"));
        }
        let text = |number: &usize| {
            let text = match options.texts {
                Texts::AsSpecified => query(*number).map(Cow::Borrowed),
                Texts::DateCorrelated => correlated_query(*number),
            };
            text.ok_or(WorkloadError::UnknownQuery { number: *number, queries: QUERIES })
        };
        let texts = options.numbers.iter().map(text).collect::<Result<Vec<_>, _>>()?;
        let (options, texts) = (Arc::new(options), Arc::new(texts));
        Ok(Self { options, texts, answers: Arc::default() })
    }

    /// Its options.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The first answers, by the number of the query.
    #[must_use]
    pub fn answers(&self) -> BTreeMap<usize, Answer> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.iter().map(|(number, answered)| (*number, answered.answer.clone())).collect()
    }
}

impl Workload for Queries {
    fn name(&self) -> &'static str {
        "tpch"
    }

    fn kinds(&self) -> Vec<String> {
        self.options.numbers.iter().map(|number| format!("q{number:02}")).collect()
    }

    fn tables(&self, dialect: Dialect) -> Result<Vec<client::Table>, SessionError> {
        let Options { tpch, layout, .. } = *self.options;
        Ok(Table::ALL.map(|table| schema::table(tpch, table, layout, dialect)).to_vec())
    }

    fn rows(&self, table: usize, sink: RowSink<'_>) -> Result<(), SessionError> {
        let mut batches = self.options.tpch.batches(Table::ALL[table], Part::WHOLE, BATCH_ROWS);
        batches.try_for_each(|batch| pour(&batch, sink))
    }

    fn client(&self, number: u32) -> Box<dyn Client> {
        let random = Random::new(self.options.seed, CLIENTS, number);
        let cycle = Cycle::new(self.options.order, random);
        Box::new(QueryClient { queries: self.clone(), cycle, prepared: Vec::new(), current: None })
    }

    fn explained(&self, _dialect: Dialect) -> Result<Vec<ExplainRequest>, SessionError> {
        let explained = |(name, text): (String, &Cow<'static, str>)| ExplainRequest {
            name,
            settings: Vec::new(),
            text: text.to_string(),
        };
        Ok(self.kinds().into_iter().zip(&*self.texts).map(explained).collect())
    }

    /// Nobody writes.
    fn reset(&self, _dialect: Dialect) -> Option<Vec<String>> {
        Some(Vec::new())
    }

    /// Of one query; of several, which of them were run depends on the time.
    fn answer(&self) -> Option<AnswerSummary> {
        let [number] = self.options.numbers.as_slice() else { return None };
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.get(number).map(|answered| answered.answer.answered())
    }

    fn check(
        &self,
        _session: &mut dyn Session,
        when: Moment,
    ) -> Result<Vec<Condition>, SessionError> {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if when == Moment::Loaded {
            answers.clear();
        }
        let condition = |(number, answered): (&usize, &FirstAnswer)| Condition {
            name: format!("q{number:02}"),
            says: "it answers the same every time".to_owned(),
            outcome: match &answered.difference {
                None => Outcome::Holds,
                Some(difference) => Outcome::Broken(difference.clone()),
            },
        };
        Ok(answers.iter().map(condition).collect())
    }
}

/// A client.
struct QueryClient {
    queries: Queries,
    cycle: Cycle,
    prepared: Vec<StatementId>,
    current: Option<usize>,
}

impl Client for QueryClient {
    fn connected(&mut self, session: &mut dyn Session) -> Result<(), SessionError> {
        let texts = self.queries.texts.iter();
        self.prepared = texts.map(|text| session.prepare(text)).collect::<Result<_, _>>()?;
        Ok(())
    }

    fn next(&mut self) -> Next {
        self.current = self.cycle.next(self.queries.texts.len());
        Next::at_once(self.current.unwrap_or_default())
    }

    fn attempt(&mut self, session: &mut dyn Session) -> Result<AttemptResult, SessionError> {
        let prepared = |index: usize| Some((index, *self.prepared.get(index)?));
        let Some((index, statement)) = self.current.and_then(prepared) else {
            return Err(SessionError::Failed("a client must connect and draw first".to_owned()));
        };
        let answer = Answer::to(session, statement, answer_limit(self.queries.options.tpch))?;
        let rows = answer.rows() as u64;
        let number = self.queries.options.numbers[index];
        let mut answers = self.queries.answers.lock().unwrap_or_else(PoisonError::into_inner);
        match answers.get_mut(&number) {
            None => {
                answers.insert(number, FirstAnswer { answer, difference: None });
            }
            Some(answered) if answered.difference.is_none() => {
                answered.difference = answered.answer.difference(&answer);
            }
            Some(_) => {}
        }
        Ok(AttemptResult { rows, statements: 1, ..AttemptResult::default() })
    }
}

/// The longest right answer of a query. Q16 has a row at most for each of 24 brands, 145 types and
/// 8 sizes; Q11 fewer than 10,000, each more than a ten thousandth of their sum; Q20 one at most
/// for each supplier. Rows of Q2 and Q10, the widest, have less than half a KiB.
fn answer_limit(tpch: Tpch) -> AnswerLimit {
    let rows = (tpch.rows(Table::Supplier) as usize).max(24 * 145 * 8);
    AnswerLimit { rows, bytes: rows << 10 }
}

/// Hands the rows of a batch on.
fn pour(batch: &RecordBatch, sink: RowSink<'_>) -> Result<(), SessionError> {
    let mut values = Vec::with_capacity(batch.num_columns());
    for row in 0..batch.num_rows() {
        values.clear();
        values.extend(batch.columns().iter().map(|column| value(column, row)));
        sink(&values)?;
    }
    Ok(())
}

/// A value of a column, of the types that TPC-H has.
fn value(column: &dyn Array, row: usize) -> Value<'_> {
    match column.data_type() {
        DataType::Int64 => Value::Int(column.as_primitive::<Int64Type>().value(row)),
        DataType::Int32 => Value::Int(column.as_primitive::<Int32Type>().value(row).into()),
        DataType::Decimal128(..) => {
            // Fifteen digits at most.
            let cents = column.as_primitive::<Decimal128Type>().value(row) as i64;
            Value::Decimal(Decimal::cents(cents))
        }
        DataType::Date32 => Value::Date(Date(column.as_primitive::<Date32Type>().value(row))),
        _ => Value::Text(column.as_string_view().value(row)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::recorder::{self, Recorder};

    #[test]
    fn rows_are_those_of_the_batches() {
        let tpch = Tpch::new(0.001).unwrap();
        let queries = Queries::new(Options::of(tpch)).unwrap();
        let mut nations = Vec::new();
        let pour = &mut |row: &[Value<'_>]| {
            nations.push(format!("{row:?}"));
            Ok(())
        };
        queries.rows(1, pour).unwrap();
        assert_eq!(nations.len(), 25);
        assert!(nations[0].starts_with("[Int(0), Text(\"ALGERIA\"), Int(0), Text("));
        let mut first = None;
        let failed = queries.rows(7, &mut |row| {
            first = Some(format!("{row:?}"));
            Err(SessionError::Failed("disk full".to_owned()))
        });
        assert!(failed.is_err());
        let first = first.unwrap();
        assert!(
            first.contains("Date(Date(") && first.contains("Decimal { units: 1700, scale: 2 }")
        );
    }

    #[test]
    fn queries_that_are_none_are_refused() {
        let tpch = Tpch::new(1.0).unwrap();
        for wrong in [vec![], vec![0], vec![1, 23]] {
            for texts in [Texts::AsSpecified, Texts::DateCorrelated] {
                let numbers = wrong.clone();
                assert!(Queries::new(Options { numbers, texts, ..Options::of(tpch) }).is_err());
            }
        }
    }

    #[test]
    fn an_answer_that_is_longer_than_any_right_one_is_refused() {
        let of = |scale| answer_limit(Tpch::new(scale).unwrap()).rows;
        assert_eq!((of(0.01), of(1.0), of(10.0)), (27_840, 27_840, 100_000));
        let tpch = Tpch::new(0.01).unwrap();
        let queries = Queries::new(Options { numbers: vec![16], ..Options::of(tpch) }).unwrap();
        let mut session =
            Recorder::new(Dialect::Postgres, |_| Ok(vec![vec![Value::Int(5)]; 30_000]));
        let mut client = queries.client(0);
        client.connected(&mut session).unwrap();
        client.next();
        let refused = client.attempt(&mut session).unwrap_err();
        assert!(matches!(refused, SessionError::Gone(_)), "{refused}");
        assert!(refused.to_string().contains("more than 27840 rows"), "{refused}");
        assert!(queries.answers().is_empty());
    }

    #[test]
    fn an_answer_that_changes_is_found() {
        let tpch = Tpch::new(1.0).unwrap();
        let queries = Queries::new(Options { numbers: vec![6, 14], ..Options::of(tpch) }).unwrap();
        assert_eq!(queries.kinds(), ["q06", "q14"]);
        let mut answered = 0;
        let mut session = Recorder::new(Dialect::DuckDb, move |request| {
            answered += i64::from(matches!(request, recorder::Request::Statement(..)));
            // The third is the first query's second time.
            Ok(vec![vec![Value::Int(if answered == 3 { 7 } else { 5 })]])
        });
        let mut client = queries.client(0);
        client.connected(&mut session).unwrap();
        for _ in 0..4 {
            client.next();
            client.attempt(&mut session).unwrap();
        }
        let conditions = queries.check(&mut session, Moment::Drained).unwrap();
        assert!(matches!(conditions[0].outcome, Outcome::Broken(_)));
        assert_eq!(conditions[1].outcome, Outcome::Holds);
        assert_eq!(queries.answers()[&14].rows(), 1);
        assert_eq!(queries.answer(), None, "which of two were run depends on the time");
    }
}
