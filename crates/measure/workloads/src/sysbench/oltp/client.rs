//! A client: draws a whole transaction, then runs it.

use super::super::Flavour;
use super::rows::{self, PAD_GROUPS, PAD_INSERTED};
use super::{Oltp, POINTS, RANGE_ROWS, Script};
use crate::checksum;
use crate::client::{AttemptResult, Client, Next, Workload as _};
use crate::random::Random;
use crate::session::{Row, Session, SessionError, StatementId, Value, undone};

/// The statements on a table, in the order in which a transaction uses them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ask {
    Point,
    Range,
    Sum,
    Ordered,
    Distinct,
    UpdateK,
    UpdateC,
    Delete,
    Insert,
}

impl Ask {
    const ALL: [Self; 9] = [
        Self::Point,
        Self::Range,
        Self::Sum,
        Self::Ordered,
        Self::Distinct,
        Self::UpdateK,
        Self::UpdateC,
        Self::Delete,
        Self::Insert,
    ];

    fn text(self, table: &str) -> String {
        match self {
            Self::Point => format!("select c from {table} where id = ?"),
            Self::Range => format!("select c from {table} where id between ? and ?"),
            Self::Sum => format!("select sum(k) from {table} where id between ? and ?"),
            Self::Ordered => {
                format!("select c from {table} where id between ? and ? order by c")
            }
            Self::Distinct => {
                format!("select distinct c from {table} where id between ? and ? order by c")
            }
            Self::UpdateK => format!("update {table} set k = k + 1 where id = ?"),
            Self::UpdateC => format!("update {table} set c = ? where id = ?"),
            Self::Delete => format!("delete from {table} where id = ?"),
            Self::Insert => format!("insert into {table} (id, k, c, pad) values (?, ?, ?, ?)"),
        }
    }
}

/// A statement to run: on which table, with which ids. Texts lie beside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step {
    ask: Ask,
    table: u32,
    id: u32,
    /// The range's end, or the new row's k.
    other: u32,
}

pub(super) struct Worker {
    workload: Oltp,
    random: Random,
    /// By table, then by statement.
    prepared: Vec<StatementId>,
    steps: Vec<Step>,
    c_updated: String,
    c_inserted: String,
    pad: String,
}

impl Worker {
    pub(super) fn new(workload: Oltp, random: Random) -> Self {
        Self {
            workload,
            random,
            prepared: Vec::new(),
            steps: Vec::new(),
            c_updated: String::new(),
            c_inserted: " ".to_owned(),
            pad: PAD_INSERTED.to_owned(),
        }
    }

    fn id(&mut self) -> u32 {
        let options = self.workload.options;
        options.distribution.row(&mut self.random, options.rows, options.flavour)
    }

    fn table(&mut self) -> u32 {
        self.random.within(1, i64::from(self.workload.options.tables)) as u32
    }

    fn points(&mut self, count: u32) {
        let table = self.table();
        for _ in 0..count {
            let id = self.id();
            self.steps.push(Step { ask: Ask::Point, table, id, other: 0 });
        }
    }

    fn range(&mut self, ask: Ask) {
        let (table, mut id) = (self.table(), self.id());
        let mut rows = RANGE_ROWS;
        if self.workload.options.flavour == Flavour::V04 {
            // 0.4 moves a range back into the table, and makes the distinct one a row longer.
            id = id.min(self.workload.options.rows.saturating_sub(RANGE_ROWS)).max(1);
            rows += u32::from(ask == Ask::Distinct);
        }
        self.steps.push(Step { ask, table, id, other: id + rows - 1 });
    }

    fn update(&mut self, ask: Ask) {
        let (table, id) = (self.table(), self.id());
        self.steps.push(Step { ask, table, id, other: 0 });
    }

    fn replace(&mut self) {
        let (table, id) = (self.table(), self.id());
        let mut k = 0;
        match self.workload.options.flavour {
            // "To make PostgreSQL work": who waits for this update then sees the new row.
            Flavour::V04 => self.steps.push(Step { ask: Ask::UpdateK, table, id, other: 0 }),
            Flavour::V10 => {
                k = self.id();
                rows::digits(&mut self.random, rows::C_GROUPS, &mut self.c_inserted);
                rows::digits(&mut self.random, PAD_GROUPS, &mut self.pad);
            }
        }
        self.steps.push(Step { ask: Ask::Delete, table, id, other: 0 });
        self.steps.push(Step { ask: Ask::Insert, table, id, other: k });
    }

    /// Its rows, and a sum over them where nothing changes them.
    fn run(&self, session: &mut dyn Session, step: Step) -> Result<(u64, u64), SessionError> {
        let statement = (step.table as usize - 1) * Ask::ALL.len() + step.ask as usize;
        let statement = self.prepared[statement];
        let [id, other] = [step.id, step.other].map(|number| Value::Int(i64::from(number)));
        let (mut sum, summed) = (0_u64, self.workload.is_read_only());
        let mut look = |row: Row<'_>| {
            if summed {
                sum = sum.wrapping_add(checksum::of_row(row)?);
            }
            Ok(())
        };
        let rows = match step.ask {
            Ask::Point => session.query(statement, &[id], &mut look),
            Ask::Range | Ask::Sum | Ask::Ordered | Ask::Distinct => {
                session.query(statement, &[id, other], &mut look)
            }
            Ask::UpdateK | Ask::Delete => session.execute(statement, &[id]),
            Ask::UpdateC => session.execute(statement, &[Value::Text(&self.c_updated), id]),
            Ask::Insert => {
                let (c, pad) = (Value::Text(&self.c_inserted), Value::Text(&self.pad));
                session.execute(statement, &[id, other, c, pad])
            }
        };
        Ok((rows?, sum))
    }
}

impl Client for Worker {
    fn connected(&mut self, session: &mut dyn Session) -> Result<(), SessionError> {
        self.prepared.clear();
        let dialect = session.dialect();
        for table in 1..=self.workload.options.tables {
            let name = self.workload.table_name(table);
            for ask in Ask::ALL {
                self.prepared.push(session.prepare(&dialect.placeholders(&ask.text(&name)))?);
            }
        }
        Ok(())
    }

    fn next(&mut self) -> Next {
        self.steps.clear();
        let script = self.workload.options.script;
        if script == Script::PointSelect {
            self.points(1);
            return Next::at_once(0);
        }
        self.points(POINTS);
        for ask in [Ask::Range, Ask::Sum, Ask::Ordered, Ask::Distinct] {
            self.range(ask);
        }
        if script == Script::ReadWrite {
            self.update(Ask::UpdateK);
            match self.workload.options.flavour {
                Flavour::V04 => rows::numbers(&mut self.random, &mut self.c_updated),
                Flavour::V10 => {
                    rows::digits(&mut self.random, rows::C_GROUPS, &mut self.c_updated);
                }
            }
            self.update(Ask::UpdateC);
            self.replace();
        }
        Next::at_once(0)
    }

    fn attempt(&mut self, session: &mut dyn Session) -> Result<AttemptResult, SessionError> {
        if self.prepared.is_empty() || self.steps.is_empty() {
            return Err(SessionError::Failed("a client must connect and draw first".to_owned()));
        }
        let whole = self.workload.options.script != Script::PointSelect;
        if whole {
            session.begin()?;
        }
        let run = |session: &mut dyn Session| {
            let mut did = (0, 0_u64);
            for step in &self.steps {
                let (rows, sum) = self.run(session, *step)?;
                did = (did.0 + rows, did.1.wrapping_add(sum));
            }
            if whole {
                session.commit()?;
            }
            Ok(did)
        };
        match run(session) {
            Ok((rows, checksum)) => {
                let statements = self.workload.counts().total();
                Ok(AttemptResult { rows, statements, checksum, rolled_back: false })
            }
            Err(error) if whole => Err(match undone(session, error) {
                // Two clients replaced the same row: sysbench ignores it and tries anew.
                SessionError::Duplicate(says) => SessionError::Retry(says),
                other => other,
            }),
            Err(error) => Err(error),
        }
    }
}
