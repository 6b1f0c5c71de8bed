//! The SQL of tables and queries.

use super::{Form, Options, Plan, Query, Range, pinning};
use crate::client::Table;
use crate::session::Dialect;

/// Rows of T1 between two bounds.
pub(super) const SELECTED: &str = "select count(*) from t1 where a2 > ? and a2 < ?";
/// The stored rows and their sum.
pub(super) const STORED: &str = "select count(*), coalesce(sum(value), 0) from result";

pub(super) fn tables(dialect: Dialect) -> Vec<Table> {
    // Latin: a character is a byte in every server, whatever it was set up with.
    let (pad, end) = match dialect {
        Dialect::MariaDb => ("char(88)", " engine = InnoDB default charset = latin1"),
        Dialect::Postgres => ("char(88)", ""),
        Dialect::DuckDb | Dialect::DataFusion => ("varchar", ""),
    };
    let table = |name: &str, key| Table {
        name: name.to_owned(),
        columns: ["a1", "a2", "a3", "pad"].map(str::to_owned).to_vec(),
        create: format!(
            "create table {name} (a1 int not null{key}, a2 int not null, a3 int not null, \
             pad {pad} not null){end}"
        ),
        finish: Vec::new(),
    };
    let key = if dialect == Dialect::DataFusion { "" } else { " primary key" };
    let value = if dialect == Dialect::Postgres { "double precision" } else { "double" };
    let result = Table {
        name: "result".to_owned(),
        columns: vec!["value".to_owned()],
        create: format!("create table result (value {value}){end}"),
        finish: Vec::new(),
    };
    vec![table("t1", ""), table("t2", key), result]
}

/// The query, its bounds marked.
pub(super) fn query(dialect: Dialect, options: &Options) -> String {
    filled(dialect, options, "?", "?")
}

/// The query with its bounds in the text: for its plan.
pub(super) fn with_bounds(dialect: Dialect, options: &Options, range: Range) -> String {
    filled(dialect, options, &range.low.to_string(), &range.high.to_string())
}

fn filled(dialect: Dialect, options: &Options, low: &str, high: &str) -> String {
    // Plans that an engine can't be forced into were refused before; here they are only left out.
    let native = pinning(dialect, options.query, Plan::Native);
    let pinned = pinning(dialect, options.query, options.plan).or(native);
    let (select, t1) = pinned.map_or(("", ""), |pinned| (pinned.select, pinned.t1));
    let into = match options.form {
        Form::IntoResult => "insert into result ",
        Form::ToClient => "",
    };
    match options.query {
        Query::Utpcc => {
            format!("{into}select avg(a3) from t1{t1} where a2 > {low} and a2 < {high}")
        }
        Query::Uss => format!(
            "{into}select distinct a3 from t1{t1} where a2 > {low} and a2 < {high} order by a3"
        ),
        Query::Unj => format!(
            "{into}select{select} avg(t1.a3) from t1{t1}, t2 \
             where t1.a1 = t2.a1 and t1.a2 > {low} and t1.a2 < {high}"
        ),
    }
}
