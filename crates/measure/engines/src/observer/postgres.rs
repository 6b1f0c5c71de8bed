//! PostgreSQL's counters and sessions (manual, "The Cumulative Statistics System").
//!
//! Every user may read the counts of transactions; the states of others' sessions only members of
//! `pg_read_all_stats`. Sessions hand their counts in once a second at most, so what a short window
//! counts may belong to the one before; from version 15 on, a transaction that touches no table is
//! handed in only with a later one that does.

use workahead_workloads::session::{Session, SessionError, StatementId, first};

use super::{Look, Reader, UnavailableSource, Wait};
use crate::connector::Connection;

/// Names of waits for the log begin with WAL, as files and as latches, in every version; the last
/// part of a commit is to wait for a synchronous standby.
const LOOK: &str = "
    SELECT (SELECT pg_catalog.sum(xact_commit + xact_rollback)::bigint
            FROM pg_catalog.pg_stat_database),
      (1000000 * pg_catalog.date_part('epoch', pg_catalog.pg_postmaster_start_time()))::bigint,
      pg_catalog.count(*) FILTER (WHERE state IS NULL),
      pg_catalog.count(*) FILTER (WHERE wait = 'Lock'),
      pg_catalog.count(*) FILTER (WHERE is_log),
      pg_catalog.count(*) FILTER (WHERE wait IN ('LWLock', 'BufferPin') AND NOT is_log),
      pg_catalog.count(*) FILTER (WHERE wait = 'IO' AND NOT is_log)
    FROM (SELECT state, CASE WHEN state = 'active' THEN wait_event_type END AS wait,
            coalesce(state = 'active' AND (wait_event ILIKE 'wal%' OR wait_event = 'SyncRep'),
                     false) AS is_log
          FROM pg_catalog.pg_stat_activity
          WHERE pid <> pg_catalog.pg_backend_pid() AND usesysid IS NOT NULL AND datid IS NOT NULL
            AND coalesce(backend_type, '') NOT LIKE 'autovacuum%') AS sessions";

/// One statement.
pub(super) struct Statements(StatementId);

impl Statements {
    pub(super) fn prepare(connection: &mut dyn Connection) -> Result<Self, SessionError> {
        connection.prepare(LOOK).map(Self)
    }
}

impl Reader for Statements {
    fn look(&self, connection: &mut dyn Connection) -> Result<Look, SessionError> {
        let session: &mut dyn Session = connection.session();
        let look = first(session, self.0, &[], |row| {
            let count = |column| row.int(column).map(|count| count as f64);
            Ok(Look {
                ended: row.int(0)?,
                started_us: row.int(1)?,
                hidden: row.int(2)?,
                waiting: vec![
                    (Wait::Lock, count(3)?),
                    (Wait::Log, count(4)?),
                    (Wait::Latch, count(5)?),
                    (Wait::Disk, count(6)?),
                ],
                row_locks_s: None,
            })
        })?;
        Ok(look.unwrap_or_default())
    }

    /// The transaction that reads it.
    fn own(&self) -> i64 {
        1
    }

    fn unseen(&self, look: &Look, user: &str) -> Option<UnavailableSource> {
        (look.hidden > 0).then(|| UnavailableSource {
            says: format!(
                "the waits of {} (GRANT pg_read_all_stats TO {})",
                if look.hidden == 1 {
                    "a session of another user".to_owned()
                } else {
                    format!("{} sessions of other users", look.hidden)
                },
                crate::postgres::identifier(user)
            ),
            hides_waits: true,
        })
    }
}
