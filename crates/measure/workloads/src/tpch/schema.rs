//! TPC-H's tables in SQL (TPC-H 3.0.1, clause 1.4): types, keys, indexes.
//!
//! Servers get the primary keys and indexes on the foreign keys that queries look rows up by (the
//! specification allows both); without them the correlated subqueries of Q17, Q20 and Q21 read all
//! of lineitem for each of their rows. DuckDB and DataFusion use none. Foreign keys themselves are
//! not declared.

use arrow_schema::{DataType, Field};

use super::{Table, Tpch};
use crate::client;
use crate::session::Dialect;

/// Lengths of texts: fixed ones are `char`, others `varchar`.
fn text_type(column: &str) -> &'static str {
    match column {
        "l_returnflag" | "l_linestatus" | "o_orderstatus" => "char(1)",
        "l_shipmode" | "p_brand" | "p_container" | "c_mktsegment" => "char(10)",
        "c_phone" | "s_phone" | "o_orderpriority" | "o_clerk" => "char(15)",
        "l_shipinstruct" | "r_name" | "n_name" | "p_mfgr" | "s_name" => "char(25)",
        "p_type" | "c_name" => "varchar(25)",
        "p_comment" => "varchar(23)",
        "s_address" | "c_address" => "varchar(40)",
        "l_comment" => "varchar(44)",
        "p_name" => "varchar(55)",
        "o_comment" => "varchar(79)",
        "s_comment" => "varchar(101)",
        "c_comment" => "varchar(117)",
        "n_comment" | "r_comment" => "varchar(152)",
        _ => "varchar(199)",
    }
}

fn column_type(field: &Field) -> &'static str {
    match field.data_type() {
        DataType::Int64 => "bigint",
        DataType::Int32 => "int",
        DataType::Decimal128(..) => "decimal(15,2)",
        DataType::Date32 => "date",
        _ => text_type(field.name()),
    }
}

/// The primary key, and columns with an index.
fn keys(table: Table) -> (&'static str, &'static [&'static str]) {
    match table {
        Table::Region => ("r_regionkey", &[]),
        Table::Nation => ("n_nationkey", &["n_regionkey"]),
        Table::Supplier => ("s_suppkey", &["s_nationkey"]),
        Table::Customer => ("c_custkey", &["c_nationkey"]),
        Table::Part => ("p_partkey", &[]),
        Table::PartSupp => ("ps_partkey, ps_suppkey", &["ps_suppkey"]),
        Table::Orders => ("o_orderkey", &["o_custkey", "o_orderdate"]),
        Table::LineItem => {
            ("l_orderkey, l_linenumber", &["l_partkey, l_suppkey", "l_suppkey", "l_shipdate"])
        }
    }
}

/// In which order lineitem lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layout {
    /// By its key, which is the order in which rows are made.
    ByKey,
    /// By (shipdate, orderkey, linenumber), declared unique, as Chang (2013) has it; the
    /// specification does not allow it for published results. DataFusion reads files, which are
    /// sorted by the writer.
    ByShipDate,
}

/// The key of [`Layout::ByShipDate`].
const BY_SHIP_DATE: &str = "l_shipdate, l_orderkey, l_linenumber";

/// A table in a dialect.
pub(super) fn table(tpch: Tpch, table: Table, layout: Layout, dialect: Dialect) -> client::Table {
    let mut made = by_key(tpch, table, dialect);
    if table != Table::LineItem || layout == Layout::ByKey {
        return made;
    }
    match dialect {
        Dialect::Postgres => {
            // Clustered first: every other index is then built once.
            let name = "lineitem_by_shipdate";
            let index = format!("create unique index {name} on lineitem ({BY_SHIP_DATE})");
            made.finish.retain(|text| !text.ends_with("(l_shipdate)"));
            made.finish.splice(0..0, [index, format!("cluster lineitem using {name}")]);
        }
        Dialect::MariaDb => {
            let (key, _) = keys(table);
            let clustered = format!("primary key ({BY_SHIP_DATE})");
            made.create = made.create.replace(&format!("primary key ({key})"), &clustered);
            made.finish.retain(|text| !text.ends_with("(l_shipdate)"));
            made.finish.push(format!("create unique index lineitem_by_key on lineitem ({key})"));
        }
        Dialect::DuckDb => {
            let sorted = "create table lineitem_sorted as select * from lineitem order by";
            made.finish.push(format!("{sorted} {BY_SHIP_DATE}"));
            made.finish.push("drop table lineitem".to_owned());
            made.finish.push("alter table lineitem_sorted rename to lineitem".to_owned());
        }
        Dialect::DataFusion => {}
    }
    made
}

fn by_key(tpch: Tpch, table: Table, dialect: Dialect) -> client::Table {
    let (schema, name) = (tpch.schema(table), table.name());
    let column =
        |field: &std::sync::Arc<Field>| format!("{} {} not null", field.name(), column_type(field));
    let mut parts: Vec<String> = schema.fields().iter().map(column).collect();
    let (key, indexes) = keys(table);
    let index = |(number, columns): (usize, &&str)| {
        format!("create index {name}_{} on {name} ({columns})", number + 1)
    };
    let mut finish: Vec<String> = Vec::new();
    let mut end = "";
    match dialect {
        Dialect::Postgres => {
            finish.push(format!("alter table {name} add primary key ({key})"));
            finish.extend(indexes.iter().enumerate().map(index));
        }
        Dialect::MariaDb => {
            end = " engine = InnoDB default charset = latin1";
            parts.push(format!("primary key ({key})"));
            finish.extend(indexes.iter().enumerate().map(index));
        }
        Dialect::DuckDb | Dialect::DataFusion => {}
    }
    client::Table {
        name: name.to_owned(),
        columns: schema.fields().iter().map(|field| field.name().clone()).collect(),
        create: format!("create table {name} ({}){end}", parts.join(", ")),
        finish,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_has_a_type_and_servers_have_keys() {
        let tpch = Tpch::new(1.0).unwrap();
        for of in Table::ALL {
            let mariadb = by_key(tpch, of, Dialect::MariaDb);
            assert!(mariadb.create.contains("primary key ("), "{}", mariadb.create);
            assert_eq!(mariadb.columns.len(), tpch.schema(of).fields().len());
            let postgres = by_key(tpch, of, Dialect::Postgres);
            assert!(postgres.finish[0].contains("add primary key"));
            assert_eq!(postgres.finish.len(), mariadb.finish.len() + 1);
            assert!(by_key(tpch, of, Dialect::DuckDb).finish.is_empty());
        }
        let lineitem = by_key(tpch, Table::LineItem, Dialect::DuckDb).create;
        for part in ["l_orderkey bigint", "l_tax decimal(15,2)", "l_shipmode char(10)"] {
            assert!(lineitem.contains(part), "{lineitem}");
        }
    }

    #[test]
    fn lineitem_can_lie_by_its_ship_date() {
        let tpch = Tpch::new(1.0).unwrap();
        let of = |table_of, dialect| table(tpch, table_of, Layout::ByShipDate, dialect);
        let postgres = of(Table::LineItem, Dialect::Postgres).finish;
        assert!(postgres[0].ends_with("(l_shipdate, l_orderkey, l_linenumber)"));
        assert!(postgres[1].starts_with("cluster") && postgres[2].contains("primary key"));
        let mariadb = of(Table::LineItem, Dialect::MariaDb);
        let key = "primary key (l_shipdate, l_orderkey, l_linenumber)";
        assert!(mariadb.create.contains(key), "{}", mariadb.create);
        assert_eq!(of(Table::LineItem, Dialect::DuckDb).finish.len(), 3);
        let other = by_key(tpch, Table::Orders, Dialect::Postgres);
        assert_eq!(of(Table::Orders, Dialect::Postgres), other);
    }
}
