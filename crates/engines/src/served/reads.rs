//! Rows that a server read from its tables while clients were measured, by its own counters: what a
//! condition more saves is seen here first (Chang 2013; S1.7).
//!
//! PostgreSQL's backends hand their counts in when they end (monitoring statistics, 28.2), so the
//! look afterwards waits for that. Rows of an index that was enough by itself are not counted.

use std::time::{Duration, Instant};

use workahead_workloads::session::{Dialect, Session, SessionError, first};

use crate::door::Door;

const OF_POSTGRES: &str = "select coalesce(sum(coalesce(seq_tup_read, 0) \
    + coalesce(idx_tup_fetch, 0)), 0)::bigint from pg_stat_user_tables";
const BUSY_POSTGRES: &str = "select count(*) from pg_stat_activity where pid <> pg_backend_pid() \
    and datname = current_database() and backend_type in ('client backend', 'parallel worker')";
const OF_MARIADB: &str = "select cast(variable_value as unsigned) \
    from information_schema.global_status where variable_name = 'ROWS_READ'";

/// Ours end within milliseconds; a server that was there before may have others, who never do.
const ENDING: Duration = Duration::from_millis(200);

/// The counters before.
pub(super) struct Reads(Option<u64>);

impl Reads {
    /// A server that refuses to tell counts for one that does not count.
    pub(super) fn begin(door: &dyn Door) -> Self {
        Self(look(door).unwrap_or_default())
    }

    /// What was read since; nothing where the database does not count.
    pub(super) fn end(self, door: &dyn Door) -> Option<u64> {
        let before = self.0?;
        let after = look(door).unwrap_or_default()?;
        Some(after.saturating_sub(before))
    }
}

fn look(door: &dyn Door) -> Result<Option<u64>, SessionError> {
    let mut connection = door.open()?;
    let session = connection.session();
    match session.dialect() {
        Dialect::Postgres => {
            let begun = Instant::now();
            while one(session, BUSY_POSTGRES)? > 0 && begun.elapsed() < ENDING {
                std::thread::sleep(Duration::from_millis(1));
            }
            one(session, OF_POSTGRES).map(Some)
        }
        Dialect::MariaDb => one(session, OF_MARIADB).map(Some),
        Dialect::DuckDb | Dialect::DataFusion => Ok(None),
    }
}

fn one(session: &mut dyn Session, text: &str) -> Result<u64, SessionError> {
    let statement = session.prepare(text)?;
    let found = first(session, statement, &[], |row| row.int(0))?;
    Ok(found.unwrap_or_default().unsigned_abs())
}
