//! Queries, and what looks like one.

use super::*;

fn check(text: &str, dialect: Dialect) -> Result<String, String> {
    super::check(text, dialect, Functions::All)
}

const BOTH: [Dialect; 2] = [Dialect::Postgres, Dialect::MariaDb];

#[test]
fn queries_pass() {
    for text in [
        "SELECT 1",
        "select a, count(*) from t where b like '%;drop table t%' group by a order by 2 limit 5",
        "with x as (select 1 as a) select * from x union all (select 2 except select 3)",
        "select sum(case when a > 1 then b else 0 end) over (partition by c order by d) from t;",
        "select extract(year from d), substring(s from 1 for 2), cast(a as char(3)) from t",
        "select * from a join b on a.x = b.x left join (select 1 as y) c on c.y = b.y",
        "select exists (select * from t where t.a = u.a) from u /* the end */",
    ] {
        for dialect in BOTH {
            assert_eq!(check(text, dialect).err(), None, "{dialect:?} {text}");
        }
    }
    let postgres = [
        "select date '1998-12-01' - interval '90' day, a::numeric(12,2) from t",
        "select pg_catalog.lower(a), -b, @ c, $1::int from t, generate_series(1, 3) as g",
        "select string_agg(a, ',' order by b) filter (where c) from t",
        "values (1, 2), (3, 4)",
    ];
    for text in postgres {
        assert_eq!(check(text, Dialect::Postgres).err(), None, "{text}");
    }
    for text in ["select `a`, if(b > ?, 1, 2) from t use index (i)", "select date_format(d, '%Y')"]
    {
        assert_eq!(check(text, Dialect::MariaDb).err(), None, "{text}");
    }
}

#[test]
fn functions_are_sent_with_their_schema() {
    for (text, sent) in [
        ("select Lower(a), pg_catalog.lower(b)", "SELECT pg_catalog.Lower(a), pg_catalog.lower(b)"),
        ("select * from generate_series(1, 2)", "SELECT * FROM pg_catalog.generate_series(1, 2)"),
        (
            "select coalesce(a, sum(b) over ()), current_date, trim(c)",
            "SELECT coalesce(a, pg_catalog.sum(b) OVER ()), current_date, TRIM(c)",
        ),
    ] {
        assert_eq!(check(text, Dialect::Postgres).as_deref(), Ok(sent));
    }
    assert_eq!(check("select lower(a)", Dialect::MariaDb).as_deref(), Ok("SELECT lower(a)"));
}

#[test]
fn statements_other_than_queries_are_refused() {
    for text in [
        "insert into t values (1)",
        "update t set a = 1",
        "delete from t",
        "create table u (a int)",
        "drop table t",
        "truncate table t",
        "begin",
        "commit",
        "rollback",
        "start transaction read write",
        "set a = 1",
        "call f()",
        "grant select on t to u",
        "analyze table t",
        "explain analyze delete from t",
        "prepare p as delete from t",
        "execute p",
        "lock table t",
        "select 1; select 2",
        "select 1; drop table t",
        "select a from t for update",
        "select a into u from t",
        "select f(1)",
        "select other.lower('a')",
        "select load_file('/etc/passwd'), sleep(1), benchmark(1, 2), get_lock('a', 1)",
        "(select a from t) union (select f(a) from t)",
        "select * from t where a in (select f(1))",
        "select a from t order by f(a)",
        "with x as (select f(1)) select 1",
        "select case when f(1) then 1 end",
        "this is not SQL",
        "",
    ] {
        for dialect in BOTH {
            let says = check(text, dialect).expect_err(text);
            assert!(!says.contains('\n'), "{says}");
        }
    }
}

#[test]
fn the_ways_out_of_postgres_are_refused() {
    for text in [
        "select set_config('default_transaction_read_only', 'off', false)",
        "copy (select 'a') to program 'cat'",
        "copy t to '/tmp/t'",
        "set default_transaction_read_only = off",
        "reset all",
        "alter system set work_mem = '5MB'",
        "vacuum",
        "listen a",
        "notify a",
        "select pg_notify('a', 'b')",
        "do $$ begin end $$",
        "select * from dblink('', 'drop table t') as x(a int)",
        "select nextval('s')",
        "select setval('s', 1)",
        "select lo_import('/etc/passwd')",
        "select pg_terminate_backend(1), pg_reload_conf(), pg_switch_wal()",
        "select query_to_xml('delete from t returning 1', true, true, '')",
        "select \"Lower\"('a')",
        "select if(true, 1, 2), median(a), conv('a', 16, 2)",
        "select (0.5::float8).pg_sleep",
        "select ('select 1'::text).ts_stat",
        "select x.pg_advisory_lock from generate_series(1::bigint, 2) x",
        "select g.writes from generate_series(1, 1) g",
        "select btrim.ts_stat from trim('select 1') ",
        "select x.pg_sleep_until from current_timestamp x",
        "select 1 from t, session_user",
        "select $€$ , ' $€$, pg_sleep(0.3) , $€$ ' , $€$",
        "select public.lower('a')",
        "select convert('a', evil(1)) from t",
        "select convert('a', set_config(x, y, false)) from (values ('a', 'b')) as t(x, y)",
        "select 1 operator(public.+) 2",
        "with x as (delete from t returning *) select * from x",
        "with x as (insert into t values (1) returning *) select * from x",
        "table t; drop table t",
        "declare c cursor for select 1",
        "refresh materialized view v",
        "create temporary table u as select 1",
        "select * into temporary u from t",
    ] {
        check(text, Dialect::Postgres).expect_err(text);
    }
}

/// A name that MySQL has no function of is a stored one's there.
#[test]
fn functions_that_only_mariadb_has_are_refused_on_mysql() {
    for text in ["select nvl(a, 1) from t", "select median(a) over () from t", "select chr(65)"] {
        super::check(text, Dialect::MariaDb, Functions::OfMySql).expect_err(text);
    }
    for text in ["select ifnull(a, 1) from t", "select nvl(a, 1) from t"] {
        super::check(text, Dialect::MariaDb, Functions::All).expect(text);
    }
    super::check("select ifnull(a, 1)", Dialect::MariaDb, Functions::OfMySql).unwrap();
}

#[test]
fn the_ways_out_of_mariadb_are_refused() {
    for text in [
        "select 1 into outfile '/tmp/a'",
        "select 1 into dumpfile '/tmp/a'",
        "select 1 into @a",
        "select 1 /*! into outfile '/tmp/a' */",
        "select 1 /*M! into @a */",
        "select 'a\\' into outfile '/tmp/x' -- '",
        "set global general_log = 1",
        "set @@session.tx_read_only = 0",
        "handler t open",
        "load data infile 'a' into table t",
        "replace into t values (1)",
        "select nextval(s)",
        "select next value for s",
        "do sleep(1)",
        "flush tables",
        "kill 1",
        "install plugin a soname 'b'",
        "select a from t lock in share mode",
        "select release_lock('a')",
        "select sha256('a'), bool_and(a), split_part('a', 'b', 1)",
        "select 'a\\' , sleep(0.5) -- '",
        "select 1 --\u{a0}, sleep(0.5)",
        "select 1 --1, sleep(0.5)",
        "select \"a\" -- \", sleep(0.5)",
    ] {
        check(text, Dialect::MariaDb).expect_err(text);
    }
}

#[test]
fn the_server_is_sent_what_the_parser_understood() {
    let sent = |text: &str| check(text, Dialect::Postgres);
    // To PostgreSQL `--` begins a comment, and `u&"…"` is one name.
    let text = "select j ?-- '\n k, pg_sleep(0.3) -- '\n from t";
    assert!(!sent(text).is_ok_and(|anew| anew.contains("?--")), "{:?}", sent(text));
    let anew = sent("select g.u&\"pg_sleep\" from generate_series(1, 2) as g(u)").unwrap();
    assert!(anew.contains("g.u & \"pg_sleep\""), "{anew}");
    assert_eq!(sent("select 1 -- a\n, 2 /* b */").unwrap(), "SELECT 1, 2");
    assert!(!sent("select - -1").is_ok_and(|anew| anew.contains("--")));
    assert_eq!(sent("select 1 == 2").unwrap(), "SELECT 1 = 2");
    sent("select 1 <=> 2").expect_err("an operator that PostgreSQL has not");
    for text in ["select 1 /*+ Set(work_mem '1') */", "select /*+ a */ 1", "select --+ a\n 1"] {
        assert!(!sent(text).is_ok_and(|anew| anew.contains('+')), "{:?}", sent(text));
    }
    sent("select @ +1").expect_err("`@+` may be a user's");
    sent("select @ +1 ^ 2").expect_err("`@+` may be a user's");
    sent("select \"coalesce\"(1)").expect_err("a user's");
    check("select `count`(1)", Dialect::MariaDb).expect_err("a stored function");
    // The server keeps 63 bytes of them.
    for name in [format!("{}{}", "\"\"".repeat(50), "a".repeat(20)), "é".repeat(20)] {
        let text = format!("select g.\"{name}\" from generate_series(1, 1) as g(\"{name}\")");
        sent(&text).expect_err("a name that is cut");
    }
    let long = "a".repeat(63);
    let text = format!("select {long}.pg_sleep from generate_series(1, 1) as {long}b(u)");
    sent(&text).expect_err("a name that is cut");
    for text in ["select @@`version`, sleep(0.3) -- `", "select 1 # '\n as a -- '"] {
        check(text, Dialect::MariaDb).expect_err(text);
    }
}

#[test]
fn deep_and_long_texts_are_harmless() {
    let chain = format!("select 1{}", "+1".repeat(30_000));
    assert_eq!(check(&chain, Dialect::Postgres).err(), None);
    let nested = format!("select {}1{}", "(".repeat(20_000), ")".repeat(20_000));
    assert!(check(&nested, Dialect::Postgres).is_err());
    // Each level takes the parser longer than the one before: 45 of them took hours.
    for nested in ["cast(", "a(", "(", "array["] {
        let begun = std::time::Instant::now();
        for levels in [LEVELS_MAX - 1, 45] {
            check(&format!("select {}1", nested.repeat(levels)), Dialect::Postgres).unwrap_err();
        }
        assert!(begun.elapsed().as_secs() < 10, "{nested}");
    }
    let says = check(&format!("select '{}'", "a".repeat(70_000)), Dialect::Postgres).unwrap_err();
    assert!(says.contains("64 KiB"), "{says}");
}

/// Queries that the workloads send to an attached server.
#[test]
fn our_own_queries_pass() {
    use workahead_workloads::client::Workload;
    use workahead_workloads::tpch;

    for dialect in BOTH {
        let workload =
            tpch::Queries::new(tpch::Options::of(tpch::Tpch::new(0.01).unwrap())).unwrap();
        for explained in workload.explained(dialect).unwrap() {
            assert_eq!(check(&explained.text, dialect).err(), None, "{}", explained.name);
        }
    }
}
