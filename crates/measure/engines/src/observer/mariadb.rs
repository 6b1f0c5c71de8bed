//! The counters and sessions of MariaDB and MySQL (manual, "Server Status Variables",
//! "SHOW PROCESSLIST").
//!
//! Every user may read the counters, which are exact; the states of others' sessions only those
//! with the privilege `PROCESS`. A statement that waits for a lock of a row has the state of one
//! that runs, and InnoDB counts the time when the wait has ended. Latches and files are not shown.

use workahead_workloads::session::{SessionError, StatementId, first};

use super::{Look, Reader, UnavailableSource, Wait};
use crate::connector::Connection;

const COUNTERS: &str = "SHOW GLOBAL STATUS WHERE Variable_name IN \
    ('Questions', 'Uptime', 'Innodb_row_lock_time', 'Threads_connected')";

/// Sessions that are connected, of them those that wait for a lock of a table, and for the log:
/// the states of a commit and of the log for replicas.
const SESSIONS: &str = "
    SELECT COUNT(*),
      CAST(COALESCE(SUM(command <> 'Sleep' AND state LIKE 'Waiting for%lock%'), 0) AS SIGNED),
      CAST(COALESCE(SUM(command <> 'Sleep' AND (state LIKE '%commit%' OR state LIKE '%binlog%')),
                    0) AS SIGNED),
      CAST(1000000 * UNIX_TIMESTAMP() AS SIGNED)
    FROM information_schema.processlist
    WHERE command NOT IN ('Daemon', 'Binlog Dump', 'Binlog Dump GTID', 'Slave_IO', 'Slave_SQL',
      'Slave_worker') AND user <> 'event_scheduler' AND user <> 'system user'";

/// Two statements.
pub(super) struct Statements {
    counters: StatementId,
    sessions: StatementId,
}

impl Statements {
    pub(super) fn prepare(connection: &mut dyn Connection) -> Result<Self, SessionError> {
        Ok(Self {
            counters: connection.prepare(COUNTERS)?,
            sessions: connection.prepare(SESSIONS)?,
        })
    }

    fn read(&self, connection: &mut dyn Connection) -> Result<Look, SessionError> {
        let (mut look, mut uptime_s, mut connected) = (Look::default(), 0, 0);
        connection.session().query(self.counters, &[], &mut |row| {
            let value = row.text(1)?.parse::<i64>().unwrap_or_default();
            match row.text(0)?.to_ascii_lowercase().as_str() {
                "questions" => look.ended = value,
                "uptime" => uptime_s = value,
                "threads_connected" => connected = value,
                "innodb_row_lock_time" => look.row_locks_s = Some(value as f64 / 1e3),
                _ => {}
            }
            Ok(())
        })?;
        first(connection.session(), self.sessions, &[], |row| {
            look.hidden = connected.saturating_sub(row.int(0)?).max(0);
            look.waiting = vec![(Wait::Lock, row.int(1)? as f64), (Wait::Log, row.int(2)? as f64)];
            look.started_us = row.int(3)?.saturating_sub(uptime_s.saturating_mul(1_000_000));
            Ok(())
        })?;
        Ok(look)
    }
}

impl Reader for Statements {
    fn look(&self, connection: &mut dyn Connection) -> Result<Look, SessionError> {
        connection.session().begin()?;
        let look = self.read(connection)?;
        connection.session().rollback()?;
        Ok(look)
    }

    /// Begin, two statements, and rollback.
    fn own(&self) -> i64 {
        4
    }

    fn unseen(&self, look: &Look, user: &str) -> Option<UnavailableSource> {
        (look.hidden > 0).then(|| UnavailableSource {
            says: format!(
                "which sessions of other users wait for the log or for tables (GRANT PROCESS ON \
                 *.* TO {})",
                crate::mariadb::identifier(user)
            ),
            hides_waits: true,
        })
    }
}
