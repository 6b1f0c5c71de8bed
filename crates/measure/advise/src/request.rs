//! A question about a workload, and the study that asks it.

use std::fmt;
use std::path::PathBuf;

use toml::{Table, Value};

use crate::comparison::LOOKS;
use crate::question::Question;

/// Whose work is done.
#[derive(Debug, Clone, PartialEq)]
pub enum Workload {
    /// Statements.
    Sql(String),
    /// A file of statements.
    File(PathBuf),
    /// TPC-H's queries, at this scale.
    Tpch(f64),
    /// Order entry, with this number of warehouses.
    OrderEntry(u32),
}

/// A question about a workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The question.
    pub question: Question,
    /// On which engine.
    pub engine: String,
    /// Of which workload.
    pub workload: Workload,
    /// The levels to compare, ascending; ignored by [`Question::Smt`].
    pub levels: Vec<u32>,
    /// Clients at work, unless they are the question.
    pub clients: u32,
    /// Seconds of a sample.
    pub seconds: f64,
    /// Whether siblings may be taken out of the machine.
    pub hotplug: bool,
}

/// Why there is no study for a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestError(String);

impl RequestError {
    pub(crate) fn new(says: impl Into<String>) -> RequestError {
        RequestError(says.into())
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RequestError {}

/// Levels more than this take hours to tell apart.
pub(crate) const LEVELS_MAX: usize = 16;
/// Of a sample, before anything is counted.
const WARMUP_S: f64 = 0.5;

impl Workload {
    /// In words.
    pub(crate) fn name(&self) -> String {
        match self {
            Workload::Sql(_) => "given statements".to_owned(),
            Workload::File(path) => path.display().to_string(),
            Workload::Tpch(scale) => format!("TPC-H at scale {scale}"),
            Workload::OrderEntry(warehouses) => format!("order entry, {warehouses} warehouses"),
        }
    }
}

impl Request {
    /// The study that asks it, as TOML.
    ///
    /// # Errors
    /// When there is nothing to compare.
    pub fn study(&self) -> Result<String, RequestError> {
        self.check()?;
        let mut study = table([
            ("title", self.title().into()),
            ("question", self.question.text().into()),
            ("engine", self.engine.as_str().into()),
            ("seed", 1.into()),
        ]);
        study.insert("workload".to_owned(), self.workload().into());
        match self.question {
            Question::Smt => {
                let off = if self.hotplug { "off-hotplug" } else { "unused-by-affinity" };
                let case = |name: &str, smt: &str| {
                    Value::from(table([("name", name.into()), ("smt", smt.into())]))
                };
                study.insert("cases".to_owned(), vec![case("off", off), case("on", "on")].into());
            }
            question => {
                let levels = self.levels.iter().map(|level| Value::from(i64::from(*level)));
                let axes = table([(question.axis(), levels.collect::<Vec<_>>().into())]);
                study.insert("axes".to_owned(), axes.into());
            }
        }
        study.insert("method".to_owned(), self.method().into());
        Ok(study.to_string())
    }

    fn check(&self) -> Result<(), RequestError> {
        let wrong = |says: String| Err(RequestError::new(says));
        if !(self.seconds.is_finite() && self.seconds > 0.0) {
            return wrong(format!("samples of {} s: give more than 0", self.seconds));
        }
        if self.question == Question::Smt {
            return Ok(());
        }
        let levels = &self.levels;
        if levels.len() < 2 || levels.len() > LEVELS_MAX {
            return wrong(format!(
                "{} levels: give 2 to {LEVELS_MAX}, such as --levels 1,2,4",
                levels.len()
            ));
        }
        if levels[0] == 0 || levels.windows(2).any(|pair| pair[0] >= pair[1]) {
            return wrong("levels ascend from 1, each once: --levels 1,2,4".to_owned());
        }
        Ok(())
    }

    fn title(&self) -> String {
        format!("{}: {}", self.question.title(), self.workload.name())
    }

    fn workload(&self) -> Table {
        let mut workload = match &self.workload {
            Workload::Sql(text) => {
                table([("workload", "sql".into()), ("sql", text.clone().into())])
            }
            Workload::File(path) => {
                table([("workload", "sql".into()), ("file", path.display().to_string().into())])
            }
            Workload::Tpch(scale) => table([
                ("workload", "tpch".into()),
                ("scale", (*scale).into()),
                ("query", "all".into()),
                ("order", "shuffled".into()),
            ]),
            Workload::OrderEntry(warehouses) => table([
                ("workload", "order-entry".into()),
                ("warehouses", i64::from(*warehouses).into()),
                ("pauses", "none".into()),
                ("isolation", "repeatable-read".into()),
            ]),
        };
        if self.question != Question::Clients {
            workload.insert("clients".to_owned(), i64::from(self.clients).into());
        }
        workload.insert("seconds".to_owned(), self.seconds.into());
        workload.insert("warmup_s".to_owned(), WARMUP_S.into());
        workload
    }

    fn method(&self) -> Table {
        let tuples = match self.workload {
            Workload::OrderEntry(_) => "transactions",
            _ => "queries",
        };
        let axis = self.question.axis();
        let lowest = match self.question {
            Question::Smt => Value::from("off"),
            _ => Value::from(i64::from(self.levels[0])),
        };
        // SMT has no order of levels to draw a line over.
        let charts = match self.question {
            Question::Smt => Vec::new(),
            _ => [None, Some("latency")].map(|measure| curves(axis, measure)).into(),
        };
        table([
            // The last look is the last round.
            ("repetitions", i64::from(LOOKS[LOOKS.len() - 1]).into()),
            ("warmup", 1.into()),
            // One block: every round has a sample of every level.
            ("blocks", Vec::<Value>::new().into()),
            ("baseline", table([(axis, lowest)]).into()),
            ("mean", "plain".into()),
            ("tuples", tuples.into()),
            ("charts", charts.into()),
        ])
    }
}

/// A chart over the levels: of throughput, or of a measure.
fn curves(axis: &str, measure: Option<&str>) -> Value {
    let mut chart = table([("kind", "curves".into()), ("x", axis.into())]);
    chart.extend(measure.map(|measure| ("measure".to_owned(), measure.into())));
    chart.into()
}

pub(crate) fn table<const N: usize>(entries: [(&str, Value); N]) -> Table {
    entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

#[cfg(test)]
mod tests {
    use workahead_study::run_plan::RunPlan;
    use workahead_study::spec::Spec;

    use super::*;

    fn request(question: Question) -> Request {
        Request {
            question,
            engine: "postgres".to_owned(),
            workload: Workload::Sql("select 'it''s \"quoted\"';".to_owned()),
            levels: vec![1, 2, 4],
            clients: 8,
            seconds: 2.0,
            hotplug: false,
        }
    }

    #[test]
    fn every_question_is_a_study_of_one_block() {
        for question in Question::ALL {
            let text = request(question).study().unwrap();
            let spec = Spec::parse(&question.study_id(), &text).unwrap();
            assert_eq!(Question::of_study(&spec.id), Some(question));
            let run_plan = RunPlan::new(&spec);
            let levels = if question == Question::Smt { 2 } else { 3 };
            assert_eq!((run_plan.blocks, run_plan.cells.len()), (1, levels), "{text}");
            let clients = run_plan.cells[0].integer("clients");
            let expected = if question == Question::Clients { 1 } else { 8 };
            assert_eq!(clients, Some(expected), "{text}");
        }
    }

    #[test]
    fn every_workload_is_one_that_a_study_has() {
        for workload in [
            Workload::File("a b.sql".into()),
            Workload::Tpch(0.1),
            Workload::OrderEntry(2),
            Workload::Sql("select 1".to_owned()),
        ] {
            let text = Request { workload, ..request(Question::Cores) }.study().unwrap();
            Spec::parse("advise-cores", &text).unwrap();
        }
    }

    #[test]
    fn nothing_to_compare_is_refused() {
        for levels in [vec![], vec![1], vec![2, 2], vec![0, 1], vec![4, 2], (1..20).collect()] {
            let wrong = Request { levels: levels.clone(), ..request(Question::Cores) }.study();
            assert!(wrong.unwrap_err().to_string().contains("--levels"), "{levels:?}");
        }
        let wrong = Request { seconds: f64::NAN, ..request(Question::Smt) }.study();
        assert!(wrong.is_err());
    }
}
