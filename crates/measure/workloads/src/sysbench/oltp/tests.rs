//! Statements of a transaction against what sysbench prints, rows, and races.

use super::*;
use crate::session::Value;
use crate::session::recorder::{Recorder, Request};

fn workload(options: Options) -> Oltp {
    Oltp::new(options).unwrap()
}

/// Runs transactions and gives the statements, without preparing.
fn requests(options: Options, transactions: usize) -> Vec<Request> {
    let mut session = Recorder::new(Dialect::MariaDb, |_| Ok(vec![vec![Value::Int(1)]]));
    let mut client = workload(options).client(0);
    client.connected(&mut session).unwrap();
    session.log.clear();
    for _ in 0..transactions {
        client.next();
        let before = session.log.len();
        let done = client.attempt(&mut session).unwrap();
        assert_eq!(done.statements as usize, session.log.len() - before);
    }
    session.log
}

fn counts(log: &[Request]) -> Counts {
    let mut counts = Counts { read: 0, write: 0, other: 0 };
    for request in log {
        match request {
            Request::Statement(text, _) if text.starts_with("select") => counts.read += 1,
            Request::Statement(..) => counts.write += 1,
            _ => counts.other += 1,
        }
    }
    counts
}

#[test]
fn transactions_have_the_statements_that_sysbench_prints() {
    // Public outputs of 0.4.12: 800 transactions, 11200 read, 4000 write, 1600 other.
    let old = requests(Options::of(Flavour::V04), 800);
    assert_eq!(counts(&old), Counts { read: 11_200, write: 4_000, other: 1_600 });
    let new = requests(Options::of(Flavour::V10), 100);
    assert_eq!(counts(&new), Counts { read: 1_400, write: 400, other: 200 });
    for (flavour, script) in [
        (Flavour::V04, Script::ReadWrite),
        (Flavour::V10, Script::ReadWrite),
        (Flavour::V10, Script::ReadOnly),
        (Flavour::V04, Script::PointSelect),
    ] {
        let options = Options { script, ..Options::of(flavour) };
        assert_eq!(counts(&requests(options, 1)), workload(options).counts());
    }
}

/// The sum follows what was answered where nothing changes, and is nothing else.
#[test]
fn answers_add_up_where_nothing_changes() {
    let sum = |script, answer: i64| {
        let mut session =
            Recorder::new(Dialect::MariaDb, move |_| Ok(vec![vec![Value::Int(answer)]]));
        let mut client = workload(Options { script, ..Options::of(Flavour::V10) }).client(0);
        client.connected(&mut session).unwrap();
        client.next();
        client.attempt(&mut session).unwrap().checksum
    };
    for script in [Script::ReadOnly, Script::PointSelect] {
        assert_eq!(sum(script, 1), sum(script, 1));
        assert_ne!(sum(script, 1), sum(script, 2));
    }
    assert_eq!(sum(Script::ReadWrite, 1), 0);
}

fn words(request: &Request) -> (String, Vec<i64>) {
    let Request::Statement(text, values) = request else {
        return (format!("{request:?}"), Vec::new());
    };
    let int = |value: &String| value.strip_prefix("Int(")?.strip_suffix(')')?.parse().ok();
    (
        text.split(" sbtest").next().unwrap_or_default().to_owned(),
        values.iter().filter_map(int).collect(),
    )
}

#[test]
fn the_old_form_updates_what_it_deletes_and_keeps_ranges_inside() {
    let options = Options { rows: 1_000, ..Options::of(Flavour::V04) };
    for transaction in requests(options, 200).chunks(21) {
        let words: Vec<(String, Vec<i64>)> = transaction.iter().map(words).collect();
        let (extra, delete, insert) = (&words[17], &words[18], &words[19]);
        assert_eq!((extra.0.as_str(), delete.0.as_str()), ("update", "delete from"));
        assert_eq!((extra.1[0], delete.1[0]), (insert.1[0], insert.1[0]));
        assert_eq!(insert.1[1], 0, "k");
        for (range, rows) in [(11, 100), (12, 100), (13, 100), (14, 101)] {
            let (from, to) = (words[range].1[0], words[range].1[1]);
            assert!((1..=900).contains(&from) && to - from + 1 == rows, "{from} {to}");
        }
    }
}

#[test]
fn the_new_form_lets_ranges_run_over_and_spreads_over_tables() {
    let distribution = Distribution::Uniform;
    let options = Options { rows: 200, tables: 4, distribution, ..Options::of(Flavour::V10) };
    let log = requests(options, 200);
    let ranges = log.chunks(20).map(|transaction| words(&transaction[11]).1[1]);
    assert!(ranges.clone().any(|to| to > 200));
    assert!(ranges.max().unwrap() <= 299);
    for table in 1..=4 {
        let name = format!("sbtest{table} ");
        let named = |request: &&Request| match request {
            Request::Statement(text, _) => text.contains(&name),
            _ => false,
        };
        assert!(log.iter().filter(named).count() > 500);
    }
}

#[test]
fn rows_are_alike_or_random() {
    let rows = |flavour| {
        let mut rows = Vec::new();
        let options = Options { rows: 500, ..Options::of(flavour) };
        let pour = &mut |row: &[Value<'_>]| {
            let [Value::Int(id), Value::Int(k), Value::Text(c), Value::Text(pad)] = row else {
                panic!("{row:?}")
            };
            rows.push((*id, *k, (*c).to_owned(), (*pad).to_owned()));
            Ok(())
        };
        workload(options).rows(0, pour).unwrap();
        assert!((1..).zip(&rows).all(|(id, row)| row.0 == id));
        rows
    };
    let old = rows(Flavour::V04);
    assert!(old.iter().all(|row| row.1 == 0 && row.2 == " " && row.3 == old[0].3));
    let new = rows(Flavour::V10);
    assert!(new.iter().all(|row| row.2.len() == 119 && row.3.len() == 59));
    assert!(new.iter().all(|row| (1..=500).contains(&row.1)));
    assert_ne!(new[0].2, new[1].2);
    assert_eq!(new, rows(Flavour::V10));
}

#[test]
fn a_race_of_replacements_is_tried_again_as_it_was() {
    let mut inserts = 0;
    let mut session = Recorder::new(Dialect::Postgres, move |request| match request {
        Request::Statement(text, _) if text.starts_with("insert") => {
            inserts += 1;
            match inserts {
                1 => Err(SessionError::Duplicate("sbtest1_pkey".to_owned())),
                _ => Ok(vec![vec![Value::Int(1)]]),
            }
        }
        _ => Ok(Vec::new()),
    });
    let mut client = workload(Options::of(Flavour::V10)).client(0);
    assert!(matches!(client.attempt(&mut session), Err(SessionError::Failed(_))), "not yet");
    client.connected(&mut session).unwrap();
    client.next();
    session.log.clear();
    assert!(matches!(client.attempt(&mut session), Err(SessionError::Retry(_))));
    let first: Vec<Request> = session.log.drain(..).collect();
    assert_eq!(first.last(), Some(&Request::Rollback));
    client.attempt(&mut session).unwrap();
    assert_eq!(first[..first.len() - 1], session.log[..session.log.len() - 1]);
}

#[test]
fn a_lost_row_is_found() {
    let check = |row: [i64; 3]| {
        let mut session = Recorder::new(Dialect::Postgres, move |request| match request {
            Request::Statement(..) => Ok(vec![row.map(Value::Int).to_vec()]),
            _ => Ok(Vec::new()),
        });
        let workload = workload(Options::of(Flavour::V10));
        workload.check(&mut session, Moment::Drained).unwrap()[0].outcome == Outcome::Holds
    };
    assert!(check([10_000, 1, 10_000]));
    for wrong in [[9_999, 1, 10_000], [10_000, 1, 10_001], [0, 0, 0]] {
        assert!(!check(wrong));
    }
}

#[test]
fn impossible_sizes_are_refused() {
    for wrong in [
        Options { rows: 0, ..Options::of(Flavour::V10) },
        Options { tables: 0, ..Options::of(Flavour::V10) },
        Options { tables: 2, ..Options::of(Flavour::V04) },
    ] {
        assert!(Oltp::new(wrong).is_err(), "{wrong:?}");
    }
}
