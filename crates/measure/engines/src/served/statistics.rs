//! The server's own statistics while clients were measured: rows read from its tables, which an
//! additional condition reduces first (Chang 2013; S1.7), and CPU time by its own clock, which may
//! disagree with the system's (L1.11).
//!
//! PostgreSQL's backends hand their counts in when they end (monitoring statistics, 28.2), so the
//! second reading waits for that. Rows of index-only scans are not counted. PostgreSQL does not
//! report its CPU time; MariaDB does with `userstat`.

use std::time::{Duration, Instant};

use workahead_workloads::session::{Dialect, Session, SessionError, first};

use crate::connector::Connector;

const OF_POSTGRES: &str = "select coalesce(sum(coalesce(seq_tup_read, 0) \
    + coalesce(idx_tup_fetch, 0)), 0)::bigint from pg_stat_user_tables";
const BUSY_POSTGRES: &str = "select count(*) from pg_stat_activity where pid <> pg_backend_pid() \
    and datname = current_database() and backend_type in ('client backend', 'parallel worker')";
const OF_MARIADB: &str = "select cast(variable_value as unsigned) \
    from information_schema.global_status where variable_name = 'ROWS_READ'";
const CPU_OF_MARIADB: &str = "select cast(1000000 * variable_value as unsigned) \
    from information_schema.global_status where variable_name = 'CPU_TIME'";

/// Our clients end within milliseconds; those of others on a server that already ran may never end.
const ENDING: Duration = Duration::from_millis(200);

/// The counters at a moment.
#[derive(Default)]
struct Counters {
    rows: Option<u64>,
    cpu_us: Option<u64>,
}

/// The counters before.
pub(super) struct Statistics(Counters);

impl Statistics {
    /// A server that refuses them counts as one without statistics.
    pub(super) fn begin(connector: &dyn Connector) -> Self {
        Self(look(connector).unwrap_or_default())
    }

    /// The counts since the beginning, by name; empty where the database has none.
    pub(super) fn end(self, connector: &dyn Connector) -> Vec<(&'static str, f64)> {
        let after = look(connector).unwrap_or_default();
        let since = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?) as f64);
        let rows = since(after.rows, self.0.rows);
        let cpu_us = since(after.cpu_us, self.0.cpu_us).filter(|cpu_us| *cpu_us > 0.0);
        let rows = rows.map(|rows| ("rows_read", rows));
        rows.into_iter().chain(cpu_us.map(|cpu_us| ("engine_cpu_s", cpu_us * 1e-6))).collect()
    }
}

fn look(connector: &dyn Connector) -> Result<Counters, SessionError> {
    let mut connection = connector.open()?;
    let session = connection.session();
    Ok(match session.dialect() {
        Dialect::Postgres => {
            let begun = Instant::now();
            while one(session, BUSY_POSTGRES)? > 0 && begun.elapsed() < ENDING {
                std::thread::sleep(Duration::from_millis(1));
            }
            Counters { rows: Some(one(session, OF_POSTGRES)?), cpu_us: None }
        }
        Dialect::MariaDb => Counters {
            rows: Some(one(session, OF_MARIADB)?),
            cpu_us: Some(one(session, CPU_OF_MARIADB)?),
        },
        Dialect::DuckDb | Dialect::DataFusion => Counters::default(),
    })
}

fn one(session: &mut dyn Session, text: &str) -> Result<u64, SessionError> {
    let statement = session.prepare(text)?;
    let found = first(session, statement, &[], |row| row.int(0))?;
    Ok(found.unwrap_or_default().unsigned_abs())
}
