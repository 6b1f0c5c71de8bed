//! The 22 queries on real servers: the same texts, and the same answers.

use std::collections::BTreeMap;
use std::time::Duration;

use workahead_duckdb::{Database, Library};
use workahead_engines::connector::Connector;
use workahead_engines::fill::fill;
use workahead_engines::load::{Load, Until};
use workahead_study::engine::Stop;
use workahead_workloads::client::{Moment, Outcome, Workload};
use workahead_workloads::tpch::{Answer, Layout, Options, QUERIES, Queries, Texts, Tpch};

use crate::shared;

/// Every query's answer; the tables exist unless `data` is `Missing`.
fn answers(connector: &dyn Connector, options: Options, data: Data) -> BTreeMap<usize, Answer> {
    let workload = Queries::new(options).unwrap();
    if data == Data::Missing {
        fill(connector, &workload, &Stop::new()).unwrap_or_else(|error| panic!("{error}"));
    }
    let load = Load {
        workload: &workload,
        connector,
        clients: 1,
        rate: None,
        warmup: Duration::ZERO,
        until: Until::Count(QUERIES as u64),
        cpus: None,
    };
    load.drive(&Stop::new(), &mut |_| {}).unwrap_or_else(|error| panic!("{error}"));
    let mut connection = connector.open().unwrap();
    let found = workload.check(connection.session(), Moment::Drained).unwrap();
    assert_eq!(found.len(), QUERIES);
    assert!(found.iter().all(|condition| condition.outcome == Outcome::Holds), "{found:?}");
    workload.answers()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Data {
    Missing,
    There,
}

fn assert_same(one: &BTreeMap<usize, Answer>, other: &BTreeMap<usize, Answer>) {
    for (number, answer) in one {
        assert_eq!(answer.difference(&other[number]), None, "q{number:02}");
    }
}

#[test]
fn servers_layouts_and_texts_agree_on_every_answer() {
    let (postgres, mariadb) = (shared::postgres(), shared::mariadb());
    let tpch = Tpch::new(0.01).unwrap();
    let specified = || Options::of(tpch);
    let correlated = || Options {
        layout: Layout::ByShipDate,
        texts: Texts::DateCorrelated,
        ..Options::of(tpch)
    };
    postgres.create_database("tpch").unwrap();
    let of_postgres = answers(&postgres.target("tpch"), specified(), Data::Missing);
    let with_rows = of_postgres.values().filter(|answer| answer.rows() > 0).count();
    assert!(with_rows >= 19, "{with_rows} of 22 have rows at this scale");
    let rewritten = Options { texts: Texts::DateCorrelated, ..specified() };
    assert_same(&of_postgres, &answers(&postgres.target("tpch"), rewritten, Data::There));

    postgres.create_database("tpch_shipped").unwrap();
    let shipped = postgres.target("tpch_shipped");
    assert_same(&of_postgres, &answers(&shipped, correlated(), Data::Missing));

    mariadb.create_database("tpch").unwrap();
    assert_same(&of_postgres, &answers(&mariadb.target("tpch"), correlated(), Data::Missing));

    let library = Library::find(None).unwrap_or_else(|error| panic!("{error}"));
    let duckdb = Database::open(library, ":memory:".as_ref(), &[]).unwrap();
    assert_same(&of_postgres, &answers(&duckdb, specified(), Data::Missing));
    let rewritten = Options { texts: Texts::DateCorrelated, ..specified() };
    assert_same(&of_postgres, &answers(&duckdb, rewritten, Data::There));
    of_datafusion(&of_postgres, specified());
}

/// By DataFusion's own joins and by ours.
#[cfg(feature = "sql")]
fn of_datafusion(expected: &BTreeMap<usize, Answer>, options: Options) {
    let directory = tempfile::tempdir().unwrap();
    let mut data = Data::Missing;
    for joins in ["stock", "workahead"] {
        let settings = BTreeMap::from([("joins".to_owned(), joins.to_owned())]);
        let database = workahead_engines::datafusion::open(directory.path(), &settings).unwrap();
        assert_same(expected, &answers(&database, options.clone(), data));
        data = Data::There;
    }
}

/// The command's tests are run with the feature `sql`, and this engine with them.
#[cfg(not(feature = "sql"))]
fn of_datafusion(_expected: &BTreeMap<usize, Answer>, _options: Options) {}
