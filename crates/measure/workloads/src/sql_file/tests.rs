//! Cutting, reading or writing, order, and answers that change.

use std::fs;

use proptest::prelude::*;

use super::*;
use crate::session::Value;
use crate::session::recorder::{Recorder, Request};

fn texts(text: &str, dialect: Dialect) -> Vec<String> {
    split(text, dialect).unwrap().into_iter().map(|statement| statement.text).collect()
}

#[test]
fn a_comment_ends_with_its_line() {
    let text = "select 1 -- x\rdelete from t";
    for (dialect, reads) in
        [(Dialect::Postgres, false), (Dialect::DuckDb, false), (Dialect::MariaDb, true)]
    {
        let statements = split(text, dialect).unwrap();
        assert_eq!(statements.len(), 1);
        assert_eq!(statements[0].only_reads, reads, "{dialect:?}");
    }
}

#[test]
fn statements_end_at_semicolons_that_are_code() {
    let text = "select 1;\n select 'a;b', \"c;\"\"d\" ;;\n-- no; statement\nselect 2";
    let found = split(text, Dialect::Postgres).unwrap();
    let expected = ["select 1", "select 'a;b', \"c;\"\"d\"", "select 2"];
    assert_eq!(texts(text, Dialect::Postgres), expected);
    assert_eq!(found.iter().map(|statement| statement.line).collect::<Vec<_>>(), [1, 2, 4]);
    assert_eq!(texts("/* a; */ -- b;\n ; \n", Dialect::DuckDb), [""; 0]);
}

#[test]
fn quotes_are_those_of_the_dialect() {
    let dollar = "select $$a;b$$, $x$ ; $$ ; $x$; select $1";
    assert_eq!(texts(dollar, Dialect::Postgres).len(), 2);
    assert_eq!(texts("select `a;b`; select 'it\\'s;'; # c;\nselect 3", Dialect::MariaDb).len(), 3);
    assert_eq!(texts("select E'it\\'s;'; select 'a\\'; select 2", Dialect::Postgres).len(), 3);
    assert_eq!(texts("select 'it''s; so'; select 2", Dialect::DuckDb).len(), 2);
    assert_eq!(texts("select 1 /* a /* b */ ; */; select 2", Dialect::Postgres).len(), 2);
    assert_eq!(texts("select 1 /* a /* b */; select 2", Dialect::MariaDb).len(), 2);
    assert_eq!(texts("select 2--1; select 3", Dialect::MariaDb).len(), 2, "minus minus");
    assert_eq!(texts("select 2--1; select 3", Dialect::Postgres).len(), 1, "a comment");
    assert_eq!(texts("select a$b$c; select 'd$b$'", Dialect::Postgres).len(), 2);
    assert_eq!(texts("select a$$b; select '$$'", Dialect::Postgres).len(), 2);
    assert_eq!(texts("select 1$$;$$; select 2", Dialect::Postgres).len(), 2);
    // An E within a word doesn't begin an E'…', whatever the word.
    for word in ["name", "like", "éE", "_e", "a$e"] {
        let text = format!("select {word}'\\'; create table t (); -- '");
        let found = texts(&text, Dialect::Postgres);
        assert_eq!(found.len(), 2, "{word}: {found:?}");
    }
    for dialect in [Dialect::Postgres, Dialect::DuckDb, Dialect::DataFusion] {
        assert_eq!(texts("select e'it\\'s;'; select 2", dialect).len(), 2);
        assert_eq!(texts("select 1-E'\\'' ; select 2", dialect).len(), 2);
    }
}

#[test]
fn escapes_last_as_long_as_their_string() {
    let escaped = |dialect, text: &str| texts(&format!("select {text}; select 2"), dialect);
    for dialect in [Dialect::Postgres, Dialect::DuckDb] {
        for text in [
            "E'a'\n 'b\\';c'",
            "e'a' \t\r\n\n'b\\';c'",
            "E'a' -- it's;\n 'b\\';c'",
            "E'a'\n--;\n--\n'b'\n'c\\';d'",
            "E'it''s\\';'",
        ] {
            assert_eq!(escaped(dialect, text).len(), 2, "{dialect}: {text}");
        }
        // Without a line break it is not a string any more, nor after another comment.
        for text in ["E'a' 'b\\'; select 'c'", "E'a'\n/**/'b\\'; select 'c'"] {
            assert_eq!(escaped(dialect, text).len(), 3, "{dialect}: {text}");
        }
        assert_eq!(escaped(dialect, "'a'\n'b\\'; select 'c'").len(), 3);
    }
    assert_eq!(escaped(Dialect::DataFusion, "E'it''s\\';'").len(), 2);
    assert_eq!(escaped(Dialect::DataFusion, "E'a'\n'b\\'; select 'c'").len(), 3);
    // To MariaDB every string has escapes, and an E before one is its column.
    assert_eq!(escaped(Dialect::MariaDb, "E'a\\';'").len(), 2);
}

#[test]
fn any_letter_may_stand_in_a_tag() {
    for tag in ["€", "_€1", "²", "é"] {
        let text = format!("select ${tag}$a;b${tag}$; select 2");
        assert_eq!(texts(&text, Dialect::Postgres).len(), 2, "{tag}");
    }
    assert_eq!(texts("select $1$; select $1$", Dialect::Postgres).len(), 2, "parameters");
}

#[test]
fn what_has_no_end_is_named_by_its_line() {
    for text in ["select 1;\nselect 'a", "\n/* a", "\nselect $x$ $y$", "\nselect \"a"] {
        let error = split(text, Dialect::Postgres).unwrap_err();
        assert!(error.starts_with("line 2: "), "{error}");
    }
}

#[test]
fn writing_and_reading_statements_are_distinguished() {
    let only_reads = |text| split(text, Dialect::Postgres).unwrap()[0].only_reads;
    for text in [
        "select * from orders",
        "-- update\nWITH a AS (select 'insert into') select * from a",
        "values (1), (2)",
        "explain analyze select 1",
        "select replace(a, 'x', 'y'), updated_at from t /* delete */",
        "show work_mem",
        "select \"update\" from t",
    ] {
        assert!(only_reads(text), "{text}");
    }
    for text in [
        "insert into t values (1)",
        "with a as (delete from t returning *) select * from a",
        "select * into b from a",
        "select * from a for update",
        "select * from a for share",
        "explain analyze delete from t",
        "set work_mem = '1GB'",
        "call f()",
        "do $$ begin end $$",
        "begin",
    ] {
        assert!(!only_reads(text), "{text}");
    }
    assert!(only_reads("(select 1) union (select 2)"));
    let hidden = split("select 1 /*! into outfile 'x' */", Dialect::MariaDb).unwrap();
    assert!(!hidden[0].only_reads, "MariaDB runs what such a comment says");
}

fn file(text: &str, order: Order) -> SqlFile {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mine.sql");
    fs::write(&path, text).unwrap();
    SqlFile::read(&path, Dialect::Postgres, order, 1).unwrap()
}

#[test]
fn files_that_are_not_workloads_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let read = |name: &str, bytes: &[u8]| {
        let path = directory.path().join(name);
        fs::write(&path, bytes).unwrap();
        SqlFile::read(&path, Dialect::Postgres, Order::AsWritten, 1).unwrap_err().to_string()
    };
    assert!(read("empty.sql", b"-- nothing\n").contains("no statement"));
    assert!(read("bytes.sql", &[0xff, 0xfe]).contains("bytes.sql"));
    assert!(read("open.sql", b"select '").contains("line 1"));
    let missing = directory.path().join("missing.sql");
    assert!(SqlFile::read(&missing, Dialect::Postgres, Order::AsWritten, 1).is_err());
}

#[test]
fn clients_run_all_statements_in_their_order() {
    let text = "select 1; insert into t values (2); select 3; select 4; select 5";
    let written = file(text, Order::AsWritten);
    assert_eq!(written.writing().unwrap().line, 1);
    assert_eq!(written.kinds()[1], "line-1-insert");
    let kinds = |file: &SqlFile, number| {
        let mut client = file.client(number);
        (0..10).map(|_| client.next().kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&written, 0), [0, 1, 2, 3, 4, 0, 1, 2, 3, 4]);
    let shuffled = file(text, Order::Shuffled);
    let mut first = kinds(&shuffled, 0);
    assert_eq!(first, kinds(&shuffled, 0));
    assert_ne!(first, kinds(&shuffled, 1));
    first[..5].sort_unstable();
    assert_eq!(first[..5], [0, 1, 2, 3, 4]);
}

#[test]
fn an_answer_that_changes_is_found() {
    let run = |text, answers: fn(i64) -> Vec<i64>| {
        let file = file(text, Order::AsWritten);
        let mut round = 0;
        let mut session = Recorder::new(Dialect::Postgres, move |request| {
            round += i64::from(matches!(request, Request::Statement(..)));
            Ok(answers(round).into_iter().map(|value| vec![Value::Int(value)]).collect())
        });
        let mut client = file.client(0);
        client.connected(&mut session).unwrap();
        for _ in 0..2 {
            client.next();
            client.attempt(&mut session).unwrap();
        }
        let mut conditions = file.check(&mut session, Moment::Drained).unwrap();
        conditions.swap_remove(0).outcome
    };
    assert_eq!(run("select 1", |_| vec![1, 2]), Outcome::Holds);
    let reordered = |round| if round == 1 { vec![1, 2] } else { vec![2, 1] };
    assert_eq!(run("select 1", reordered), Outcome::Holds);
    assert!(matches!(run("select 1", |round| vec![round]), Outcome::Broken(_)));
}

proptest! {
    #[test]
    fn any_text_is_cut_or_refused(
        text in "[a-z;'\"`$#*/\\\\ \n-]{0,60}",
        dialect in prop::sample::select(Dialect::ALL.to_vec()),
    ) {
        if let Ok(statements) = split(&text, dialect) {
            for statement in statements {
                prop_assert!(text.contains(&statement.text));
                prop_assert!(statement.line <= text.lines().count().max(1));
                prop_assert_eq!(statement.text.trim(), statement.text.as_str());
            }
        }
    }

    #[test]
    fn quoted_semicolons_never_cut(inside in "[a-z; -]{0,20}", count in 1_usize..5) {
        let one = format!("select '{inside}', $q${inside}$q$ /* {inside} */");
        let text = vec![one; count].join(";\n");
        let found = split(&text, Dialect::Postgres).unwrap();
        prop_assert_eq!(found.len(), count);
        prop_assert_eq!(found.last().unwrap().line, count);
    }
}

#[test]
fn statements_run_on_another_workloads_data_after_their_own_set_up() {
    use crate::sysbench::{Flavour, oltp};
    let of = |text| SqlFile::of_text(text, Dialect::Postgres, Order::AsWritten, 1).unwrap();
    let data = oltp::Oltp::new(oltp::Options { rows: 3, ..oltp::Options::of(Flavour::V10) });
    let data: Arc<dyn Workload> = Arc::new(data.unwrap());
    let set_up = of("create view v as select k from sbtest1; analyze");
    let reads = OnData::new(of("select k from v"), Some(data.clone()), Some(&set_up));
    assert_eq!(reads.tables(Dialect::Postgres).unwrap()[0].name, "sbtest1");
    assert_eq!(reads.set_up(Dialect::Postgres).unwrap().len(), 2);
    let mut rows = 0;
    let mut count = |_: &[Value<'_>]| {
        rows += 1;
        Ok(())
    };
    reads.rows(0, &mut count).unwrap();
    assert_eq!(rows, 3);
    assert_eq!(reads.reset(Dialect::Postgres), Some(Vec::new()), "what only reads needs no copy");
    assert_eq!(OnData::new(of("delete from v"), Some(data), None).reset(Dialect::Postgres), None);
    let alone = OnData::new(of("select 1"), None, None);
    assert!(alone.tables(Dialect::Postgres).unwrap().is_empty());
    assert_eq!(alone.kinds(), ["line-1-select"]);
    assert_eq!(alone.explained(Dialect::Postgres).unwrap().len(), 1);
}
