//! Studies from somebody else: whatever their statements and settings are, they run no program, and
//! neither read nor write a file that is not the database's own.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

use tempfile::TempDir;
use workahead_engines::postgres;
use workahead_engines::server::Options;
use workahead_study::cell::Cell;
use workahead_study::engine::Stop;
use workahead_study::protocol::Protocol;
use workahead_study::setting::Setting;
use workahead_workloads::session::Session;

use crate::shared::{directory, engine, fails, runs};

/// A place where any user may write, and the name of a file in it.
fn open_place(home: &TempDir) -> (std::path::PathBuf, String) {
    let place = home.path().join("open");
    fs::create_dir(&place).unwrap();
    fs::set_permissions(&place, Permissions::from_mode(0o777)).unwrap();
    let out = place.join("out").to_str().unwrap().to_owned();
    (place, out)
}

/// Each statement fails and leaves nothing; so does a harmless one with each of the settings.
fn harm_nothing(product: &str, home: &TempDir, statements: &[String], settings: &[(&str, &str)]) {
    let place = home.path().join("open");
    let mut engine = engine(product, home.path(), None).unwrap();
    let is_empty = || fs::read_dir(&place).unwrap().next().is_none();
    for statement in statements {
        let said = fails(engine.as_mut(), &[("sql", statement)]);
        assert!(is_empty(), "{statement}: {said}");
        let refused = ["disabled", "annot", "denied", "must be", "permission", "privilege", "user"];
        assert!(refused.iter().any(|word| said.contains(word)), "{statement}: {said}");
    }
    for (name, value) in settings {
        let said = fails(engine.as_mut(), &[("sql", "select 1"), (name, value)]);
        assert!(is_empty(), "{name}: {said}");
    }
    engine.finish().unwrap();
}

#[test]
fn duckdb_touches_no_file_but_its_own() {
    let home = directory();
    let (_, out) = open_place(&home);
    let copy = format!("copy (select 1) to '{out}'");
    // DuckDB has its open file on a list of its own of those that may be written.
    let own = home.path().join("duckdb/current.duckdb");
    let own = own.display();
    let statements = [
        copy.clone(),
        format!("attach '{out}' as other"),
        "select * from read_csv('/etc/passwd')".to_owned(),
        format!("set global enable_external_access = true; {copy}"),
        format!("set global allowed_paths = ['{out}']; {copy}"),
        format!("set global log_query_path = '{out}'"),
        format!("load '{out}'"),
        "set max_expression_depth = 1000000".to_owned(),
        "set enable_profiling = 'query_tree'".to_owned(),
        "call enable_peg_parser()".to_owned(),
        "set enable_progress_bar = true".to_owned(),
        "set logging_storage = 'stdout'".to_owned(),
        format!("call enable_logging(storage = 'file', storage_path = '{out}'); select 1"),
        "select * from \"query\" ('from enable_' || 'logging(storage = ''stdout'')')".to_owned(),
        "from query/**/('from enable_log' || 'ging(storage = ''stdout'')')".to_owned(),
        "from query--\n('from enable_log' || 'ging(storage = ''stdout'')')".to_owned(),
        "from query\u{200b}('from enable_log' || 'ging(storage = ''stdout'')')".to_owned(),
        "from query\u{2060}\u{feff}\"\"('select 1')".to_owned(),
        "from json_execute_serialized_sql/**/('{}')".to_owned(),
        "select any_value(a) EXPORT_STATE from (select 'x' as a)".to_owned(),
        "select variant_bytes_to_variant('x'::blob)::varchar".to_owned(),
        "select finalize (x) from (select 'x'::blob as x)".to_owned(),
        "from read_duckdb('current.duckdb', table_name = 't')".to_owned(),
        "select * from glob ('*')".to_owned(),
        "from parquet_scan ('current.duckdb')".to_owned(),
        format!("from parquet_metadata('{own}')"),
        format!("from \"parquet_full_metadata\"('{own}')"),
        format!("select * from parquet_bloom_probe('{own}', 'x', 1)"),
        "from arrow_scan(1, 2, 3)".to_owned(),
        "from sql_auto_complete('((((')".to_owned(),
        "set threads = 20000; select 1".to_owned(),
        "set allow_parser_override_extension = 'strict'".to_owned(),
        "pragma threads = 20000".to_owned(),
        // The database's own file and the directory beside it are not exceptions.
        format!("copy (select 'x'::blob) to '{own}' (format blob, use_tmp_file false)"),
        format!(
            "explain analyze copy (select 'x'::blob) to '{own}' (format blob, use_tmp_file false)"
        ),
        format!("prepare p as copy (select 'x'::blob) to '{own}' (format blob)"),
        "select 1; prepare p as select 1; execute p".to_owned(),
        "attach ':memory:' as other".to_owned(),
        "export database 'current.duckdb.tmp/x'".to_owned(),
        "import database 'current.duckdb.tmp/x'".to_owned(),
        "install json".to_owned(),
        "checkpoint".to_owned(),
    ];
    let settings = [
        ("server.threads", "1025"),
        ("server.allow_parser_override_extension", "strict"),
        ("server.max_expression_depth", "1000000"),
        ("server.enable_external_access", "true"),
        ("server.allowed_paths", out.as_str()),
        ("server.log_query_path", &out),
        ("server.temp_directory", &out),
    ];
    harm_nothing("duckdb", &home, &statements, &settings);
}

#[test]
#[cfg(feature = "sql")]
fn datafusion_touches_no_file_but_its_own() {
    let home = directory();
    let (_, out) = open_place(&home);
    let copy = format!("copy (values (1)) to '{out}' stored as csv");
    let statements = [
        copy.clone(),
        format!("select 1; {copy}"),
        format!("explain analyze {copy}"),
        "create external table p stored as csv location '/etc/passwd'".to_owned(),
        format!("set datafusion.runtime.temp_directory = '{out}'"),
        format!("SET \"datafusion\".\"Runtime\".temp_directory = '{out}'"),
    ];
    let settings = [("server.datafusion.runtime.temp_directory", out.as_str())];
    harm_nothing("datafusion", &home, &statements, &settings);
    let mut engine = engine("datafusion", home.path(), None).unwrap();
    let said = fails(engine.as_mut(), &[("sql", "select * from '/etc/passwd'")]);
    assert!(said.contains("not found"), "{said}");
    let chain = format!("select 1{}", " + 1".repeat(30_000));
    let said = fails(engine.as_mut(), &[("sql", &chain)]);
    assert!(said.contains("nests deeper than"), "{said}");
}

/// Others could put links into it, through which root would write.
#[test]
fn a_directory_that_others_can_write_to_is_refused() {
    let home = directory();
    let open = home.path().join("duckdb");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
    let victim = home.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    symlink(&victim, open.join("loaded-nothing")).unwrap();
    let mut engine = engine("duckdb", home.path(), None).unwrap();
    let said = fails(engine.as_mut(), &[("sql", "select 1")]);
    assert!(said.contains("others can write to it"), "{said}");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
}

#[test]
fn postgres_runs_no_program() {
    let home = directory();
    let (_, out) = open_place(&home);
    let program = format!("copy (select 1) to program 'cat > {out}'");
    let statements = [
        program.clone(),
        format!("copy (select 1) to '{out}'"),
        format!("select lo_export(lo_from_bytea(0, 'x'), '{out}')"),
        "select pg_read_file('/etc/passwd')".to_owned(),
        format!("set role workahead; {program}"),
        format!("reset session authorization; {program}"),
        format!("alter role current_user superuser; {program}"),
        format!("alter system set archive_command = 'id > {out}'"),
    ];
    let command = format!("id > {out}");
    let settings = [
        ("server.archive_command", command.as_str()),
        ("server.shared_preload_libraries", &out),
        ("server.listen_addresses", "*"),
        ("server.log_directory", &out),
    ];
    harm_nothing("postgres", &home, &statements, &settings);
}

#[test]
fn memory_of_loops_is_counted() {
    let home = directory();
    let engine = engine("postgres", home.path(), None).unwrap();
    let settings = [
        ("workload", Setting::from("sql")),
        ("sql", "select 1".into()),
        ("loops", 4096.into()),
        ("loop_bytes", (4 << 30_i64).into()),
    ];
    let settings = settings.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    let (place, protocol) = (BTreeMap::new(), Protocol::default());
    let cell = Cell { index: 0, block: 0, seed: 7, place, settings, protocol };
    assert!(engine.check(&cell).unwrap().memory_bytes >= 4096 << 32);
}

/// A study's settings for its clients are not there for the next one.
#[test]
fn a_study_leaves_the_next_one_nothing() {
    for (product, sets, needs) in [
        (
            "postgres",
            "alter role workahead_client set statement_timeout = '1ms'",
            "select pg_sleep(0.05)",
        ),
        ("mariadb", "set password = password('x')", "select sleep(0.05)"),
        ("postgres", "alter database current is_template true", "select count(*) from t"),
        (
            "mariadb",
            "xa start 'a'; insert into t values (2); xa end 'a'; xa prepare 'a'",
            "select count(*) from t",
        ),
    ] {
        let home = directory();
        for statement in [sets, needs] {
            let mut engine = engine(product, home.path(), None).unwrap();
            // Other data each time, to which its user is admitted anew.
            let made = home.path().join(format!("{}.sql", statement.len()));
            let tables =
                format!("create table t (a int); create table t{} (a int);", statement.len());
            fs::write(&made, tables).unwrap();
            let settings = [("sql", statement), ("set_up", made.to_str().unwrap())];
            match runs(engine.as_mut(), &settings) {
                Err(error) if statement == needs => panic!("{product}: {error}"),
                // Its own clients may not come in again.
                _ => {}
            }
            engine.finish().unwrap();
        }
    }
}

/// The server's own vacuum would run the functions of their indexes, in the data as it is kept.
#[test]
fn nothing_is_due_in_the_data_that_a_study_made() {
    let home = directory();
    let made = home.path().join("made.sql");
    let runs_after = |set_up: &str| {
        fs::write(&made, set_up).unwrap();
        let mut engine = engine("postgres", home.path(), None).unwrap();
        let ran = runs(engine.as_mut(), &[("sql", "select 1"), ("set_up", made.to_str().unwrap())]);
        engine.finish().unwrap();
        ran
    };
    let indexed = "create table t (a int); create index on t (public.f(a)); \
                   create index on t using brin (public.f(a)) with (pages_per_range = 1); \
                   insert into t select generate_series(1, 5000); delete from t where a > 4000";
    let function = |body: &str| {
        format!(
            "create table other (a int); \
             create function g() returns int language plpgsql as $$ begin {body} return 1; end $$; \
             create function f(a int) returns int language plpgsql immutable \
             as $$ begin perform public.g(); return a; end $$; {indexed}"
        )
    };
    runs_after(&function("")).unwrap();
    let options = Options { directory: home.path().join("postgres"), ..Options::default() };
    let server = postgres::Server::start(&options, &Stop::new()).unwrap();
    let mut owner = server.connect("postgres").unwrap();
    let kept = "select datname::text from pg_database where datname like 'nothing%'";
    let kept = owner.texts(kept).unwrap().concat();
    owner.run(&format!("alter database {kept} allow_connections true")).unwrap();
    let due = "select relname::text from pg_stat_user_tables where last_analyze is null \
               or last_vacuum is null or n_mod_since_analyze + n_dead_tup + n_ins_since_vacuum > 0";
    assert_eq!(server.connect(&kept).unwrap().texts(due), Ok(Vec::new()));
    server.stop();
    // Their actions then may not make more due: this one writes while it is analysed only.
    let writes = "if current_setting('transaction_read_only')::bool then \
                  insert into public.other values (1); end if;";
    let said = runs_after(&function(writes)).unwrap_err().to_string();
    assert!(said.contains("cannot execute INSERT in a read-only transaction"), "{said}");
}

#[test]
fn mariadb_touches_no_file_but_its_own() {
    let home = directory();
    let (place, out) = open_place(&home);
    let statements = [
        format!("select 1 into outfile '{out}'"),
        format!("set global general_log_file = '{out}'"),
        "install soname 'ha_federatedx'".to_owned(),
        // The table is made where all others are.
        format!(
            "create table t (a int) data directory = '{}'; grant file on *.* to current_user",
            place.display()
        ),
    ];
    let settings = [
        ("server.general_log_file", out.as_str()),
        ("server.plugin-load-add", &out),
        ("server.init_file", &out),
    ];
    harm_nothing("mariadb", &home, &statements, &settings);
}
