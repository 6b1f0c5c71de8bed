//! Rows, answers against a naive reckoning, texts, and clients on a recording session.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::session::recorder::{Recorder, Request};

fn small(query: Query) -> Options {
    Options {
        t1_rows: 5_000,
        t2_rows: 300,
        a2_values: 1_000,
        a3_values: 400,
        ..Options::of_paper(query)
    }
}

fn rows(options: Options, table: usize) -> Vec<Vec<i64>> {
    let mut rows = Vec::new();
    let workload = Dbmbench::new(options).unwrap();
    let pour = &mut |values: &[Value<'_>]| {
        assert_eq!(values.len(), 4);
        assert!(matches!(values[3], Value::Text(pad) if pad.len() == 88));
        let ints = values[..3].iter().map(|value| match value {
            Value::Int(int) => *int,
            other => panic!("{other:?}"),
        });
        rows.push(ints.collect());
        Ok(())
    };
    workload.rows(table, pour).unwrap();
    rows
}

/// The answer by the words of the query.
fn naive(query: Query, rows: &[Vec<i64>], range: Range) -> Answer {
    let within = |a2: i64| a2 > i64::from(range.low) && a2 < i64::from(range.high);
    let a3: Vec<i64> = rows.iter().filter(|row| within(row[1])).map(|row| row[2]).collect();
    match query {
        Query::Utpcc | Query::Unj => {
            Answer::average(a3.iter().sum::<i64>() as f64 / a3.len() as f64)
        }
        Query::Uss => {
            let mut answer = Answer::empty();
            let distinct: BTreeSet<i64> = a3.into_iter().collect();
            distinct.into_iter().for_each(|value| answer.push(value as u64));
            answer
        }
    }
}

#[test]
fn the_papers_sizes_and_bounds() {
    let options = Options::of_paper(Query::Uss);
    let workload = Dbmbench::new(options).unwrap();
    let range = workload.range(&mut Random::new(1, 0, 0));
    assert_eq!((range.low, range.high), (9_999, 12_000));
    assert_eq!(workload.answers().selected(range), 100_000, "what the paper sorts");
    for (query, count) in [(Query::Utpcc, 1_000), (Query::Unj, 200_000)] {
        let options = Options { query, ..Options::of_paper(query) };
        let workload = Dbmbench { options, shared: workload.shared.clone() };
        let range = workload.range(&mut Random::new(1, 0, 0));
        assert_eq!(workload.answers().selected(range), count);
    }
}

#[test]
fn values_stay_in_their_domains_and_a2_is_even() {
    let options = small(Query::Uss);
    let t1 = rows(options, 0);
    assert_eq!(t1.len(), 5_000);
    let mut counts = BTreeMap::new();
    for row in &t1 {
        assert!((1..=300).contains(&row[0]) && (1..=400).contains(&row[2]));
        *counts.entry(row[1]).or_insert(0) += 1;
    }
    assert_eq!((counts.len(), counts.keys().next()), (1_000, Some(&1)));
    assert!(counts.values().all(|count| *count == 5));
    assert_ne!(t1[..100], rows(Options { seed: 2, ..options }, 0)[..100]);
    assert_eq!(t1, rows(options, 0));
    let t2 = rows(options, 1);
    assert!(t2.iter().enumerate().all(|(index, row)| row[0] == index as i64 + 1));
    assert_eq!(t2.len(), 300);
}

#[test]
fn impossible_sizes_are_refused() {
    let options = small(Query::Uss);
    for wrong in [
        Options { t1_rows: 0, ..options },
        Options { a3_values: 0, ..options },
        Options { selectivity: 0.0, ..options },
        Options { selectivity: 1.5, ..options },
        Options { selectivity: f64::NAN, ..options },
        Options { t1_rows: 999, ..options },
    ] {
        assert!(Dbmbench::new(wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn texts_pin_the_papers_plan_where_there_is_one() {
    let text = |dialect, query| texts::query(dialect, &small(query));
    let postgres = text(Dialect::Postgres, Query::Utpcc);
    assert_eq!(postgres, "insert into result select avg(a3) from t1 where a2 > ? and a2 < ?");
    assert!(text(Dialect::MariaDb, Query::Utpcc).contains("t1 force index (t1_a2) where"));
    assert!(text(Dialect::MariaDb, Query::Unj).contains("select straight_join avg(t1.a3)"));
    for query in Query::ALL {
        assert!(pinning(Dialect::DuckDb, query, Plan::Paper).is_err());
        assert!(pinning(Dialect::DuckDb, query, Plan::Native).is_ok());
    }
    let arranged = |query, dialect| Dbmbench::new(small(query)).unwrap().arrange(dialect);
    assert!(arranged(Query::Utpcc, Dialect::MariaDb)[0].starts_with("create index"));
    assert_eq!(arranged(Query::Unj, Dialect::MariaDb), ["drop index if exists t1_a2 on t1"]);
}

/// A client on a session that answers as the rows give, but for a factor.
fn run(
    options: Options,
    factor: f64,
) -> (Result<crate::client::AttemptResult, SessionError>, Vec<Request>) {
    let workload = Dbmbench::new(options).unwrap();
    let all = rows(options, 0);
    let bound = |text: &str| text.trim_start_matches("Int(").trim_end_matches(')').parse().unwrap();
    let mut session = Recorder::new(Dialect::Postgres, move |request| {
        let Request::Statement(_, values) = request else { return Ok(Vec::new()) };
        let range = Range { low: bound(&values[0]), high: bound(&values[1]) };
        let answer = naive(options.query, &all, range);
        Ok(match options.query {
            Query::Uss => vec![vec![Value::Int(1)]; (answer.rows as f64 * factor) as usize],
            _ => vec![vec![Value::Real(answer.sum * factor)]],
        })
    });
    let mut client = workload.client(0);
    client.connected(&mut session).unwrap();
    client.next();
    (client.attempt(&mut session), session.log)
}

#[test]
fn clients_tell_right_answers_from_wrong_ones() {
    let options = Options { form: Form::ToClient, bounds: Bounds::Random, ..small(Query::Unj) };
    let (done, log) = run(options, 1.0);
    assert_eq!(done.unwrap().rows, 1);
    assert!(log.contains(&Request::Run("set enable_hashjoin = off".to_owned())));
    assert!(matches!(run(options, 1.01).0, Err(SessionError::Failed(_))));
    assert!(run(small(Query::Uss), 1.0).0.is_ok());
    assert!(matches!(run(small(Query::Uss), 0.9).0, Err(SessionError::Failed(_))));
}

#[test]
fn stored_rows_must_equal_the_acknowledged_ones() {
    let workload = Dbmbench::new(small(Query::Utpcc)).unwrap();
    *workload.stored() = StoredResults { queries: 2, rows: 2, sum: 10.0, selected: 10, unsure: 1 };
    let check = |rows, sum| {
        let answer = move |request: &Request| match request {
            Request::Statement(..) => Ok(vec![vec![Value::Int(rows), Value::Real(sum)]]),
            _ => Ok(Vec::new()),
        };
        let mut session = Recorder::new(Dialect::MariaDb, answer);
        let conditions = workload.check(&mut session, Moment::Drained).unwrap();
        conditions.iter().map(|condition| condition.outcome == Outcome::Holds).collect::<Vec<_>>()
    };
    assert_eq!(check(2, 10.00001), [true, true]);
    assert_eq!(check(3, 15.0), [true, true], "one that nobody knows of");
    for (rows, sum) in [(1, 5.0), (4, 20.0), (2, 11.0)] {
        assert_eq!(check(rows, sum), [true, false], "{rows} {sum}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn answers_are_those_of_a_naive_reckoning(
        query in prop::sample::select(Query::ALL.to_vec()),
        seed in any::<u64>(),
        selectivity in 0.002_f64..1.0,
    ) {
        let options = Options { seed, selectivity, bounds: Bounds::Random, ..small(query) };
        let workload = Dbmbench::new(options).unwrap();
        let all = rows(options, 0);
        let mut random = Random::new(seed, 9, 9);
        for _ in 0..4 {
            let range = workload.range(&mut random);
            let share = workload.answers().selected(range) as f64 / 5_000.0;
            prop_assert!((share - selectivity).abs() <= 0.0006, "{share} {selectivity}");
            let answer = workload.answers().of_query(query, range);
            prop_assert!(answer.agrees(&naive(query, &all, range)));
        }
    }
}
