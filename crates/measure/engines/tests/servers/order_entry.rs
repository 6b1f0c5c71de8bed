//! Order entry on real servers: the mix keeps every condition, every condition finds what breaks
//! it, and a server that was killed has every order that it acknowledged.

use std::time::Duration;

use workahead_engines::attach::Target;
use workahead_engines::fill::fill;
use workahead_engines::load::{End, Load, LoadResult, Until};
use workahead_engines::postgres;
use workahead_study::engine::Stop;
use workahead_workloads::client::{Condition, Moment, Outcome, Workload};
use workahead_workloads::order_entry::{Isolation, Kind, Options, OrderEntry, Population};

use crate::shared::{self, directory, options};

fn workload(warehouses: u32, isolation: Isolation) -> OrderEntry {
    let population = Population::tiny(warehouses);
    OrderEntry::new(Options { population, isolation, ..Options::of(warehouses) }).unwrap()
}

fn drive(workload: &OrderEntry, target: &Target, until: Until) -> LoadResult {
    let load = Load {
        workload,
        connector: target,
        clients: 4,
        rate: None,
        warmup: Duration::ZERO,
        until,
        cpus: None,
    };
    load.drive(&Stop::new(), &mut |_| {}).unwrap_or_else(|error| panic!("{target:?}: {error}"))
}

fn check(workload: &OrderEntry, target: &Target, when: Moment) -> Vec<Condition> {
    let mut connection = target.connect().unwrap();
    workload.check(connection.session(), when).unwrap_or_else(|error| panic!("{error}"))
}

fn broken(conditions: &[Condition]) -> Vec<&str> {
    let broken = |condition: &&Condition| matches!(condition.outcome, Outcome::Broken(_));
    conditions.iter().filter(broken).map(|condition| condition.name.as_str()).collect()
}

/// Loads, runs and checks; then checks once more by the database alone.
fn runs_clean(target: &Target, isolation: Isolation) {
    let workload = workload(2, isolation);
    fill(target, &workload, &Stop::new()).unwrap_or_else(|error| panic!("{target:?}: {error}"));
    let loaded = check(&workload, target, Moment::Loaded);
    assert!(loaded.iter().all(|found| found.outcome == Outcome::Holds), "{loaded:?}");
    let driven = drive(&workload, target, Until::Count(600));
    assert_eq!((driven.done(), driven.end), (600, End::Done));
    let drained = check(&workload, target, Moment::Drained);
    assert_eq!(broken(&drained), [""; 0], "{target:?} {isolation:?}: {drained:?}");
    let counts = workload.counts();
    assert_eq!(counts.kinds.iter().sum::<u64>(), 600);
    assert!(Kind::ALL.iter().all(|kind| counts.of(*kind) > 0), "{counts:?}");
    // Another run on the same rows has other inputs; its results must add up too.
    let again = drive(&workload, target, Until::Count(200));
    assert_eq!(again.done(), 200);
    assert_eq!(broken(&check(&workload, target, Moment::Drained)), [""; 0]);
}

#[test]
fn the_mix_keeps_all_conditions_on_postgres() {
    let server = shared::postgres();
    for (name, isolation) in [
        ("orders_committed", Isolation::ReadCommitted),
        ("orders_repeatable", Isolation::RepeatableRead),
        ("orders_serializable", Isolation::Serializable),
    ] {
        server.create_database(name).unwrap();
        runs_clean(&server.target(name), isolation);
    }
}

#[test]
fn the_mix_keeps_all_conditions_on_mariadb() {
    let server = shared::mariadb();
    for (name, isolation) in [
        ("orders_repeatable", Isolation::RepeatableRead),
        ("orders_serializable", Isolation::Serializable),
    ] {
        server.create_database(name).unwrap();
        runs_clean(&server.target(name), isolation);
    }
}

/// Damage and the conditions that it breaks, in a database that was just loaded.
const DAMAGE: [(&str, &[&str]); 12] = [
    ("update warehouse set w_ytd = w_ytd + 0.01", &["condition 1", "condition 8"]),
    ("update district set d_next_o_id = d_next_o_id + 1 where d_id = 3", &["condition 2"]),
    (
        "delete from new_order where no_o_id = 50 and no_d_id = 2",
        &["condition 3", "condition 5", "condition 11"],
    ),
    (
        "update orders set o_ol_cnt = o_ol_cnt + 1 where o_id = 7 and o_d_id = 9",
        &["condition 4", "condition 6"],
    ),
    (
        "update orders set o_carrier_id = 1 where o_id = 60 and o_d_id = 1",
        &["condition 5", "condition 7"],
    ),
    (
        "delete from order_line where ol_o_id = 1 and ol_number = 1 and ol_d_id = 1",
        &["condition 4", "condition 6"],
    ),
    (
        "update order_line set ol_delivery_d = null where ol_o_id = 2 and ol_d_id = 5",
        &["condition 7"],
    ),
    (
        "update history set h_amount = h_amount + 1 where h_c_id = 3 and h_d_id = 4",
        &["condition 8", "condition 9", "condition 10"],
    ),
    ("update district set d_ytd = d_ytd + 1 where d_id = 1", &["condition 1", "condition 9"]),
    (
        "update customer set c_balance = c_balance + 0.01 where c_id = 5 and c_d_id = 5",
        &["condition 10", "condition 12"],
    ),
    (
        "insert into new_order (no_o_id, no_d_id, no_w_id) values (42, 7, 1)",
        &["condition 5", "condition 11"],
    ),
    ("update customer set c_ytd_payment = c_ytd_payment + 1 where c_id = 1", &["condition 12"]),
];

/// Checks that each damage breaks its conditions and no others.
fn damage_is_found(target: &Target) {
    let workload = workload(1, Isolation::RepeatableRead);
    fill(target, &workload, &Stop::new()).unwrap_or_else(|error| panic!("{target:?}: {error}"));
    let mut connection = target.connect().unwrap();
    let session = connection.session();
    let tables = ["warehouse", "district", "new_order", "orders", "order_line", "history"];
    for table in tables.into_iter().chain(["customer"]) {
        session.run(&format!("create table kept_{table} as select * from {table}")).unwrap();
    }
    for (statement, expected) in DAMAGE {
        session.run(statement).unwrap();
        let found = check(&workload, target, Moment::Loaded);
        assert_eq!(broken(&found), expected, "{statement}: {found:?}");
        let table = tables
            .into_iter()
            .chain(["customer"])
            .find(|table| statement.split_whitespace().any(|word| word == *table));
        let table = table.unwrap();
        session.run(&format!("delete from {table}")).unwrap();
        session.run(&format!("insert into {table} select * from kept_{table}")).unwrap();
    }
    assert_eq!(broken(&check(&workload, target, Moment::Loaded)), [""; 0]);
}

#[test]
fn every_condition_finds_what_breaks_it() {
    let (postgres, mariadb) = (shared::postgres(), shared::mariadb());
    postgres.create_database("damaged").unwrap();
    damage_is_found(&postgres.target("damaged"));
    mariadb.create_database("damaged").unwrap();
    damage_is_found(&mariadb.target("damaged"));
}

#[test]
fn a_server_that_was_killed_has_every_order_that_it_acknowledged() {
    let directory = directory();
    let server_options = options(directory.path());
    let mut server = postgres::Server::start(&server_options, &Stop::new())
        .unwrap_or_else(|error| panic!("{error}"));
    server.create_database("killed").unwrap();
    let target = server.target("killed");
    let workload = workload(2, Isolation::RepeatableRead);
    fill(&target, &workload, &Stop::new()).unwrap();
    let driven = std::thread::scope(|scope| {
        let driven =
            scope.spawn(|| drive(&workload, &target, Until::Time(Duration::from_secs(60))));
        // Killed in the middle of work: once there are orders to lose.
        while workload.counts().of(Kind::NewOrder) < 50 && !driven.is_finished() {
            std::thread::sleep(Duration::from_millis(5));
        }
        server.kill();
        driven.join().unwrap()
    });
    assert!(matches!(driven.end, End::Gone { .. }), "{:?}", driven.end);
    server.restart(&server_options, &Stop::new()).unwrap();
    let found = check(&workload, &target, Moment::Drained);
    assert_eq!(broken(&found), [""; 0], "{found:?}");
    // And it continues.
    assert_eq!(drive(&workload, &target, Until::Count(100)).done(), 100);
    assert_eq!(broken(&check(&workload, &target, Moment::Drained)), [""; 0]);
}
