//! Against the real library; its own behaviour is the crate `workahead-duckdb`'s to test.

use workahead_duckdb::Library;
use workahead_study::plans::{PlanText, Planner};
use workahead_workloads::session::{Date, Decimal};

use super::*;
use crate::connector::Connection as _;

fn connection() -> Connection {
    let library = Library::find(None).unwrap_or_else(|error| panic!("{error}"));
    let database = Database::open(library, ":memory:".as_ref(), &[]).unwrap();
    Connection::open(&database).unwrap()
}

fn table(create: &str) -> Table {
    let columns = vec!["k".to_owned(), "d".to_owned(), "m".to_owned()];
    Table { name: "t".to_owned(), columns, create: create.to_owned(), finish: Vec::new() }
}

const CREATE: &str = "create table t (k int primary key, d date, m decimal(15, 2))";

#[test]
fn a_table_is_filled_queried_and_explained() {
    let mut connection = connection();
    connection.run(CREATE).unwrap();
    let rows = connection.fill_table(&table(CREATE), &mut |sink| {
        for k in 0..5000 {
            let money = Value::Decimal(Decimal::cents(k * 25));
            sink(&[Value::Int(k), Value::Date(Date(k as i32)), money])?;
        }
        Ok(())
    });
    assert_eq!(rows.unwrap(), 5000);
    let text = "select d, sum(m) as m from t where k >= $1 and k < $2 group by d order by d";
    let statement = connection.prepare(text).unwrap();
    let mut seen = Vec::new();
    let rows = connection.query(statement, &[Value::Int(3), Value::Int(5)], &mut |row| {
        seen.push((row.value(0)? == Value::Date(Date(3 + seen.len() as i32)), row.decimal(1, 2)?));
        Ok(())
    });
    assert_eq!((rows.unwrap(), seen), (2, vec![(true, 75), (true, 100)]));
    for how in [Explain::Planned, Explain::Run] {
        let text = connection.explain("select count(*) from t where k > 10", how).unwrap();
        let plan = PlanText::new(Planner::Duckdb, text).tree().unwrap();
        assert!(format!("{plan:?}").contains("SEQ_SCAN"), "{plan:?}");
    }
    assert!(connection.version().unwrap().starts_with('v'));
}

#[test]
fn a_table_that_could_not_be_filled_is_left_empty() {
    let mut connection = connection();
    connection.run(CREATE).unwrap();
    let filled = connection.fill_table(&table(CREATE), &mut |sink| {
        sink(&[Value::Int(1), Value::Null, Value::Null])?;
        Err(SessionError::Failed("stopped".to_owned()))
    });
    assert_eq!(filled, Err(SessionError::Failed("stopped".to_owned())));
    assert_eq!(connection.first_row("select count(*) from t").unwrap(), ["0"]);
    let error =
        connection.fill_table(&table(CREATE), &mut |sink| sink(&[Value::Int(1)])).unwrap_err();
    assert!(matches!(error, SessionError::Failed(_)), "{error}");
}

#[test]
fn refusals_name_their_statement_and_their_kind() {
    let mut one = connection();
    one.run(CREATE).unwrap();
    one.run("insert into t values (1, null, 0)").unwrap();
    let statement = one.prepare("insert into t values ($1, null, 0)").unwrap();
    let error = one.execute(statement, &[Value::Int(1)]).unwrap_err();
    assert!(matches!(error, SessionError::Duplicate(_)), "{error}");
    assert!(error.to_string().contains("insert into t"), "{error}");
    assert_eq!(one.execute(statement, &[Value::Int(2)]), Ok(1));
    assert!(one.execute(StatementId(9), &[]).is_err());
}
