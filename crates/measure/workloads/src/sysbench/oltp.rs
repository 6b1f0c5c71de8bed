//! The OLTP program: point reads, ranges, and a few changes that leave the table its size.
//!
//! ```text
//!                   0.4 "advanced transactional"      1.0 `oltp_read_write`
//! BEGIN                                        1                         1   other
//! select c … id = ?                           10                        10   read
//! four ranges: c, sum(k), order by, distinct   4                         4   read
//! update k, update c                           2                         2   write
//! update k of the row to be deleted            1                         –   write
//! delete, insert of the same id                2                         2   write
//! COMMIT                                       1                         1   other
//! ```
//!
//! 21 and 20 statements, of which sysbench prints 14 as read, 5 or 4 as write and 2 as other. In
//! 0.4 all rows look alike and ranges end with the table (its distinct range is a row longer); in
//! 1.0 rows are random, ranges may run over the end, and there may be several tables. What races of
//! delete and insert break, 1.0 ignores and tries anew: here it is tried again with the same input.

mod client;
mod rows;
#[cfg(test)]
mod tests;

use super::Flavour;
use super::distribution::Distribution;
use crate::WorkloadError;
use crate::client::{Client, Condition, Moment, Outcome, RowSink, Table, Workload};
use crate::random::Random;
use crate::session::{Dialect, Session, SessionError, first};

/// Streams of the seed: clients have one each, tables another.
const CLIENTS: u32 = 0x0058_0001;
const TABLES: u32 = 0x0058_0002;

/// Which transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Script {
    /// Everything above.
    ReadWrite,
    /// Without the changes (`oltp_read_only`).
    ReadOnly,
    /// One read of one row, without a transaction (`oltp_point_select`, `--oltp-test-mode=simple`).
    PointSelect,
}

/// Sizes and form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Which sysbench.
    pub flavour: Flavour,
    /// Which transactions.
    pub script: Script,
    /// Tables; 0.4 has one.
    pub tables: u32,
    /// Rows of a table.
    pub rows: u32,
    /// Which rows are requested.
    pub distribution: Distribution,
    /// Determines the rows and what clients draw.
    pub seed: u64,
}

impl Options {
    /// sysbench's own defaults.
    #[must_use]
    pub fn of(flavour: Flavour) -> Self {
        Self {
            flavour,
            script: Script::ReadWrite,
            tables: 1,
            rows: 10_000,
            distribution: Distribution::Special,
            seed: 1,
        }
    }
}

/// Statements of a transaction, as sysbench prints them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Selects.
    pub read: u32,
    /// Updates, deletes, inserts.
    pub write: u32,
    /// Beginnings and ends.
    pub other: u32,
}

impl Counts {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u32 {
        self.read + self.write + self.other
    }
}

/// Rows that a range asks for.
const RANGE_ROWS: u32 = 100;
/// Reads of one row in a transaction.
const POINTS: u32 = 10;
/// More would only be the same again.
const TABLES_MAX: u32 = 1_000;

/// The workload.
#[derive(Debug, Clone, Copy)]
pub struct Oltp {
    options: Options,
}

impl Oltp {
    /// The workload of these options.
    ///
    /// # Errors
    /// When there would be no row, or more tables than the flavour has.
    pub fn new(options: Options) -> Result<Self, WorkloadError> {
        let tables_max = if options.flavour == Flavour::V04 { 1 } else { TABLES_MAX };
        if !(1..=tables_max).contains(&options.tables) {
            let flavour = options.flavour.name();
            return Err(WorkloadError::Tables { tables: options.tables, tables_max, flavour });
        }
        if options.rows == 0 || i32::try_from(options.rows).is_err() {
            return Err(WorkloadError::Rows(options.rows));
        }
        Ok(Self { options })
    }

    /// Its options.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Statements of a transaction.
    #[must_use]
    pub fn counts(&self) -> Counts {
        match (self.options.script, self.options.flavour) {
            (Script::ReadWrite, Flavour::V04) => Counts { read: 14, write: 5, other: 2 },
            (Script::ReadWrite, Flavour::V10) => Counts { read: 14, write: 4, other: 2 },
            (Script::ReadOnly, _) => Counts { read: 14, write: 0, other: 2 },
            (Script::PointSelect, _) => Counts { read: 1, write: 0, other: 0 },
        }
    }

    /// The name of a table, from 1.
    fn table_name(&self, table: u32) -> String {
        match self.options.flavour {
            Flavour::V04 => "sbtest".to_owned(),
            Flavour::V10 => format!("sbtest{table}"),
        }
    }
}

impl Workload for Oltp {
    fn name(&self) -> &'static str {
        "sysbench-oltp"
    }

    fn kinds(&self) -> Vec<String> {
        let kind = match self.options.script {
            Script::ReadWrite => "read-write",
            Script::ReadOnly => "read-only",
            Script::PointSelect => "point-select",
        };
        vec![kind.to_owned()]
    }

    fn tables(&self, dialect: Dialect) -> Result<Vec<Table>, SessionError> {
        let end = match dialect {
            Dialect::MariaDb => " engine = InnoDB default charset = latin1",
            _ => "",
        };
        let table = |number| {
            let name = self.table_name(number);
            Table {
                create: format!(
                    "create table {name} (id int not null primary key, k int default 0 not null, \
                     c char(120) default '' not null, pad char(60) default '' not null){end}"
                ),
                finish: vec![format!("create index k_{number} on {name} (k)")],
                columns: ["id", "k", "c", "pad"].map(str::to_owned).to_vec(),
                name,
            }
        };
        Ok((1..=self.options.tables).map(table).collect())
    }

    fn rows(&self, table: usize, sink: RowSink<'_>) -> Result<(), SessionError> {
        rows::pour(&self.options, table as u32, sink)
    }

    fn client(&self, number: u32) -> Box<dyn Client> {
        Box::new(client::Worker::new(*self, Random::new(self.options.seed, CLIENTS, number)))
    }

    fn reset(&self, _dialect: Dialect) -> Option<Vec<String>> {
        // A copy is less work than finding what changed.
        self.is_read_only().then(Vec::new)
    }

    fn is_read_only(&self) -> bool {
        self.options.script != Script::ReadWrite
    }

    /// Every transaction enters the row that it deleted: the ids stay whole.
    fn check(
        &self,
        session: &mut dyn Session,
        _when: Moment,
    ) -> Result<Vec<Condition>, SessionError> {
        let look = |table| {
            let name = self.table_name(table);
            let text = format!("select count(*), min(id), max(id) from {name}");
            let statement = session.prepare(&text)?;
            let found = first(session, statement, &[], |row| {
                let ends = if row.int(0)? == 0 { (0, 0) } else { (row.int(1)?, row.int(2)?) };
                Ok((row.int(0)?, ends))
            })?;
            let rows = i64::from(self.options.rows);
            Ok(Condition {
                says: format!("the ids of {name} are 1 to {rows}, each once"),
                outcome: match found {
                    Some(found) if found == (rows, (1, rows)) => Outcome::Holds,
                    found => Outcome::Broken(format!("rows, least and largest id: {found:?}")),
                },
                name,
            })
        };
        (1..=self.options.tables).map(look).collect()
    }
}
