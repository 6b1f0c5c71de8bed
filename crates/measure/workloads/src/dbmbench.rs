//! Micro-benchmarks after DBmbench: two tables, three queries of a set selectivity.
//!
//! DBmbench (Shao, Ailamaki, Falsafi, CASCON 2005) stands in for TPC-C by a short aggregate through
//! an index (µTPC-C) and for TPC-H by a sort (µSS) and a nested-loop join (µNJ); the paper of 2008
//! (Hassanein et al.) runs them under SMT. Neither gives all sizes; ours, "DBmbench-like v1":
//!
//! ```text
//! T1  1,000,000 rows  a1 uniform in 1..=150,000   a2 in 1..=20,000   a3 uniform in 1..=50,000  pad
//! T2    150,000 rows  a1 = 1, 2, … (primary key)  a2, a3 as in T1                              pad
//!                     3 x 4 + 88 = 100 bytes a row; rows in random order of a2
//! µTPC-C  0.1 %  insert into result select avg(a3) from t1 where a2 > Lo and a2 < Hi
//! µSS      10 %  insert into result select distinct a3 from t1 where … order by a3
//! µNJ      20 %  insert into result select avg(t1.a3) from t1, t2 where t1.a1 = t2.a1 and …
//! ```
//!
//! Every value of a2 is as frequent as any other, not just as likely: the paper's sort takes in
//! 100,000 rows, and that is what 2,000 of 20,000 values then select. The index on T1.a2 is there
//! for µTPC-C only. Plans are the engine's own or pinned to the paper's ([`Plan`]).

mod answers;
mod client;
mod data;
mod plan;
#[cfg(test)]
mod tests;
mod texts;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::WorkloadError;
use crate::client::{Client, Condition, ExplainRequest, Moment, Outcome, RowSink, Table, Workload};
use crate::random::Random;
use crate::session::{Dialect, Session, SessionError, Value};
pub use answers::{Answer, Answers};
pub use plan::{Pinning, Plan, pinning};

/// One of the three queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Query {
    /// An average of few rows through an index.
    Utpcc,
    /// A sort without duplicates.
    Uss,
    /// A nested-loop join by an index.
    Unj,
}

impl Query {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Utpcc, Self::Uss, Self::Unj];

    /// Its name in studies.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Utpcc => "utpcc",
            Self::Uss => "uss",
            Self::Unj => "unj",
        }
    }

    /// The selectivity that represents the full benchmarks best (Hassanein et al. 2008, citing
    /// DBmbench).
    #[must_use]
    pub fn selectivity(self) -> f64 {
        match self {
            Self::Utpcc => 0.001,
            Self::Uss => 0.1,
            Self::Unj => 0.2,
        }
    }

    /// Whether the index on T1.a2 is there.
    #[must_use]
    pub fn has_index(self) -> bool {
        self == Self::Utpcc
    }
}

/// Where the answer goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// Into the table `result`, as in the paper. PostgreSQL runs no query that writes in parallel.
    IntoResult,
    /// To the client, which checks it: for parallel plans, and for engines that only read.
    ToClient,
}

/// Which rows are selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Bounds {
    /// From the middle on, always the same: `9,999 < a2 < 12,000` for 10 %, as in the paper.
    Fixed,
    /// Anywhere, drawn for each query.
    Random,
}

/// Sizes, query and form.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// The query.
    pub query: Query,
    /// Share of T1 that is selected.
    pub selectivity: f64,
    /// Rows of T1.
    pub t1_rows: u32,
    /// Rows of T2.
    pub t2_rows: u32,
    /// Values of a2, from 1.
    pub a2_values: u32,
    /// Values of a3, from 1.
    pub a3_values: u32,
    /// Where answers go.
    pub form: Form,
    /// Which rows are selected.
    pub bounds: Bounds,
    /// Whose plan.
    pub plan: Plan,
    /// Determines the rows and what clients draw.
    pub seed: u64,
}

impl Options {
    /// The query as in the paper, at its full size.
    #[must_use]
    pub fn of_paper(query: Query) -> Self {
        Self {
            query,
            selectivity: query.selectivity(),
            t1_rows: 1_000_000,
            t2_rows: 150_000,
            a2_values: 20_000,
            a3_values: 50_000,
            form: Form::IntoResult,
            bounds: Bounds::Fixed,
            plan: Plan::Paper,
            seed: 1,
        }
    }

    /// How many values of a2 are selected.
    fn width(&self) -> u32 {
        (self.selectivity * f64::from(self.a2_values)).round() as u32
    }
}

/// The bounds of a query; both are excluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Range {
    /// Below the first value.
    pub low: u32,
    /// Above the last value.
    pub high: u32,
}

/// The workload.
#[derive(Debug, Clone)]
pub struct Dbmbench {
    options: Options,
    shared: Arc<SharedState>,
}

/// The state that its clients share: the answers to expect, and what the server acknowledged.
#[derive(Debug, Default)]
struct SharedState {
    answers: OnceLock<Answers>,
    stored: Mutex<StoredResults>,
}

/// The content that `result` must have.
#[derive(Debug, Default, Clone, Copy)]
struct StoredResults {
    queries: u64,
    rows: u64,
    sum: f64,
    selected: u64,
    /// Rows of queries of which nobody knows whether they were committed.
    unsure: u64,
}

impl Dbmbench {
    /// The workload of these options.
    ///
    /// # Errors
    /// When a table would be empty or nothing or everything would be selected.
    pub fn new(options: Options) -> Result<Self, WorkloadError> {
        let Options { t1_rows, t2_rows, a2_values, a3_values, .. } = options;
        for (count, what) in [
            (t1_rows, "row of T1"),
            (t2_rows, "row of T2"),
            (a2_values, "value of a2"),
            (a3_values, "value of a3"),
        ] {
            if count == 0 {
                return Err(WorkloadError::Nothing(what));
            }
        }
        let width = options.width();
        if width == 0 || width > a2_values || t1_rows < a2_values {
            return Err(WorkloadError::Selectivity(options.selectivity, a2_values, t1_rows));
        }
        Ok(Self { options, shared: Arc::default() })
    }

    /// Its options.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The answers that its rows give; made once.
    #[must_use]
    pub fn answers(&self) -> &Answers {
        self.shared.answers.get_or_init(|| Answers::of(&self.options))
    }

    /// Statements that bring the index on T1.a2 to where the query wants it.
    #[must_use]
    pub fn arrange(&self, dialect: Dialect) -> Vec<String> {
        match (self.options.query.has_index(), dialect) {
            // No engine of this kind uses an index for it; DataFusion has none.
            (_, Dialect::DataFusion) => Vec::new(),
            (true, _) => vec!["create index if not exists t1_a2 on t1 (a2)".to_owned()],
            (false, Dialect::MariaDb) => vec!["drop index if exists t1_a2 on t1".to_owned()],
            (false, _) => vec!["drop index if exists t1_a2".to_owned()],
        }
    }

    /// The integers of T1's rows, a1, a2, a3, in the order in which they are loaded.
    pub fn t1_rows(&self) -> impl Iterator<Item = [u32; 3]> + use<> {
        data::t1_rows(&self.options)
    }

    /// The range that [`Bounds::Fixed`] selects.
    #[must_use]
    pub fn fixed_range(&self) -> Range {
        let (width, values) = (self.options.width(), self.options.a2_values);
        let low = (values / 2).saturating_sub(1).min(values - width);
        Range { low, high: low + width + 1 }
    }

    fn range(&self, random: &mut Random) -> Range {
        let (width, values) = (self.options.width(), self.options.a2_values);
        match self.options.bounds {
            Bounds::Fixed => self.fixed_range(),
            Bounds::Random => {
                let low = random.within(0, i64::from(values - width)) as u32;
                Range { low, high: low + width + 1 }
            }
        }
    }

    fn stored(&self) -> std::sync::MutexGuard<'_, StoredResults> {
        self.shared.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Workload for Dbmbench {
    fn name(&self) -> &'static str {
        "dbmbench"
    }

    fn kinds(&self) -> Vec<String> {
        vec![self.options.query.name().to_owned()]
    }

    fn tables(&self, dialect: Dialect) -> Result<Vec<Table>, SessionError> {
        let mut tables = texts::tables(dialect);
        tables[0].finish = self.arrange(dialect);
        Ok(tables)
    }

    fn rows(&self, table: usize, sink: RowSink<'_>) -> Result<(), SessionError> {
        match table {
            0 => data::t1(&self.options, sink),
            1 => data::t2(&self.options, sink),
            _ => Ok(()),
        }
    }

    /// Queries only add to `result`; the next one may want another index.
    fn reset(&self, dialect: Dialect) -> Option<Vec<String>> {
        *self.stored() = StoredResults::default();
        let mut texts = self.arrange(dialect);
        match dialect {
            // It empties none: a table that is made again is empty.
            Dialect::DataFusion => texts.extend(
                texts::tables(dialect)
                    .iter()
                    .filter(|table| table.name == "result")
                    .map(|table| table.create.replacen("create", "create or replace", 1)),
            ),
            _ => texts.push("truncate table result".to_owned()),
        }
        Some(texts)
    }

    fn client(&self, number: u32) -> Box<dyn Client> {
        Box::new(client::OneQuery::new(self.clone(), number))
    }

    fn explained(&self, dialect: Dialect) -> Result<Vec<ExplainRequest>, SessionError> {
        let range = self.range(&mut Random::new(self.options.seed, data::CLIENTS, 0));
        let pinned = pinning(dialect, self.options.query, self.options.plan)?;
        Ok(vec![ExplainRequest {
            name: self.options.query.name().to_owned(),
            settings: pinned.settings.iter().map(|text| (*text).to_owned()).collect(),
            text: texts::with_bounds(dialect, &self.options, range),
        }])
    }

    fn check(
        &self,
        session: &mut dyn Session,
        when: Moment,
    ) -> Result<Vec<Condition>, SessionError> {
        match when {
            Moment::Loaded => {
                *self.stored() = StoredResults::default();
                self.check_data(session)
            }
            Moment::Drained => self.check_results(session),
        }
    }
}

impl Dbmbench {
    /// Rows selected as requested, and one answer of the query, by a plain statement.
    fn check_data(&self, session: &mut dyn Session) -> Result<Vec<Condition>, SessionError> {
        let range = self.range(&mut Random::new(self.options.seed, data::CLIENTS, 0));
        let text = session.dialect().placeholders(texts::SELECTED);
        let statement = session.prepare(&text)?;
        let values = [range.low, range.high].map(|bound| Value::Int(i64::from(bound)));
        let selected = crate::session::first(session, statement, &values, |row| row.int(0))?;
        let selected = selected.unwrap_or(0).unsigned_abs();
        let answer = self.ask(session, range)?;
        let expected = self.answers().of_query(self.options.query, range);
        Ok(vec![
            self.selectivity(selected as f64 / f64::from(self.options.t1_rows)),
            Condition {
                name: "answer".to_owned(),
                says: "the query's answer follows from the generated rows".to_owned(),
                outcome: match answer.agrees(&expected) {
                    true => Outcome::Holds,
                    false => Outcome::Broken(format!("{answer:?} where {expected:?} is right")),
                },
            },
        ])
    }

    /// The answer of the query as the engine gives it to a client.
    fn ask(&self, session: &mut dyn Session, range: Range) -> Result<Answer, SessionError> {
        let options = Options { form: Form::ToClient, ..self.options };
        let text = session.dialect().placeholders(&texts::query(session.dialect(), &options));
        let statement = session.prepare(&text)?;
        client::ask(session, statement, self.options.query, range)
    }

    fn selectivity(&self, found: f64) -> Condition {
        let wanted = self.options.selectivity;
        let outcome = match (wanted * 0.9..=wanted * 1.1).contains(&found) {
            true => Outcome::Holds,
            false => Outcome::Broken(format!("{found:.6} of T1 where {wanted:.6} was requested")),
        };
        Condition {
            name: "selectivity".to_owned(),
            says: "the share of T1 that is selected is within a tenth of the requested
            share"
                .to_owned(),
            outcome,
        }
    }

    /// Checks the rows acknowledged to clients as stored, and their sum.
    fn check_results(&self, session: &mut dyn Session) -> Result<Vec<Condition>, SessionError> {
        let stored = *self.stored();
        let mut conditions = Vec::new();
        if stored.queries > 0 {
            let share = stored.selected as f64 / stored.queries as f64;
            conditions.push(self.selectivity(share / f64::from(self.options.t1_rows)));
        }
        if self.options.form == Form::ToClient {
            return Ok(conditions);
        }
        let statement = session.prepare(texts::STORED)?;
        let found = crate::session::first(session, statement, &[], |row| {
            Ok((row.int(0)?.unsigned_abs(), row.real(1)?))
        })?;
        let (rows, sum) = found.unwrap_or((0, 0.0));
        let counted = (stored.rows..=stored.rows + stored.unsure).contains(&rows);
        // An average may be rounded to four digits; the sum of an interrupted run is unknown.
        let near = rows != stored.rows || (sum - stored.sum).abs() <= 1e-4 * (rows as f64 + 1.0);
        conditions.push(Condition {
            name: "results".to_owned(),
            says: "every answer that was acknowledged is stored, and is right".to_owned(),
            outcome: match counted && near {
                true => Outcome::Holds,
                false => Outcome::Broken(format!(
                    "{rows} rows with the sum {sum}, where {} with the sum {} were acknowledged",
                    stored.rows, stored.sum,
                )),
            },
        });
        Ok(conditions)
    }
}
