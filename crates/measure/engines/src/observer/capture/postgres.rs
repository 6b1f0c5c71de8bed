//! A capture of PostgreSQL (manual, "The Cumulative Statistics System", "System Catalogs"). Views
//! that differ between versions are read row by row as names and values, so that what a version
//! counts is kept and what it does not is absent.

use std::collections::BTreeMap;

use workahead_study::capture::{Figures, Index, Statement, WORKING};
use workahead_workloads::session::{Dialect, Session, SessionError, StatementId};

use super::answers::{self, figures, kinds, or_missing, rows};
use super::{Counters, ExecutedStatement, Grows, Inventory, Sessions, Settings, Source, words};
use crate::attach::Target;
use crate::connector::Connection;

/// Activity of a session. The log is waited for under the name of its files and its latches, which
/// begin with WAL in every version; SyncRep is the last part of a commit.
const KIND: &str = "CASE
    WHEN state IS NULL THEN 'hidden'
    WHEN state LIKE 'idle in transaction%' THEN 'idle_in_transaction'
    WHEN wait_event IS NULL THEN 'working'
    WHEN wait_event ILIKE 'wal%' OR wait_event = 'SyncRep' THEN 'log'
    WHEN wait_event_type = 'Lock' THEN 'locks'
    WHEN wait_event_type IN ('LWLock', 'BufferPin') OR wait_event = 'SpinDelay' THEN 'latches'
    WHEN wait_event_type = 'IO' THEN 'disk'
    WHEN wait_event_type = 'Client' THEN 'client'
    WHEN wait_event_type = 'IPC' THEN 'processes'
    ELSE 'other' END";

/// Sessions by what they do, and by the event that they wait for. Parallel workers are sessions.
fn look_text() -> String {
    format!(
        "SELECT kind, event, pg_catalog.count(*)
         FROM (SELECT {KIND} AS kind,
                 coalesce(wait_event_type || ':' || wait_event, '') AS event
               FROM pg_catalog.pg_stat_activity
               WHERE pid <> pg_catalog.pg_backend_pid() AND usesysid IS NOT NULL
                 AND datid IS NOT NULL AND coalesce(backend_type, '') NOT LIKE 'autovacuum%'
                 AND (state IS NULL OR state LIKE 'idle in transaction%' OR state = 'active')
              ) AS sessions
         GROUP BY kind, event"
    )
}

/// Sessions that others wait for and that wait for no lock themselves, the heads of queues: what
/// they do, and who they are.
fn holders_text() -> String {
    format!(
        "SELECT {KIND},
           coalesce(nullif(application_name, ''), 'a session') || ' of '
             || coalesce(usename::text, backend_type, '?'),
           coalesce(pg_catalog.left(query, 200), '')
         FROM (SELECT DISTINCT pg_catalog.unnest(pg_catalog.pg_blocking_pids(pid)) AS pid
               FROM pg_catalog.pg_stat_activity WHERE wait_event_type = 'Lock') AS blocking
           JOIN pg_catalog.pg_stat_activity AS holder USING (pid)
         WHERE wait_event_type IS DISTINCT FROM 'Lock'"
    )
}

/// Within a transaction the server answers from what it read first.
const ANEW: &str = "SELECT pg_catalog.pg_stat_clear_snapshot()";

const DATABASES: &str = "
    SELECT each.key, pg_catalog.sum(each.value::float8)
    FROM pg_catalog.pg_stat_database AS counted,
      pg_catalog.jsonb_each_text(pg_catalog.to_jsonb(counted)) AS each
    WHERE each.key = ANY ('{xact_commit,xact_rollback,blks_read,blks_hit,tup_returned,tup_fetched,
      tup_inserted,tup_updated,tup_deleted,temp_files,temp_bytes,deadlocks,blk_read_time,
      blk_write_time,active_time}'::text[])
    GROUP BY each.key
    UNION ALL
    SELECT 'started_s', pg_catalog.date_part('epoch', pg_catalog.pg_postmaster_start_time())";

/// Views of one row, by what their names are given in front: the first that are there count.
const ONE_ROW: [(&str, &str); 3] = [
    ("wal", "pg_stat_wal"),
    ("checkpoints", "pg_stat_bgwriter"),
    ("checkpoints", "pg_stat_checkpointer"),
];

/// Settings of this session's own are those of this command.
const SETTINGS: &str = "
    SELECT name, coalesce(setting, '') || coalesce(' ' || unit, '')
    FROM pg_catalog.pg_settings
    WHERE source NOT IN ('client', 'session') AND name NOT LIKE 'transaction_%'
      AND name NOT IN ('in_hot_standby', 'search_path', 'role', 'application_name',
        'session_authorization')
    UNION ALL
    SELECT coalesce('of role ' || rolname, 'of every role')
        || coalesce(' in ' || datname, '') || ': ' || pg_catalog.split_part(one, '=', 1),
      pg_catalog.substr(one, pg_catalog.strpos(one, '=') + 1)
    FROM pg_catalog.pg_db_role_setting
      LEFT JOIN pg_catalog.pg_roles ON pg_roles.oid = setrole
      LEFT JOIN pg_catalog.pg_database ON pg_database.oid = setdatabase,
      pg_catalog.unnest(setconfig) AS one";

const FACTS: &str = "
    SELECT 'server', pg_catalog.version()
    UNION ALL SELECT 'extension ' || extname, extversion FROM pg_catalog.pg_extension";

/// No size is taken from the file system: that would wait behind an exclusive lock.
const TABLES: &str = "
    SELECT schemaname || '.' || counted.relname, seq_scan::float8, seq_tup_read::float8,
      coalesce(idx_scan, 0)::float8, n_live_tup::float8, n_dead_tup::float8,
      (8192.0 * relpages)::float8, (n_tup_ins + n_tup_upd + n_tup_del)::float8
    FROM pg_catalog.pg_stat_user_tables AS counted
      JOIN pg_catalog.pg_class AS class ON class.oid = counted.relid
    ORDER BY relpages DESC LIMIT 2000";

/// The columns of [`TABLES`] after the name.
const TABLE_FIGURES: [&str; 7] =
    ["seq_scans", "seq_rows", "index_scans", "rows", "dead_rows", "bytes", "changes"];

const INDEXES: &str = "
    SELECT pg_catalog.quote_ident(space.nspname) || '.' || index.relname,
      table_space.nspname || '.' || named.relname,
      coalesce(pg_catalog.pg_get_indexdef(indexrelid), ''), coalesce(idx_scan, 0)::float8
    FROM pg_catalog.pg_index AS i
      JOIN pg_catalog.pg_class AS index ON index.oid = i.indexrelid
      JOIN pg_catalog.pg_namespace AS space ON space.oid = index.relnamespace
      JOIN pg_catalog.pg_class AS named ON named.oid = i.indrelid
      JOIN pg_catalog.pg_namespace AS table_space ON table_space.oid = named.relnamespace
      LEFT JOIN pg_catalog.pg_stat_user_indexes AS counted USING (indexrelid)
    WHERE i.indisvalid AND space.nspname !~ '^pg_' AND space.nspname <> 'information_schema'
    LIMIT 5000";

/// The view of the extension, if its owner put it there: what another made of that name is not
/// read.
const STATEMENTS_VIEW: &str = "
    SELECT pg_catalog.quote_ident(nspname) || '.' || pg_catalog.quote_ident(view.relname)
    FROM pg_catalog.pg_extension AS extension
      JOIN pg_catalog.pg_depend ON refobjid = extension.oid AND deptype = 'e'
        AND refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass
        AND classid = 'pg_catalog.pg_class'::pg_catalog.regclass
      JOIN pg_catalog.pg_class AS view ON view.oid = objid
      JOIN pg_catalog.pg_namespace AS space ON space.oid = view.relnamespace
    WHERE extname = 'pg_stat_statements' AND view.relname = 'pg_stat_statements'";

/// Times are milliseconds; before version 13 of the server the first has another name.
const STATEMENT_FIGURES: [(&str, &str, f64); 10] = [
    ("calls", "calls", 1.0),
    ("total_exec_time", "seconds", 1e-3),
    ("total_time", "seconds", 1e-3),
    ("rows", "rows", 1.0),
    ("shared_blks_read", "blocks_read", 1.0),
    ("temp_blks_written", "temp_blocks", 1.0),
    ("jit_generation_time", "jit_s", 1e-3),
    ("jit_inlining_time", "jit_s", 1e-3),
    ("jit_optimization_time", "jit_s", 1e-3),
    ("jit_emission_time", "jit_s", 1e-3),
];

/// Who could do as much harm without us: superusers, the database's owner and this user.
const TRUSTED: &str = "(SELECT oid FROM pg_catalog.pg_roles
    WHERE rolsuper OR rolname = current_user OR rolname = 'pg_database_owner'
      OR oid = (SELECT datdba FROM pg_catalog.pg_database
                WHERE datname = pg_catalog.current_database()))";

/// Texts that are whole, and who ran them. Sessions that are idle show their last one. No user
/// leaves another without. All of them together fit in the room of an answer.
fn texts_text() -> String {
    format!(
        "SELECT usename, is_trusted, query
         FROM (SELECT usename, is_trusted, query,
                 pg_catalog.row_number() OVER (PARTITION BY usename)
               FROM (SELECT DISTINCT usename::text, (usesysid IN {TRUSTED})::int AS is_trusted,
                       query
                     FROM pg_catalog.pg_stat_activity
                     WHERE datname = pg_catalog.current_database()
                       AND usename IS NOT NULL AND backend_type = 'client backend'
                       AND pid <> pg_catalog.pg_backend_pid()
                       AND query ~* '^\\s*(select|with)\\M'
                       AND pg_catalog.octet_length(query) <
                         (SELECT least(30000, setting::int - 1) FROM pg_catalog.pg_settings
                          WHERE name = 'track_activity_query_size')) AS ran) AS numbered
         WHERE row_number <= 32
         ORDER BY is_trusted DESC LIMIT 512"
    )
}

/// Schemas in which nobody else creates.
fn trusted_schemas_text() -> String {
    format!(
        "SELECT nspname FROM pg_catalog.pg_namespace
         WHERE nspowner IN {TRUSTED} AND NOT EXISTS (
           SELECT FROM pg_catalog.aclexplode(nspacl)
           WHERE privilege_type = 'CREATE' AND grantee NOT IN {TRUSTED})"
    )
}

/// Statements, prepared.
pub(super) struct Statements {
    anew: StatementId,
    look: StatementId,
    holders: StatementId,
    databases: StatementId,
    one_row: Vec<(&'static str, StatementId)>,
    texts: StatementId,
}

impl Statements {
    pub(super) fn prepare(connection: &mut dyn Connection) -> Result<Self, SessionError> {
        let mut one_row = Vec::new();
        for (prefix, view) in ONE_ROW {
            let text = format!(
                "SELECT each.key, each.value FROM pg_catalog.{view} AS counted,
                   pg_catalog.jsonb_each_text(pg_catalog.to_jsonb(counted)) AS each"
            );
            // A version without it has none.
            if let Ok(statement) = connection.prepare(&text) {
                one_row.push((prefix, statement));
            }
        }
        Ok(Self {
            anew: connection.prepare(ANEW)?,
            look: connection.prepare(&look_text())?,
            holders: connection.prepare(&holders_text())?,
            databases: connection.prepare(DATABASES)?,
            texts: connection.prepare(&texts_text())?,
            one_row,
        })
    }

    fn anew(&self, session: &mut dyn Session) -> Result<(), SessionError> {
        session.query(self.anew, &[], &mut |_| Ok(())).map(drop)
    }
}

impl Source for Statements {
    fn look(&mut self, session: &mut dyn Session) -> Result<Sessions, SessionError> {
        self.anew(session)?;
        let seen = kinds(session, self.look)?;
        // A server on which all are idle has no rows.
        let mut sessions =
            Sessions { by_kind: Figures::from([(WORKING.to_owned(), 0.0)]), ..Sessions::default() };
        for (kind, event, count) in seen {
            if kind == "hidden" {
                sessions.hidden += count;
                continue;
            }
            if !event.is_empty() && kind != "idle_in_transaction" {
                *sessions.events.entry(event).or_default() += count;
            }
            *sessions.by_kind.entry(kind).or_default() += count;
        }
        if sessions.by_kind.contains_key("locks") {
            sessions.holders = answers::holders(session, self.holders)?;
        }
        Ok(sessions)
    }

    fn counters(&mut self, session: &mut dyn Session) -> Result<Counters, SessionError> {
        self.anew(session)?;
        let mut counts = figures(session, self.databases)?;
        let mut take = |name: &str| counts.remove(name).unwrap_or(0.0);
        let ended = take("xact_commit") + take("xact_rollback");
        let started_s = take("started_s");
        for (prefix, statement) in &self.one_row {
            let of_view = figures(session, *statement)?.into_iter();
            counts.extend(of_view.map(|(name, value)| {
                let name = name.strip_prefix("wal_").unwrap_or(&name);
                (format!("{prefix}_{name}"), value)
            }));
        }
        Ok(Counters { ended, started_s, counts })
    }

    /// The transaction before this one, and what was rolled back with it.
    fn own(&self) -> f64 {
        1.0
    }

    fn inventory(&mut self, session: &mut dyn Session, missing: &mut Vec<String>) -> Inventory {
        let mut inventory = Inventory {
            tables: or_missing(tables(session), "tables", missing),
            indexes: or_missing(indexes(session), "indexes", missing),
            statements: BTreeMap::new(),
        };
        match statements(session) {
            Ok(Some(statements)) => inventory.statements = statements,
            Ok(None) => missing.push(
                "statements, one by one (CREATE EXTENSION pg_stat_statements in this database, \
                 with shared_preload_libraries)"
                    .to_owned(),
            ),
            Err(error) => missing.push(format!("statements, one by one ({error})")),
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
        format!("GRANT pg_read_all_stats TO {}", crate::postgres::identifier(user))
    }

    fn grows(&self) -> Grows {
        |name| !["rows", "dead_rows", "bytes"].contains(&name)
    }

    fn patience(&self) -> [(&'static str, &'static str); 2] {
        [("lock_timeout", "200ms"), ("statement_timeout", "2s")]
    }

    fn path(
        &self,
        session: &mut dyn Session,
        target: &Target,
    ) -> Result<Option<(String, String)>, SessionError> {
        let statement = session.prepare(&trusted_schemas_text())?;
        let trusted = rows(session, statement, &mut |row| Ok(row.text(0)?.to_owned()))?;
        let names = target.schemas()?.into_iter().filter(|name| trusted.contains(name));
        let names = names.filter(|name| name != "pg_catalog");
        let quoted = names.map(|name| crate::postgres::identifier(&name));
        let path = std::iter::once("pg_catalog".to_owned()).chain(quoted);
        let path: Vec<String> = path.chain(["pg_temp".to_owned()]).collect();
        Ok(Some(("search_path".to_owned(), path.join(", "))))
    }
}

fn tables(session: &mut dyn Session) -> Result<BTreeMap<String, Figures>, SessionError> {
    let statement = session.prepare(TABLES)?;
    let all = rows(session, statement, &mut |row| {
        let figure = |(column, name): (usize, &&str)| {
            Ok(((*name).to_owned(), row.real(column + 1)?.max(0.0)))
        };
        let figures = TABLE_FIGURES.iter().enumerate().map(figure);
        Ok((answers::name(row, 0)?, figures.collect::<Result<Figures, SessionError>>()?))
    })?;
    Ok(all.into_iter().collect())
}

fn indexes(session: &mut dyn Session) -> Result<BTreeMap<String, Index>, SessionError> {
    let statement = session.prepare(INDEXES)?;
    let all = rows(session, statement, &mut |row| {
        let index = Index {
            table: answers::name(row, 1)?,
            definition: super::bounded(row.text(2)?),
            scans: Some(row.real(3)?.max(0.0)),
        };
        Ok((answers::name(row, 0)?, index))
    })?;
    Ok(all.into_iter().collect())
}

/// By number; none where the server does not sum statements up.
fn statements(
    session: &mut dyn Session,
) -> Result<Option<BTreeMap<String, Statement>>, SessionError> {
    let view = session.prepare(STATEMENTS_VIEW)?;
    let view = rows(session, view, &mut |row| Ok(row.text(0)?.to_owned()))?;
    let Some(view) = view.first() else { return Ok(None) };
    let text = format!(
        "SELECT top.queryid::text, pg_catalog.left(top.query, 500), each.key, each.value
         FROM (SELECT * FROM {view} WHERE queryid IS NOT NULL
               ORDER BY calls * mean_exec_time DESC LIMIT 400) AS top,
           pg_catalog.jsonb_each_text(pg_catalog.to_jsonb(top)) AS each
         WHERE each.key = ANY ('{{calls,total_exec_time,total_time,rows,shared_blks_read,
           temp_blks_written,jit_generation_time,jit_inlining_time,jit_optimization_time,
           jit_emission_time}}'::text[])"
    );
    let statement = session.prepare(&text)?;
    let all = rows(session, statement, &mut |row| {
        let text = if row.is_null(1)? { "" } else { row.text(1)? };
        Ok((answers::name(row, 0)?, text.to_owned(), answers::name(row, 2)?, row.real(3)?))
    })?;
    let mut statements: BTreeMap<String, Statement> = BTreeMap::new();
    for (id, text, name, value) in all {
        let Some((_, name, unit)) = STATEMENT_FIGURES.iter().find(|one| one.0 == name) else {
            continue;
        };
        // The server leaves the values in texts that are neither queries nor changes of rows:
        // passwords.
        let statement = statements.entry(id).or_insert_with(|| Statement {
            text: words::without_values(&text, Dialect::Postgres),
            ..Statement::default()
        });
        *statement.figures.entry((*name).to_owned()).or_default() += unit * value.max(0.0);
    }
    Ok(Some(statements))
}
