//! Captures of MariaDB and MySQL (manual, "Server Status Variables", "SHOW PROCESSLIST",
//! "Information Schema InnoDB Tables", "Performance Schema").
//!
//! A statement that waits for a lock of a row has the state of one that runs: who waits is in
//! InnoDB's list of transactions. Waits for latches and files are not shown.

use std::collections::BTreeMap;

use workahead_study::capture::{Figures, Index, Statement, WORKING};
use workahead_workloads::session::{Session, SessionError, StatementId, first};

use super::answers::{self, figures, kinds, or_missing, rows};
use super::{Counters, ExecutedStatement, Grows, Inventory, Sessions, Settings, Source};
use crate::attach::Target;
use crate::connector::Connection;

/// The activity of a session.
const KIND: &str = "CASE
    WHEN state LIKE 'Waiting for%lock%' OR state = 'User lock' THEN 'locks'
    WHEN state LIKE '%commit%' OR state LIKE '%binlog%' THEN 'log'
    WHEN state LIKE '%net' OR state LIKE 'Sending to client%' THEN 'client'
    WHEN state = 'User sleep' THEN 'other'
    WHEN command = 'Sleep' THEN 'idle_in_transaction'
    ELSE 'working' END";

/// Sessions by what they do. Threads of the server's own are left out.
fn look_text() -> String {
    format!(
        "SELECT {KIND} AS kind,
           CASE WHEN state LIKE 'Waiting%' OR state LIKE '%commit%' OR state LIKE 'User%'
             THEN state ELSE '' END AS event,
           COUNT(*)
         FROM information_schema.processlist
         WHERE command NOT IN ('Sleep', 'Daemon', 'Binlog Dump', 'Binlog Dump GTID', 'Slave_IO',
             'Slave_SQL', 'Slave_worker', 'Slave_commit', 'Delayed insert')
           AND user NOT IN ('event_scheduler', 'system user') AND id <> CONNECTION_ID()
         GROUP BY kind, event"
    )
}

/// Transactions that wait for a lock of a row.
const ROW_LOCKS: &str =
    "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'";

/// Of those that run while others wait the oldest: the likeliest to hold the lock.
fn holders_text() -> String {
    format!(
        "SELECT {KIND}, CONCAT('a session of ', COALESCE(user, '?')),
           COALESCE(LEFT(COALESCE(trx_query, info), 200), '')
         FROM information_schema.innodb_trx
           JOIN information_schema.processlist ON id = trx_mysql_thread_id
         WHERE trx_state <> 'LOCK WAIT' AND id <> CONNECTION_ID() ORDER BY trx_started LIMIT 1"
    )
}

/// Sessions of everybody, for users who see their own only.
const THREADS: &str = "SHOW GLOBAL STATUS WHERE Variable_name IN \
    ('Threads_running', 'Threads_connected')";

const VISIBLE: &str =
    "SELECT COUNT(*) FROM information_schema.processlist WHERE command <> 'Daemon'";

const COUNTERS: &str = "SHOW GLOBAL STATUS WHERE Variable_name IN (
     'Questions', 'Uptime', 'Innodb_row_lock_time', 'Innodb_row_lock_waits',
     'Handler_read_rnd_next', 'Handler_read_key', 'Handler_read_next', 'Handler_read_rnd',
     'Handler_write', 'Handler_update', 'Handler_delete', 'Rows_read', 'Rows_tmp_read',
     'Select_scan', 'Select_full_join', 'Created_tmp_tables', 'Created_tmp_disk_tables',
     'Created_tmp_files', 'Sort_merge_passes', 'Sort_rows', 'Innodb_buffer_pool_reads',
     'Innodb_buffer_pool_read_requests', 'Innodb_buffer_pool_wait_free', 'Innodb_data_fsyncs',
     'Innodb_data_read', 'Innodb_data_written', 'Innodb_os_log_fsyncs', 'Innodb_os_log_written',
     'Innodb_log_waits', 'Innodb_log_writes', 'Binlog_cache_disk_use', 'Opened_tables',
     'Threads_created', 'Aborted_connects', 'Com_commit', 'Com_rollback', 'Com_select',
     'Com_insert', 'Com_update', 'Com_delete', 'Bytes_sent', 'Bytes_received',
     'Subquery_cache_miss', 'Table_locks_waited')";

/// The server's clock less its age is when it started.
const CLOCK: &str = "SELECT CAST(UNIX_TIMESTAMP() AS SIGNED)";

const SETTINGS: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name NOT LIKE 'gtid%' \
    AND Variable_name NOT IN ('hostname', 'server_uid', 'server_uuid', 'timestamp', \
     'last_insert_id', 'pseudo_thread_id', 'in_transaction', 'rand_seed1', 'rand_seed2', \
     'error_count', 'warning_count', 'identity', 'insert_id', 'last_gtid', \
     'wsrep_last_seen_gtid')";

const FACTS: &str = "SELECT 'server', VERSION()";

const TABLES: &str = "
    SELECT CONCAT(table_schema, '.', table_name), COALESCE(table_rows, 0),
      COALESCE(data_length, 0)
    FROM information_schema.tables
    WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE' LIMIT 2000";

const INDEXES: &str = "
    SELECT CONCAT(table_schema, '.', table_name, '.', index_name),
      CONCAT(table_schema, '.', table_name),
      CONCAT(IF(MIN(non_unique) = 0, 'UNIQUE ', ''), 'INDEX ON ', table_name, ' (',
        GROUP_CONCAT(column_name ORDER BY seq_in_index SEPARATOR ', '), ')')
    FROM information_schema.statistics WHERE table_schema = DATABASE()
    GROUP BY table_schema, table_name, index_name LIMIT 5000";

/// Times are picoseconds.
const STATEMENTS: &str = "
    SELECT digest, COALESCE(LEFT(digest_text, 500), ''), CAST(count_star AS DOUBLE),
      sum_timer_wait * 1e-12, sum_lock_time * 1e-12, CAST(sum_rows_examined AS DOUBLE)
    FROM performance_schema.events_statements_summary_by_digest
    WHERE digest IS NOT NULL ORDER BY sum_timer_wait DESC LIMIT 400";

/// The columns of [`STATEMENTS`] after the text.
const STATEMENT_FIGURES: [&str; 4] = ["calls", "seconds", "lock_s", "rows_examined"];

/// Texts, and who ran them. Nobody is trusted: who is a superuser is not for all to see, and others
/// may have accounts of the same name.
const TEXTS: &str = "
    SELECT DISTINCT user, 0, info
    FROM information_schema.processlist
    WHERE db = DATABASE() AND id <> CONNECTION_ID() AND info REGEXP '^[[:space:]]*(select|with)'
      AND LENGTH(info) < 60000 LIMIT 64";

/// Statements, prepared.
pub(super) struct Statements {
    look: StatementId,
    row_locks: Option<StatementId>,
    holders: Option<StatementId>,
    threads: StatementId,
    visible: StatementId,
    counters: StatementId,
    clock: StatementId,
    texts: StatementId,
    /// Statements sent in the transaction of the window so far.
    sent: f64,
    /// Those of the last whole one.
    own: f64,
}

impl Statements {
    pub(super) fn prepare(connection: &mut dyn Connection) -> Result<Self, SessionError> {
        let mut prepared = Self {
            look: connection.prepare(&look_text())?,
            row_locks: connection.prepare(ROW_LOCKS).ok(),
            holders: connection.prepare(&holders_text()).ok(),
            threads: connection.prepare(THREADS)?,
            visible: connection.prepare(VISIBLE)?,
            counters: connection.prepare(COUNTERS)?,
            clock: connection.prepare(CLOCK)?,
            texts: connection.prepare(TEXTS)?,
            sent: 0.0,
            own: 0.0,
        };
        // Without the right to see transactions it is refused when it is run.
        if let Some(statement) = prepared.row_locks
            && connection.session().query(statement, &[], &mut |_| Ok(())).is_err()
        {
            (prepared.row_locks, prepared.holders) = (None, None);
        }
        Ok(prepared)
    }
}

impl Source for Statements {
    fn look(&mut self, session: &mut dyn Session) -> Result<Sessions, SessionError> {
        let seen = kinds(session, self.look)?;
        let threads = figures(session, self.threads)?;
        let visible = first(session, self.visible, &[], |row| row.int(0))?.unwrap_or(0) as f64;
        self.sent += 3.0;
        let mut sessions =
            Sessions { by_kind: Figures::from([(WORKING.to_owned(), 0.0)]), ..Sessions::default() };
        let counted = |name: &str| threads.get(name).copied().unwrap_or(0.0);
        sessions.hidden = (counted("Threads_connected") - visible).max(0.0);
        if sessions.hidden > 0.0 {
            // Without this session, which runs. Their waits are hidden.
            let running = (counted("Threads_running") - 1.0).max(0.0);
            sessions.by_kind.insert(WORKING.to_owned(), running);
            return Ok(sessions);
        }
        for (kind, event, count) in seen {
            if !event.is_empty() {
                *sessions.events.entry(event).or_default() += count;
            }
            *sessions.by_kind.entry(kind).or_default() += count;
        }
        if let Some(row_locks) = self.row_locks {
            self.sent += 1.0;
            let waiting = first(session, row_locks, &[], |row| row.int(0))?.unwrap_or(0).max(0);
            let working = sessions.by_kind.get_mut(WORKING);
            let waiting = working.map_or(0.0, |working| {
                let waiting = (waiting as f64).min(*working);
                *working -= waiting;
                waiting
            });
            if waiting > 0.0 {
                *sessions.by_kind.entry("locks".to_owned()).or_default() += waiting;
                sessions.events.insert("row lock".to_owned(), waiting);
            }
        }
        if let Some(holders) = self.holders
            && sessions.by_kind.contains_key("locks")
        {
            self.sent += 1.0;
            sessions.holders = answers::holders(session, holders)?;
        }
        Ok(sessions)
    }

    /// This statement counts those sent until here in the transaction, its beginning included;
    /// itself too.
    fn counters(&mut self, session: &mut dyn Session) -> Result<Counters, SessionError> {
        let counts = figures(session, self.counters)?;
        self.own = self.sent + 2.0;
        let now_s = first(session, self.clock, &[], |row| row.real(0))?.unwrap_or(0.0);
        // The clock, the texts that follow, and the rollback are counted by the next window.
        self.sent = 3.0;
        let mut counts: Figures =
            counts.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
        let mut take = |name: &str| counts.remove(name).unwrap_or(0.0);
        let (ended, uptime_s) = (take("questions"), take("uptime"));
        Ok(Counters { ended, started_s: now_s - uptime_s, counts })
    }

    fn own(&self) -> f64 {
        self.own
    }

    fn inventory(&mut self, session: &mut dyn Session, missing: &mut Vec<String>) -> Inventory {
        let mut inventory = Inventory {
            tables: or_missing(tables(session), "tables", missing),
            indexes: or_missing(indexes(session), "indexes", missing),
            statements: BTreeMap::new(),
        };
        match statements(session) {
            Ok(statements) if !statements.is_empty() => inventory.statements = statements,
            Ok(_) => missing.push(
                "statements, one by one (start the server with performance_schema=ON)".to_owned(),
            ),
            Err(_) => missing.push(
                "statements, one by one (start the server with performance_schema=ON and GRANT \
                 SELECT ON performance_schema.* TO this user)"
                    .to_owned(),
            ),
        }
        inventory
    }

    fn settings(&mut self, session: &mut dyn Session) -> Result<Settings, SessionError> {
        Settings::read(session, FACTS, SETTINGS)
    }

    fn texts(&mut self, session: &mut dyn Session) -> Result<Vec<ExecutedStatement>, SessionError> {
        answers::ran(session, self.texts)
    }

    fn remedy(&self, user: &str) -> String {
        format!("GRANT PROCESS ON *.* TO {}", crate::mariadb::identifier(user))
    }

    fn grows(&self) -> Grows {
        |name| !["rows", "bytes"].contains(&name)
    }

    fn patience(&self) -> [(&'static str, &'static str); 2] {
        [("lock_wait_timeout", "1"), ("innodb_lock_wait_timeout", "1")]
    }

    /// A name without its database is in that of the session.
    fn path(
        &self,
        _: &mut dyn Session,
        _: &Target,
    ) -> Result<Option<(String, String)>, SessionError> {
        Ok(None)
    }
}

fn tables(session: &mut dyn Session) -> Result<BTreeMap<String, Figures>, SessionError> {
    let statement = session.prepare(TABLES)?;
    let all = rows(session, statement, &mut |row| {
        let figures = [("rows", row.real(1)?.max(0.0)), ("bytes", row.real(2)?.max(0.0))];
        let figures = figures.map(|(name, value)| (name.to_owned(), value));
        Ok((answers::name(row, 0)?, Figures::from(figures)))
    })?;
    Ok(all.into_iter().collect())
}

fn indexes(session: &mut dyn Session) -> Result<BTreeMap<String, Index>, SessionError> {
    let statement = session.prepare(INDEXES)?;
    let all = rows(session, statement, &mut |row| {
        let (table, definition) = (answers::name(row, 1)?, super::bounded(row.text(2)?));
        Ok((answers::name(row, 0)?, Index { table, definition, scans: None }))
    })?;
    Ok(all.into_iter().collect())
}

fn statements(session: &mut dyn Session) -> Result<BTreeMap<String, Statement>, SessionError> {
    let statement = session.prepare(STATEMENTS)?;
    let all = rows(session, statement, &mut |row| {
        let figure = |(column, name): (usize, &&str)| {
            Ok(((*name).to_owned(), row.real(column + 2)?.max(0.0)))
        };
        let figures = STATEMENT_FIGURES.iter().enumerate().map(figure);
        let figures = figures.collect::<Result<Figures, SessionError>>()?;
        Ok((answers::name(row, 0)?, Statement { text: row.text(1)?.to_owned(), figures }))
    })?;
    Ok(all.into_iter().collect())
}
