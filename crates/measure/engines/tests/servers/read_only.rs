//! Ways of writing through an attachment that only reads: none of them may, for any user.
//!
//! Each way is tried as a statement, as a text, by its plan, and some through a study; a dump of
//! the whole server and the files around it are the same before and after.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use workahead_engines::attach::{Access, Target};
use workahead_engines::attached;
use workahead_engines::server::Explain;
use workahead_engines::{mariadb, postgres};
use workahead_study::cell::Cell;
use workahead_study::engine::{EngineContext, Stop};
use workahead_study::protocol::Protocol;
use workahead_study::setting::Setting;

use crate::shared::{directory, options};

/// Tried in each product.
const USUAL: [&str; 22] = [
    "insert into t values (77)",
    "update t set a = 77",
    "delete from t",
    "truncate table t",
    "create table u (a int)",
    "create temporary table u as select 1 as a",
    "drop table t",
    "alter table t add b int",
    "create view w as select 1 as a",
    "create index i on t (a)",
    "grant all on t to public",
    "select 1; insert into t values (77)",
    "select 1; commit; insert into t values (77)",
    "commit",
    "rollback",
    "begin",
    "start transaction read write",
    "prepare p from 'insert into t values (77)'",
    "select a from t for update",
    "select writes()",
    "select a + writes() from t where writes() = 1 order by writes()",
    "with x as (select writes() as a) select * from x",
];

const POSTGRES: [&str; 54] = [
    "select set_config('default_transaction_read_only', 'off', false); insert into t values (77)",
    "select set_config('transaction_read_only', 'off', false)",
    "copy (select 'pwned') to program 'cat > {dir}/program'",
    "copy t to '{dir}/file'",
    "copy t from program 'echo 77'",
    "set default_transaction_read_only = off; drop table t",
    "set transaction read write",
    "set session characteristics as transaction read write",
    "alter system set work_mem = '5MB'",
    "alter database d set work_mem = '5MB'",
    "alter role current_user set work_mem = '5MB'",
    "vacuum",
    "vacuum full t",
    "analyze t",
    "cluster",
    "reindex table t",
    "do $$ begin insert into t values (77); end $$",
    "call p()",
    "select * from writes()",
    "with x as (insert into t values (77) returning a) select * from x",
    "with x as (delete from t returning a) select * from x",
    "explain analyze insert into t values (77)",
    "select nextval('s')",
    "select setval('s', 77)",
    "select lo_create(77)",
    "select lo_from_bytea(0, 'a')",
    "select pg_notify('a', 'b')",
    "select pg_create_restore_point('a')",
    "select query_to_xml('insert into t values (77)', true, true, '')",
    "select a into u from t",
    "create function v() returns int language sql as 'insert into t values (77) returning a'",
    "comment on table t is 'pwned'",
    "create role pwned superuser",
    "declare c cursor with hold for select writes()",
    "select E'a\\' /* ', writes() /* */ */",
    "select (0.01::float8).pg_sleep",
    "select (77::bigint).pg_advisory_lock",
    "select x.pg_advisory_lock from generate_series(1::bigint, 2) x",
    "select g.writes from generate_series(1, 1) g",
    "select g.writes1 from generate_series(1, 1) g",
    "select (row(1)).writes1",
    "select ('insert into t values (77)'::text).ts_stat",
    "select median(77), if(77), conv(77)",
    "select 1 --\u{a0}\n, writes()",
    "select $€$ , ' $€$, writes() , $€$ ' , $€$",
    "select btrim.ts_stat from trim('select writes()::text::tsvector')",
    "select x.pg_sleep_until from current_timestamp x",
    "select j ?-- '\n k, writes() -- '\n from (select '{}'::jsonb as j, 'a' as k) q",
    "select public.u&\"writes\"()",
    "select g.u&\"writes1\" from generate_series(1, 1) as g(u)",
    "select \"coalesce\"(77)",
    "select @ +77",
    "select /*+ */ */ writes(), /* */ 1",
    // With quotes in it the name is longer than what the server keeps of it.
    "select g.\"writes\"\"123456789_123456789_123456789_123456789_123456789_1234567\" from \
     generate_series(1, 1) as g(\"writes\"\"123456789_123456789_123456789_123456789_123456789_1234567\")",
];

const MARIADB: [&str; 37] = [
    "select 1 into outfile '{dir}/outfile'",
    "select 1 into dumpfile '{dir}/dumpfile'",
    "select 1 /*! into outfile '{dir}/comment' */",
    "select 1 /*M!100000 into outfile '{dir}/mcomment' */",
    "select 'a\\' into outfile ''{dir}/quote'' -- '",
    "set session tx_read_only = 0",
    "set session transaction read write",
    "set global general_log = 1",
    "set global general_log_file = '{dir}/log'",
    "set @@session.tx_read_only = 0; insert into t values (77)",
    "load data infile '/etc/hostname' into table t",
    "replace into t values (77)",
    "insert into t values (77) returning a",
    "call p()",
    "do writes()",
    "begin not atomic insert into t values (77); end",
    "execute immediate 'insert into t values (77)'",
    "select nextval(s)",
    "select setval(s, 77)",
    "select next value for s",
    "analyze table t persistent for all",
    "optimize table t",
    "flush tables with read lock",
    "handler t open",
    "create or replace user pwned identified by 'a'",
    "xa start 'a'",
    "select sha256(77)",
    "select bool_and(77)",
    "select 'a\\' , writes() -- '",
    "select 1 --\u{a0}, writes()",
    "select 1 --1, writes()",
    "select \"a\" -- \", writes()",
    "select 'a\\', writes() -- ' from t",
    "select 1 as `あ`, 2 as ` , writes() -- `",
    "select @@`version`, writes() -- `",
    "select 1 # '\n as `a`, writes() -- '",
    "select `count`(77)",
];

/// Of a study: the text, and a setting beside it.
const STUDIES: [(&str, &str, &str); 10] = [
    ("select 1", "server.default_transaction_read_only", "off"),
    ("select 1", "server.tx_read_only", "0"),
    ("select lower(1)", "server.search_path", "evil, pg_catalog"),
    ("select 1", "server.session_authorization", "postgres"),
    ("select 1", "server.client_encoding", "SJIS"),
    ("select 1", "server.character_set_client", "sjis"),
    ("select 1", "server.tx_isolation", "SERIALIZABLE"),
    // With backslashes that escape, the quote ends the text.
    ("select 1", "server.application_name", "a\\'; insert into t values (77) --"),
    ("select 1", "server.work_mem", "4MB\\'; insert into t values (77) --"),
    ("insert into t values (77)", "clients", "1"),
];

fn cell(sql: &str, name: &str, value: &str) -> Cell {
    let value = value.parse::<i64>().map_or_else(|_| Setting::from(value), Setting::from);
    let settings = BTreeMap::from([
        ("workload".to_owned(), "sql".into()),
        ("sql".to_owned(), sql.into()),
        ("queries".to_owned(), 2.into()),
        (name.to_owned(), value),
    ]);
    let (place, protocol) = (BTreeMap::new(), Protocol::default());
    Cell { index: 0, block: 0, seed: 7, place, settings, protocol }
}

/// Tries all ways; how many were accepted.
fn accepted(target: &Target, ways: &[&str], files: &Path) -> Vec<String> {
    let mut accepted = Vec::new();
    for way in ways {
        let text = way.replace("{dir}", &files.display().to_string());
        let mut connection = target.connect().unwrap();
        let mut tried = |passed: bool, by: &str| {
            if passed {
                accepted.push(format!("{by}: {text}"));
            }
        };
        tried(connection.session().run(&text).is_ok(), "run");
        let session = connection.session();
        let prepared = session.prepare(&text);
        let run = prepared.and_then(|id| session.query(id, &[], &mut |_| Ok(())));
        tried(run.is_ok(), "prepared");
        tried(connection.plan(&text, Explain::Run).is_ok(), "plan");
    }
    accepted
}

/// Tries the ways of studies: none may run, but those whose setting the server does not know.
fn studied(engine: &str, target: &Target) {
    let mut engine = attached(engine, target.clone(), &EngineContext::default()).unwrap();
    for (sql, name, value) in STUDIES {
        let cell = cell(sql, name, value);
        let stop = Stop::new();
        let refused = engine.check(&cell).map_or(true, |check| check.impossible.is_some())
            || engine.prepare(&cell, &stop).is_err()
            || engine.run(&cell, &stop).is_err();
        assert!(refused, "{sql} with {name} = {value}");
    }
}

/// A superuser is refused, and one who is allowed writes nothing either.
fn superuser_is_held(superuser: Target, ways: &[&str], files: &Path) {
    let says = superuser.examine().unwrap_err().to_string();
    assert!(says.contains("--allow-superuser"), "{says}");
    let allowed = Target { superuser: true, ..superuser };
    let says = allowed.examine().unwrap_err().to_string();
    assert!(says.contains("functions that are not built in"), "{says}");
    assert_eq!(accepted(&allowed, ways, files), [""; 0]);
}

fn program(folders: &[&str], name: &str) -> Command {
    let path = folders.iter().map(|folder| Path::new(folder).join(name)).find(|p| p.is_file());
    Command::new(path.unwrap_or_else(|| panic!("{name} is not installed")))
}

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let says = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{says}");
    // A key that is new in every dump.
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let same = |line: &&str| !line.contains("restrict ") && !line.contains("Dump completed");
    text.lines().filter(same).collect::<Vec<_>>().join("\n")
}

fn listing(directory: &Path) -> Vec<String> {
    let names = std::fs::read_dir(directory).unwrap();
    names.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

/// A directory that everybody can write to.
fn open_directory() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    let open = directory();
    std::fs::set_permissions(open.path(), PermissionsExt::from_mode(0o777)).unwrap();
    open
}

#[test]
fn nothing_is_written_through_postgres() {
    let (home, files) = (directory(), open_directory());
    let server = postgres::Server::start(&options(home.path()), &Stop::new())
        .unwrap_or_else(|error| panic!("{error}"));
    server.create_database("d").unwrap();
    let write = |role: &str| {
        format!(
            "create table t (a int); insert into t values (1); create sequence s; \
             create function writes() returns int language plpgsql volatile as \
             'begin insert into t values (77); return 1; end'; \
             create function writes1(int) returns int language sql volatile as 'select writes()'; \
             create function median(int) returns int language sql volatile as 'select writes()'; \
             create function if(int) returns int language sql volatile as 'select writes()'; \
             create function conv(int) returns int language sql volatile as 'select writes()'; \
             create function \"coalesce\"(int) returns int language sql as 'select writes()'; \
             create operator @+ (rightarg = int, function = writes1); \
             create procedure p() language sql as 'insert into t values (77)'; \
             create view v as select writes() as a; alter table t owner to {role}; \
             alter function writes() owner to {role}; alter sequence s owner to {role}; \
             grant all on all tables in schema public to {role}"
        )
    };
    let mut owner = server.connect("d").unwrap();
    use workahead_workloads::session::Session;
    owner.run("create role reader login; create role keeper login").unwrap();
    owner.run("alter role keeper set standard_conforming_strings = off").unwrap();
    owner.run(&write("keeper")).unwrap();
    owner.run("grant select on all tables in schema public to reader").unwrap();
    let url = |who: &str| {
        format!("postgres://{who}@/d?host={}", home.path().join("server/run").display())
    };
    let dump = || {
        let mut dump = program(&["/usr/lib/postgresql/15/bin", "/usr/bin"], "pg_dumpall");
        let socket = server.directory().join("run");
        let text = output(dump.args(["-U", "workahead", "-h"]).arg(socket));
        let settings = server.directory().join("data/postgresql.auto.conf");
        (text, std::fs::read_to_string(settings).unwrap(), listing(files.path()))
    };
    let before = dump();
    assert!(before.0.contains("CREATE TABLE public.t"));
    let ways: Vec<&str> = USUAL.into_iter().chain(POSTGRES).collect();
    let view = ["select * from v", "table v"];
    for who in ["reader", "keeper"] {
        let target = Target::parse(&url(who), Access::ReadOnly).unwrap();
        let names = target.examine().unwrap();
        assert_eq!(names.is_some(), who == "keeper", "{names:?}");
        assert_eq!(accepted(&target, &ways, files.path()), [""; 0], "{who}");
        // The functions behind a view are stopped by the server.
        assert_eq!(accepted(&target, &view, files.path()), [""; 0], "{who}");
        studied("postgres", &target);
        assert_eq!(dump(), before, "{who}");
    }
    let superuser = Target::parse(&url("workahead"), Access::ReadOnly).unwrap();
    superuser_is_held(superuser, &ways, files.path());
    assert_eq!(dump(), before);
}

/// Objects that an owner of a database can put in the way of names: each raises an error.
const REPLACED: &str = "
    create schema evil; grant usage on schema evil to public;
    create function evil.current_setting(text) returns text language plpgsql as
      $$ begin raise 'replaced current_setting'; end $$;
    create function evil.sum(numeric) returns numeric language plpgsql as
      $$ begin raise 'replaced sum'; end $$;
    create function evil.equal(text, text) returns bool language plpgsql as
      $$ begin raise 'replaced ='; end $$;
    create function evil.equal(name, name) returns bool language plpgsql as
      $$ begin raise 'replaced ='; end $$;
    create function evil.join(text, text) returns text language plpgsql as
      $$ begin raise 'replaced ||'; end $$;
    create operator evil.= (leftarg = text, rightarg = text, function = evil.equal);
    create operator evil.= (leftarg = name, rightarg = name, function = evil.equal);
    create operator evil.<> (leftarg = name, rightarg = name, function = evil.equal);
    create operator evil.|| (leftarg = text, rightarg = text, function = evil.join);
    create schema \"PG_CATALOG\";
    create function public.substring(varchar, int) returns text language plpgsql as
      $$ begin raise 'replaced substring'; end $$;
    create function public.lower(varchar) returns text language plpgsql as
      $$ begin raise 'replaced lower'; end $$";

#[test]
fn no_function_is_taken_for_one_of_postgres_own() {
    use workahead_workloads::session::Session;
    let home = directory();
    let server = postgres::Server::start(&options(home.path()), &Stop::new())
        .unwrap_or_else(|error| panic!("{error}"));
    server.create_database("d").unwrap();
    let mut owner = server.connect("d").unwrap();
    owner.run("create role reader login").unwrap();
    owner.run(REPLACED).unwrap();
    let target = |who: &str| {
        let url = format!("postgres://{who}@/d?host={}", home.path().join("server/run").display());
        Target::parse(&url, Access::ReadOnly).unwrap()
    };
    let superuser = || Target { superuser: true, ..target("workahead") };
    owner.run("alter database d set search_path = evil, pg_catalog, public").unwrap();
    // Texts of ours mean the server's functions.
    let says = target("workahead").examine().unwrap_err().to_string();
    assert!(says.contains("a superuser's query can run programs"), "{says}");
    let says = superuser().examine().unwrap_err().to_string();
    assert!(says.contains("functions that are not built in"), "{says}");
    assert_eq!(target("reader").examine().unwrap(), None);
    for who in [target("reader"), superuser()] {
        workahead_engines::observer::Observer::begin(&who).unwrap();
    }
    // Texts of a study are not sent where they might mean others.
    let says = target("reader").connect().map(drop).unwrap_err().to_string();
    assert!(says.contains("has evil before pg_catalog"), "{says}");
    owner.run(r#"alter database d set search_path = "PG_CATALOG", pg_catalog"#).unwrap();
    let says = target("reader").connect().map(drop).unwrap_err().to_string();
    assert!(says.contains(r#"has "PG_CATALOG" before"#), "{says}");
    // A superuser in another's role is one nevertheless.
    owner.run("alter database d set role = reader").unwrap();
    let says = target("workahead").examine().unwrap_err().to_string();
    assert!(says.contains("a superuser's query can run programs"), "{says}");
    owner.run("reset role; alter database d reset role").unwrap();
    owner.run("alter database d set search_path = public").unwrap();
    let mut session = target("reader").connect().unwrap();
    let statement = session.prepare(
        "select lower(substring('bA'::varchar, 2)), sum(a) from generate_series(1, 3) as g(a)",
    );
    let mut seen = Vec::new();
    let row = &mut |row: workahead_workloads::session::Row<'_>| {
        seen.push((
            row.text(0)?.to_owned(),
            row.text(1).map(str::to_owned).or_else(|_| row.int(1).map(|sum| sum.to_string()))?,
        ));
        Ok(())
    };
    session.query(statement.unwrap(), &[], row).unwrap();
    assert_eq!(seen, [("a".to_owned(), "6".to_owned())]);
    // The owner's own session does call it.
    let says = owner.run("select lower('A'::varchar)").unwrap_err().to_string();
    assert!(says.contains("replaced lower"), "{says}");
}

#[test]
fn nothing_is_written_through_mariadb() {
    use workahead_workloads::session::Session;

    let (home, files) = (directory(), open_directory());
    let server = mariadb::Server::start(&options(home.path()), &Stop::new())
        .unwrap_or_else(|error| panic!("{error}"));
    server.create_database("d").unwrap();
    let mut owner = server.connect("d").unwrap();
    for text in [
        "create table t (a int)",
        "insert into t values (1)",
        "create sequence s",
        "create function writes() returns int begin insert into t values (77); return 1; end",
        "create function sha256(a int) returns int return writes()",
        "create function bool_and(a int) returns int return writes()",
        "create function `count`(a int) returns int return writes()",
        "create procedure p() insert into t values (77)",
        "create view v as select writes() as a",
        "create user reader@localhost",
        "create user keeper@localhost",
        "grant select, show view on d.* to reader@localhost",
        "grant execute on function d.writes to reader@localhost",
        "grant execute on function d.sha256 to reader@localhost",
        "grant execute on function d.bool_and to reader@localhost",
        "grant execute on function d.`count` to reader@localhost",
        "grant all on d.* to keeper@localhost",
    ] {
        owner.run(text).unwrap();
    }
    let socket = server.directory().join("run/mariadb.sock");
    let url = |who: &str| format!("mysql://{who}@/d?socket={}", socket.display());
    let dump = || {
        let mut dump = program(&["/usr/bin"], "mariadb-dump");
        let words = ["--no-defaults", "--user=root", "--all-databases", "--routines", "--events"];
        let text = output(dump.args(words).arg("--socket").arg(&socket));
        (text, listing(files.path()))
    };
    let before = dump();
    assert!(before.0.contains("CREATE TABLE `t`"));
    let ways: Vec<&str> = USUAL.into_iter().chain(MARIADB).collect();
    for who in ["reader", "keeper"] {
        let target = Target::parse(&url(who), Access::ReadOnly).unwrap();
        let names = target.examine().unwrap();
        assert!(names.is_some_and(|names| names.contains(who)), "{who}");
        assert_eq!(accepted(&target, &ways, files.path()), [""; 0], "{who}");
        assert_eq!(accepted(&target, &["select * from v"], files.path()), [""; 0], "{who}");
        studied("mariadb", &target);
        assert_eq!(dump(), before, "{who}");
    }
    let superuser = Target::parse(&url("root"), Access::ReadOnly).unwrap();
    superuser_is_held(superuser, &ways, files.path());
    assert_eq!(dump(), before);
}
