//! The rights of a server's user: superusers are refused, others who can write are named.

use workahead_workloads::session::{AnswerLimit, Session, SessionError, rows_within};

use super::{Access, Software, Target};
use crate::{mariadb, postgres};

/// A user's rights, as far as they are more than reading.
#[derive(Debug, Default, PartialEq, Eq)]
struct Rights {
    /// The right that makes a superuser of them.
    superuser: Option<String>,
    /// The first right to write.
    writes: Option<String>,
}

/// Rights of roles by which a session runs programs, or writes files, of the server.
const POSTGRES_SUPERUSER: &str = "
    SELECT 'a superuser' WHERE current_setting('is_superuser') = 'on'
    UNION ALL
    SELECT 'a member of ' || rolname FROM pg_catalog.pg_roles
    WHERE rolname IN ('pg_execute_server_program', 'pg_write_server_files')
      AND pg_catalog.pg_has_role(oid, 'member')";

const POSTGRES_WRITES: &str = "
    SELECT 'the database, in which it can create schemas'
    WHERE pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE')
    UNION ALL
    (SELECT 'the schema ' || pg_catalog.quote_ident(nspname) FROM pg_catalog.pg_namespace
     WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'
       AND pg_catalog.has_schema_privilege(oid, 'CREATE') ORDER BY 1 LIMIT 1)
    UNION ALL
    (SELECT 'the table ' || c.oid::pg_catalog.regclass::text FROM pg_catalog.pg_class c
     JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
     WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname !~ '^pg_'
       AND n.nspname <> 'information_schema'
       AND pg_catalog.has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')
     ORDER BY 1 LIMIT 1)";

/// Functions that a query can reach by views, operators and casts, without their names in it.
const POSTGRES_FUNCTION: &str = "
    SELECT p.oid::pg_catalog.regproc::text FROM pg_catalog.pg_proc p
    JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
    WHERE n.nspname NOT IN ('pg_catalog', 'information_schema') LIMIT 1";

const MARIADB_FUNCTION: &str = "
    SELECT concat(routine_schema, '.', routine_name) FROM information_schema.routines
    WHERE routine_schema NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')
    LIMIT 1";

/// Looks at the user's rights; in words what they could write.
pub(super) fn examine(target: &Target) -> Result<Option<String>, SessionError> {
    let mut session = target.connect_to_observe()?;
    let rights = match target.software {
        Software::Postgres => Rights {
            superuser: texts(session.session(), POSTGRES_SUPERUSER)?.into_iter().next(),
            writes: texts(session.session(), POSTGRES_WRITES)?.into_iter().next(),
        },
        Software::MariaDb => granted(&texts(session.session(), "SHOW GRANTS")?),
    };
    let user = &target.address.user;
    let reads = target.access == Access::ReadOnly;
    if rights.superuser.is_some() && target.superuser && reads {
        let functions = match target.software {
            Software::Postgres => POSTGRES_FUNCTION,
            Software::MariaDb => MARIADB_FUNCTION,
        };
        if let Some(function) = texts(session.session(), functions)?.first() {
            return Err(SessionError::Failed(format!(
                "the database has functions that are not built in ({function}), through which a \
                 superuser's query can do more than read: use a role that only reads \
                 (--read-only-role prints its statements), or --allow-writes"
            )));
        }
    }
    if let Some(superuser) = rights.superuser.filter(|_| !target.superuser) {
        return Err(SessionError::Failed(format!(
            "`{user}` is {superuser}, and a superuser's query can run programs: use a role that only \
             reads (--read-only-role prints its statements), or --allow-superuser"
        )));
    }
    let named = |writes| {
        format!(
            "`{user}` can write to {writes}: a role that only reads is safer (--read-only-role \
             prints its statements)"
        )
    };
    Ok(rights.writes.filter(|_| reads).map(named))
}

fn texts(session: &mut dyn Session, text: &str) -> Result<Vec<String>, SessionError> {
    let statement = session.prepare(text)?;
    rows_within(session, statement, &[], AnswerLimit::NAMES, |row| Ok(row.text(0)?.to_owned()))
}

/// Of lines such as ``GRANT SELECT, INSERT ON `shop`.* TO `ada`@`%` ``.
fn granted(lines: &[String]) -> Rights {
    const SUPERUSER: [&str; 4] = ["ALL PRIVILEGES", "SUPER", "FILE", "CREATE USER"];
    const READING: [&str; 7] =
        ["USAGE", "SELECT", "SHOW VIEW", "SHOW DATABASES", "PROCESS", "REFERENCES", "LOCK TABLES"];
    let mut rights = Rights::default();
    for line in lines {
        let Some((privileges, rest)) =
            line.strip_prefix("GRANT ").and_then(|line| line.split_once(" ON "))
        else {
            continue;
        };
        let place = rest.split_once(" TO ").map_or(rest, |(place, _)| place);
        // `SELECT (a, b)` is of two columns.
        let names = privileges.split(", ").filter(|name| !name.starts_with('`'));
        let mut names = names.map(|name| name.split(" (").next().unwrap_or(name));
        if place == "*.*"
            && let Some(name) = names.clone().find(|name| SUPERUSER.contains(name))
        {
            rights.superuser.get_or_insert_with(|| format!("a superuser ({name})"));
        }
        if let Some(name) = names.find(|name| !READING.contains(name)) {
            rights.writes.get_or_insert_with(|| format!("{place} ({name})"));
        }
    }
    rights
}

/// The statements that create a user who can only read a database.
pub(super) fn read_only(target: &Target) -> String {
    let database = &target.address.database;
    match target.software {
        Software::Postgres => {
            let database = postgres::identifier(database);
            format!(
                "CREATE ROLE workahead_reader LOGIN PASSWORD 'choose one';\n\
                 ALTER ROLE workahead_reader SET default_transaction_read_only = on;\n\
                 GRANT CONNECT ON DATABASE {database} TO workahead_reader;\n\
                 GRANT pg_read_all_data TO workahead_reader;\n\
                 -- Before PostgreSQL 14, in that database instead of the line before:\n\
                 -- GRANT SELECT ON ALL TABLES IN SCHEMA public TO workahead_reader;\n\
                 -- Before PostgreSQL 15, there, if others may not create tables either:\n\
                 -- REVOKE CREATE ON SCHEMA public FROM PUBLIC;\n"
            )
        }
        Software::MariaDb => {
            let database = mariadb::identifier(database);
            format!(
                "CREATE USER workahead_reader IDENTIFIED BY 'choose one';\n\
                 GRANT SELECT, SHOW VIEW ON {database}.* TO workahead_reader;\n"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[&str]) -> Rights {
        granted(&lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn grants_are_read() {
        let usage = "GRANT USAGE ON *.* TO `ada`@`%` IDENTIFIED BY PASSWORD '*A'";
        assert_eq!(
            of(&[usage, "GRANT SELECT, SHOW VIEW ON `s`.* TO `ada`@`%`"]),
            Rights::default()
        );
        let some = of(&[usage, "GRANT SELECT, INSERT (`a`) ON `s`.`t` TO `ada`@`%`"]);
        assert_eq!((some.superuser, some.writes.unwrap()), (None, "`s`.`t` (INSERT)".to_owned()));
        let all = of(&["GRANT ALL PRIVILEGES ON *.* TO `root`@`localhost` WITH GRANT OPTION"]);
        assert_eq!(all.superuser.unwrap(), "a superuser (ALL PRIVILEGES)");
        assert_eq!(of(&["GRANT ALL PRIVILEGES ON `s`.* TO `ada`@`%`"]).superuser, None);
        assert!(of(&["GRANT SELECT, FILE ON *.* TO `ada`@`%`"]).superuser.is_some());
    }
}
