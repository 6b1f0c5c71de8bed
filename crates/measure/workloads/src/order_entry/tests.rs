//! The population's counts and domains, inputs, and the transactions' control flow on a recording
//! session. The conditions and the whole mix run against real servers in the engines' tests.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::client::{AttemptResult, Outcome};
use crate::session::recorder::{Recorder, Request};
use crate::session::{Decimal, Value};

fn tiny(warehouses: u32) -> Options {
    Options { population: Population::tiny(warehouses), ..Options::of(warehouses) }
}

fn workload(options: Options) -> OrderEntry {
    OrderEntry::new(options).unwrap()
}

/// A value that owns its text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Cell {
    Null,
    Units(i64),
    Text(String),
}

fn cell(value: &Value<'_>) -> Cell {
    match value {
        Value::Null => Cell::Null,
        Value::Int(int) => Cell::Units(*int),
        Value::Decimal(Decimal { units, .. }) => Cell::Units(*units),
        Value::Timestamp(moment) => Cell::Units(moment.0),
        Value::Text(text) => Cell::Text((*text).to_owned()),
        other => panic!("no table has {other:?}"),
    }
}

fn rows(workload: &OrderEntry, table: usize) -> Vec<Vec<Cell>> {
    let columns = workload.tables(Dialect::Postgres).unwrap()[table].columns.len();
    let mut rows = Vec::new();
    let pour = &mut |row: &[Value<'_>]| {
        assert_eq!(row.len(), columns, "table {table}");
        rows.push(row.iter().map(cell).collect());
        Ok(())
    };
    workload.rows(table, pour).unwrap();
    rows
}

fn units(row: &[Cell], column: usize) -> i64 {
    match &row[column] {
        Cell::Units(units) => *units,
        other => panic!("column {column} is {other:?}"),
    }
}

fn text(row: &[Cell], column: usize) -> &str {
    match &row[column] {
        Cell::Text(text) => text,
        other => panic!("column {column} is {other:?}"),
    }
}

#[test]
fn tables_have_their_rows_and_keys() {
    let workload = workload(tiny(2));
    let counts = [2, 20, 2_000, 4_000, 1_200, 1_200, 1_200, 20 * 18];
    for (table, count) in counts.into_iter().enumerate() {
        assert_eq!(rows(&workload, table).len(), count, "table {table}");
    }
    // Keys rise in the order that MariaDB stores them in.
    for (table, key) in [
        (schema::DISTRICT, &[1, 0][..]),
        (schema::STOCK, &[1, 0]),
        (schema::CUSTOMER, &[2, 1, 0]),
        (schema::ORDERS, &[2, 1, 0]),
        (schema::NEW_ORDER, &[2, 1, 0]),
        (schema::ORDER_LINE, &[2, 1, 0, 3]),
    ] {
        let rows = rows(&workload, table);
        let keys = rows.iter().map(|row| key.iter().map(|column| units(row, *column)).collect());
        let keys: Vec<Vec<i64>> = keys.collect();
        assert!(keys.windows(2).all(|pair| pair[0] < pair[1]), "table {table}");
    }
}

#[test]
fn rows_are_the_seeds() {
    for table in [schema::ITEM, schema::CUSTOMER, schema::ORDER_LINE] {
        let of = |seed| rows(&workload(Options { seed, ..tiny(1) }), table);
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
        // More warehouses add rows and change none; what terminals type does not matter.
        let more = rows(&workload(Options { run: 7, ..tiny(2) }), table);
        assert_eq!(of(1), more[..of(1).len()]);
    }
}

#[test]
fn three_tables_agree_on_orders() {
    let workload = workload(tiny(1));
    let mut lines = BTreeMap::new();
    for row in rows(&workload, schema::ORDER_LINE) {
        let open = row[6] == Cell::Null;
        let amount = units(&row, 8);
        assert!(if open { (1..=999_999).contains(&amount) } else { amount == 0 });
        assert!((1..=2_000).contains(&units(&row, 4)) && text(&row, 9).len() == 24);
        *lines.entry((units(&row, 1), units(&row, 0), open)).or_insert(0) += 1;
    }
    let orders = rows(&workload, schema::ORDERS);
    for row in &orders {
        let open = row[5] == Cell::Null;
        let count = lines[&(units(row, 1), units(row, 0), open)];
        assert_eq!(count, units(row, 6));
        assert!((5..=15).contains(&count));
        assert_eq!(open, units(row, 0) > 42, "the last three tenths are open");
    }
    let customers: BTreeSet<i64> = orders[..60].iter().map(|row| units(row, 3)).collect();
    assert_eq!(customers.len(), 60, "each customer of a district ordered once");
    let in_order = orders[..60].windows(2).all(|pair| units(&pair[0], 3) < units(&pair[1], 3));
    assert!(!in_order, "but not in turn");
}

#[test]
fn customers_and_stock_are_as_specified() {
    let workload = workload(tiny(1));
    let customers = rows(&workload, schema::CUSTOMER);
    let bad = customers.iter().filter(|row| text(row, 13) == "BC").count();
    assert!((30..=90).contains(&bad), "{bad} of 600");
    assert_eq!(text(&customers[0], 5), "BARBARBAR");
    assert_eq!(text(&customers[59], 5), population::last_name(59));
    for row in &customers {
        assert!(
            (300..=500).contains(&text(row, 20).len()) && (8..=16).contains(&text(row, 3).len())
        );
        assert_eq!((units(row, 16), units(row, 17)), (-1_000, 1_000));
    }
    for row in rows(&workload, schema::STOCK) {
        assert!((10..=100).contains(&units(&row, 2)));
        assert!((3..13).all(|district| text(&row, district).len() == 24));
    }
    let warehouse = &rows(&workload, schema::WAREHOUSE)[0];
    assert_eq!(units(warehouse, 8), 60 * 10 * 1_000, "what its customers paid");
    assert!((0..=2_000).contains(&units(warehouse, 7)));
}

fn typed(options: Options, client: u32, count: usize) -> Vec<Input> {
    let workload = workload(options);
    let mut typist = input::Typist {
        population: options.population,
        constants: workload.constants,
        warehouse: client % options.population.warehouses + 1,
        district: 4,
        random: workload.random(INPUTS, client),
    };
    let choose = mix::Chooser::new(Mix::Weights, Pauses::None, workload.random(CHOICES, client));
    let mut chooser = choose;
    (0..count).map(|_| typist.input(chooser.next().0)).collect()
}

#[test]
fn inputs_pass_their_own_checks_and_wrong_ones_do_not() {
    let mut counts = InputCounts::default();
    typed(Options::of(10), 3, 400_000).iter().for_each(|input| counts.count(input));
    for condition in counts.check(10) {
        assert!(!matches!(condition.outcome, Outcome::Broken(_)), "{condition:?}");
    }
    let shares = counts.shares();
    assert!((shares[0] - 0.45).abs() < 0.01 && (shares[4] - 0.04).abs() < 0.005);
    let broken = |counts: InputCounts| {
        let broken = |condition: &Condition| matches!(condition.outcome, Outcome::Broken(_));
        counts.check(10).iter().filter(|condition| broken(condition)).count()
    };
    assert_eq!(broken(InputCounts { rollbacks: 0, ..counts }), 1);
    assert_eq!(broken(InputCounts { payments_remote: 0, lines: counts.lines * 2, ..counts }), 3);
    // Few inputs say neither.
    let few = InputCounts { kinds: [50, 50, 5, 5, 5], lines: 500, ..InputCounts::default() };
    assert!(few.check(10).iter().any(|found| matches!(found.outcome, Outcome::Skipped(_))));
    let mut twice = counts;
    twice += counts;
    assert_eq!(twice.of(Kind::NewOrder), 2 * counts.of(Kind::NewOrder));
}

#[test]
fn clients_and_runs_type_differently_and_repeatably() {
    let first = |options, client| typed(options, client, 20);
    assert_eq!(first(tiny(1), 0), first(tiny(1), 0));
    assert_ne!(first(tiny(1), 0), first(tiny(1), 1));
    assert_ne!(first(tiny(1), 0), first(Options { run: 2, ..tiny(1) }, 0));
}

proptest! {
    #[test]
    fn inputs_stay_in_their_domains(seed: u64, client in 0_u32..40, warehouses in 1_u32..4) {
        let options = Options { seed, ..tiny(warehouses) };
        let home = client % warehouses + 1;
        for input in typed(options, client, 200) {
            match input {
                Input::NewOrder(order) => {
                    prop_assert_eq!(order.warehouse, home);
                    prop_assert!((1..=10).contains(&order.district));
                    prop_assert!((1..=60).contains(&order.customer));
                    prop_assert!((5..=15).contains(&order.lines.len()));
                    let (last, others) = order.lines.split_last().unwrap();
                    prop_assert_eq!(last.item == 2_001, order.rolls_back);
                    prop_assert!(others.iter().all(|line| (1..=2_000).contains(&line.item)));
                    for line in &order.lines {
                        prop_assert!((1..=warehouses).contains(&line.supply_warehouse));
                        prop_assert!((1..=10).contains(&line.quantity));
                    }
                }
                Input::Payment(payment) => {
                    let own = payment.customer_warehouse == home;
                    prop_assert!((1..=warehouses).contains(&payment.customer_warehouse));
                    prop_assert!(!own || warehouses == 1
                        || payment.customer_district == payment.district);
                    prop_assert!((100..=500_000).contains(&payment.cents));
                }
                Input::OrderStatus(status) => match status.who {
                    CustomerKey::Number(number) => prop_assert!((1..=60).contains(&number)),
                    CustomerKey::Name(name) => prop_assert!(name < 60),
                },
                Input::Delivery(delivery) => prop_assert!((1..=10).contains(&delivery.carrier)),
                Input::StockLevel(stock) => prop_assert!((10..=20).contains(&stock.threshold)),
            }
        }
    }
}

/// Answers every statement so that the transactions go through; item 2,001 does not exist.
fn answer(request: &Request) -> crate::session::recorder::Response {
    let Request::Statement(text, values) = request else { return Ok(Vec::new()) };
    let int = |int| vec![vec![Value::Int(int)]];
    let has = |words: &str| text.contains(words);
    Ok(match () {
        () if has("from item") && values[0] == "Int(2001)" => Vec::new(),
        () if has("from item") => {
            vec![vec![Value::Text("9.99"), Value::Text("n"), Value::Text("d")]]
        }
        () if has("select s_quantity") => {
            vec![vec![Value::Int(12), Value::Text("data"), Value::Text("district's")]]
        }
        () if has("select d_next_o_id, d_tax") => vec![vec![Value::Int(61), Value::Text("0.1000")]],
        () if has("select d_next_o_id from") => int(61),
        () if has("select c_id from") => (31..=34).map(|id| vec![Value::Int(id)]).collect(),
        () if has("select c_first") => {
            let mut row = vec![Value::Text("x"); 14];
            row[10] = Value::Text("BC");
            vec![row]
        }
        () if has("select ol_i_id") => vec![vec![Value::Int(1); 5]; 7],
        () if has("select c_data") => vec![vec![Value::Text("old")]],
        () if has("w_name") || has("d_name") => vec![vec![Value::Text("name"); 6]],
        () => vec![vec![Value::Int(1); 8]],
    })
}

/// Runs inputs until one is of a sort, and gives that one's log.
fn run(
    wanted: impl Fn(&[Request], &AttemptResult) -> bool,
    answer: impl FnMut(&Request) -> crate::session::recorder::Response + Send + 'static,
) -> (Vec<Request>, AttemptResult) {
    let workload = workload(tiny(1));
    let mut session = Recorder::new(Dialect::Postgres, answer);
    let mut client = workload.client(0);
    client.connected(&mut session).unwrap();
    for _ in 0..5_000 {
        session.log.clear();
        client.next();
        let done = client.attempt(&mut session).unwrap();
        if wanted(&session.log, &done) {
            return (session.log, done);
        }
    }
    panic!("no such input in 5000");
}

fn count(log: &[Request], words: &str) -> usize {
    let has =
        |request: &&Request| matches!(request, Request::Statement(text, _) if text.contains(words));
    log.iter().filter(has).count()
}

#[test]
fn a_rolled_back_order_has_done_everything_before() {
    let (log, done) = run(|_, done| done.rolled_back, answer);
    let lines = count(&log, "from item");
    assert!((5..=15).contains(&lines));
    assert_eq!(count(&log, "insert into order_line"), lines - 1, "all but the last item");
    assert_eq!(count(&log, "update stock"), lines - 1);
    assert_eq!(count(&log, "insert into orders"), 1);
    assert_eq!((log.first(), log.last()), (Some(&Request::Begin), Some(&Request::Rollback)));
    assert_eq!(done.statements as usize, log.len());
}

#[test]
fn an_order_takes_its_lines_out_of_stock_and_commits() {
    let (log, done) = run(|log, done| count(log, "from item") > 0 && !done.rolled_back, answer);
    assert_eq!(count(&log, "insert into order_line"), count(&log, "from item"));
    assert_eq!(log.last(), Some(&Request::Commit));
    assert_eq!(done.statements as usize, log.len());
    // 12 are in stock: more than two left over ten are taken as they are, others filled up.
    for request in &log {
        let Request::Statement(text, values) = request else { continue };
        if text.starts_with("update stock") {
            let number = |text: &str| text[4..text.len() - 1].parse::<i64>().unwrap();
            let (left, taken) = (number(&values[0]), number(&values[1]));
            assert_eq!(left, if taken <= 2 { 12 - taken } else { 12 - taken + 91 });
        }
    }
}

#[test]
fn of_several_of_a_name_the_middle_one_pays() {
    let (log, _) = run(
        |log, _| count(log, "select c_id from") > 0 && count(log, "insert into history") > 0,
        answer,
    );
    let history = log.iter().find_map(|request| match request {
        Request::Statement(text, values) if text.contains("insert into history") => Some(values),
        _ => None,
    });
    assert_eq!(history.unwrap()[0], "Int(32)", "the second of four");
    assert_eq!(count(&log, "c_data = $3"), 1, "bad credit is remembered");
}

#[test]
fn more_customers_of_a_name_than_a_district_has_are_refused() {
    let workload = workload(tiny(1));
    let mut session = Recorder::new(Dialect::Postgres, |request| match request {
        Request::Statement(text, _) if text.contains("select c_id from") => {
            Ok(vec![vec![Value::Int(1)]; 3_001])
        }
        _ => answer(request),
    });
    let mut client = workload.client(0);
    client.connected(&mut session).unwrap();
    let refused = (0..5_000).find_map(|_| {
        client.next();
        client.attempt(&mut session).err()
    });
    let says = "its answer has more than 3000 rows, the most that are kept";
    assert_eq!(refused, Some(SessionError::Gone(says.to_owned())));
}

#[test]
fn a_delivery_serves_every_district_and_skips_empty_ones() {
    let (log, _) = run(|log, _| count(log, "delete from new_order") > 0, answer);
    assert_eq!(count(&log, "delete from new_order"), 10);
    let mut districts = 0;
    let (log, _) = run(
        |log, _| count(log, "select no_o_id") > 0,
        move |request| match request {
            Request::Statement(text, _) if text.contains("select no_o_id") => {
                districts += 1;
                if districts % 2 == 0 { Ok(Vec::new()) } else { answer(request) }
            }
            _ => answer(request),
        },
    );
    assert_eq!((count(&log, "select no_o_id"), count(&log, "delete from new_order")), (10, 5));
}

#[test]
fn a_retry_runs_the_same_input_and_counts_once() {
    let workload = workload(tiny(1));
    let mut commits = 0;
    let mut session = Recorder::new(Dialect::Postgres, move |request| match request {
        Request::Commit => {
            commits += 1;
            match commits % 3 {
                0 => Ok(Vec::new()),
                _ => Err(SessionError::Retry("serialization".to_owned())),
            }
        }
        _ => answer(request),
    });
    let mut client = workload.client(0);
    client.connected(&mut session).unwrap();
    for _ in 0..50 {
        session.log.clear();
        client.next();
        if client.attempt(&mut session).is_ok_and(|done| done.rolled_back) {
            continue;
        }
        let first: Vec<Request> = session.log.drain(..).collect();
        assert_eq!(first.last(), Some(&Request::Rollback), "a failed transaction is undone");
        assert!(matches!(client.attempt(&mut session), Err(SessionError::Retry(_))));
        assert_eq!(first, session.log, "the same input");
        client.attempt(&mut session).unwrap();
    }
    assert_eq!(workload.counts().kinds.iter().sum::<u64>(), 50);
}

#[test]
fn a_server_that_is_gone_leaves_commits_unsure_not_acknowledged() {
    let workload = workload(tiny(1));
    let mut session = Recorder::new(Dialect::Postgres, |request| match request {
        Request::Commit => Err(SessionError::Gone("reset".to_owned())),
        _ => answer(request),
    });
    let mut client = workload.client(0);
    client.connected(&mut session).unwrap();
    let gone = (0..20).filter(|_| {
        client.next();
        matches!(client.attempt(&mut session), Err(SessionError::Gone(_)))
    });
    let gone = gone.count();
    assert!(gone > 15);
    let rollbacks = session.log.iter().filter(|request| **request == Request::Rollback).count();
    assert_eq!(rollbacks, 20 - gone, "no server is left to answer");
    let completed: u64 = workload.counts().kinds.iter().sum();
    assert_eq!(completed, 20 - gone as u64, "only what was rolled back for its input");
}

#[test]
fn an_order_that_was_acknowledged_and_is_missing_is_found() {
    let log = DurabilityLog::default();
    let order = |customer| durability_log::Order { customer, lines: 5 };
    log.order((1, 2), 61, order(7));
    let check = |log: &DurabilityLog, rows: Vec<[i64; 3]>, payments: i64, cents: i64| {
        let mut session = Recorder::new(Dialect::Postgres, move |request| match request {
            Request::Statement(text, values) if text.contains("o_ol_cnt") => {
                let here = values[1] == "Int(2)";
                let rows = rows.iter().filter(|_| here);
                Ok(rows.map(|row| row.map(Value::Int).to_vec()).collect())
            }
            Request::Statement(..) => Ok(vec![vec![
                Value::Int(600 + payments),
                Value::Decimal(Decimal::cents(600_000 + cents)),
            ]]),
            _ => Ok(Vec::new()),
        });
        let found = log.check(&mut session, Population::tiny(1)).unwrap();
        [0, 1].map(|at| found[at].outcome == Outcome::Holds)
    };
    assert_eq!(check(&log, vec![[61, 7, 5]], 0, 0), [true, true]);
    assert_eq!(check(&log, vec![], 0, 0), [false, true], "lost");
    assert_eq!(check(&log, vec![[61, 8, 5]], 0, 0), [false, true], "another's");
    let extra = vec![[61, 7, 5], [62, 1, 9]];
    assert_eq!(check(&log, extra.clone(), 0, 0), [false, true], "not requested");
    log.unsure(durability_log::Unsure::Order);
    assert_eq!(check(&log, extra, 0, 0), [true, true], "one went unanswered");
    log.payment(500);
    assert_eq!(check(&log, vec![[61, 7, 5]], 1, 500), [true, true]);
    assert_eq!(check(&log, vec![[61, 7, 5]], 1, 400), [true, false]);
    assert_eq!(check(&log, vec![[61, 7, 5]], 2, 900), [true, false]);
    log.unsure(durability_log::Unsure::Payment);
    assert_eq!(check(&log, vec![[61, 7, 5]], 2, 900), [true, true]);
    log.forget();
    assert_eq!(check(&log, vec![], 0, 0), [true, true]);
}
