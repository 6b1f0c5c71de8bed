//! The nine tables (clause 1.3), with their keys and the two indexes that the transactions need.
//!
//! MariaDB stores rows by their primary key, so it is there from the start and rows come in its
//! order; PostgreSQL builds it faster afterwards. Foreign keys are not declared: the consistency
//! conditions look at what they would guard.

use crate::client::Table;
use crate::session::{Dialect, SessionError};

/// A table before its dialect: name, primary key, columns with their types.
struct Shape {
    name: &'static str,
    key: &'static str,
    columns: &'static [(&'static str, &'static str)],
    index: Option<(&'static str, &'static str)>,
}

/// Positions in [`tables`].
pub(super) const WAREHOUSE: usize = 0;
pub(super) const DISTRICT: usize = 1;
pub(super) const ITEM: usize = 2;
pub(super) const STOCK: usize = 3;
pub(super) const CUSTOMER: usize = 4;
pub(super) const HISTORY: usize = 5;
pub(super) const ORDERS: usize = 6;
pub(super) const NEW_ORDER: usize = 7;
pub(super) const ORDER_LINE: usize = 8;

const SHAPES: [Shape; 9] = [
    Shape {
        name: "warehouse",
        key: "w_id",
        columns: &[
            ("w_id", "int not null"),
            ("w_name", "varchar(10) not null"),
            ("w_street_1", "varchar(20) not null"),
            ("w_street_2", "varchar(20) not null"),
            ("w_city", "varchar(20) not null"),
            ("w_state", "char(2) not null"),
            ("w_zip", "char(9) not null"),
            ("w_tax", "decimal(4,4) not null"),
            ("w_ytd", "decimal(12,2) not null"),
        ],
        index: None,
    },
    Shape {
        name: "district",
        key: "d_w_id, d_id",
        columns: &[
            ("d_id", "int not null"),
            ("d_w_id", "int not null"),
            ("d_name", "varchar(10) not null"),
            ("d_street_1", "varchar(20) not null"),
            ("d_street_2", "varchar(20) not null"),
            ("d_city", "varchar(20) not null"),
            ("d_state", "char(2) not null"),
            ("d_zip", "char(9) not null"),
            ("d_tax", "decimal(4,4) not null"),
            ("d_ytd", "decimal(12,2) not null"),
            ("d_next_o_id", "int not null"),
        ],
        index: None,
    },
    Shape {
        name: "item",
        key: "i_id",
        columns: &[
            ("i_id", "int not null"),
            ("i_im_id", "int not null"),
            ("i_name", "varchar(24) not null"),
            ("i_price", "decimal(5,2) not null"),
            ("i_data", "varchar(50) not null"),
        ],
        index: None,
    },
    Shape {
        name: "stock",
        key: "s_w_id, s_i_id",
        columns: &[
            ("s_i_id", "int not null"),
            ("s_w_id", "int not null"),
            ("s_quantity", "int not null"),
            ("s_dist_01", "char(24) not null"),
            ("s_dist_02", "char(24) not null"),
            ("s_dist_03", "char(24) not null"),
            ("s_dist_04", "char(24) not null"),
            ("s_dist_05", "char(24) not null"),
            ("s_dist_06", "char(24) not null"),
            ("s_dist_07", "char(24) not null"),
            ("s_dist_08", "char(24) not null"),
            ("s_dist_09", "char(24) not null"),
            ("s_dist_10", "char(24) not null"),
            ("s_ytd", "int not null"),
            ("s_order_cnt", "int not null"),
            ("s_remote_cnt", "int not null"),
            ("s_data", "varchar(50) not null"),
        ],
        index: None,
    },
    Shape {
        name: "customer",
        key: "c_w_id, c_d_id, c_id",
        columns: &[
            ("c_id", "int not null"),
            ("c_d_id", "int not null"),
            ("c_w_id", "int not null"),
            ("c_first", "varchar(16) not null"),
            ("c_middle", "char(2) not null"),
            ("c_last", "varchar(16) not null"),
            ("c_street_1", "varchar(20) not null"),
            ("c_street_2", "varchar(20) not null"),
            ("c_city", "varchar(20) not null"),
            ("c_state", "char(2) not null"),
            ("c_zip", "char(9) not null"),
            ("c_phone", "char(16) not null"),
            ("c_since", "{moment} not null"),
            ("c_credit", "char(2) not null"),
            ("c_credit_lim", "decimal(12,2) not null"),
            ("c_discount", "decimal(4,4) not null"),
            ("c_balance", "decimal(12,2) not null"),
            ("c_ytd_payment", "decimal(12,2) not null"),
            ("c_payment_cnt", "int not null"),
            ("c_delivery_cnt", "int not null"),
            ("c_data", "varchar(500) not null"),
        ],
        index: Some(("customer_by_name", "c_w_id, c_d_id, c_last, c_first")),
    },
    Shape {
        name: "history",
        key: "",
        columns: &[
            ("h_c_id", "int not null"),
            ("h_c_d_id", "int not null"),
            ("h_c_w_id", "int not null"),
            ("h_d_id", "int not null"),
            ("h_w_id", "int not null"),
            ("h_date", "{moment} not null"),
            ("h_amount", "decimal(6,2) not null"),
            ("h_data", "varchar(24) not null"),
        ],
        index: None,
    },
    Shape {
        name: "orders",
        key: "o_w_id, o_d_id, o_id",
        columns: &[
            ("o_id", "int not null"),
            ("o_d_id", "int not null"),
            ("o_w_id", "int not null"),
            ("o_c_id", "int not null"),
            ("o_entry_d", "{moment} not null"),
            ("o_carrier_id", "int"),
            ("o_ol_cnt", "int not null"),
            ("o_all_local", "int not null"),
        ],
        index: Some(("orders_by_customer", "o_w_id, o_d_id, o_c_id, o_id")),
    },
    Shape {
        name: "new_order",
        key: "no_w_id, no_d_id, no_o_id",
        columns: &[
            ("no_o_id", "int not null"),
            ("no_d_id", "int not null"),
            ("no_w_id", "int not null"),
        ],
        index: None,
    },
    Shape {
        name: "order_line",
        key: "ol_w_id, ol_d_id, ol_o_id, ol_number",
        columns: &[
            ("ol_o_id", "int not null"),
            ("ol_d_id", "int not null"),
            ("ol_w_id", "int not null"),
            ("ol_number", "int not null"),
            ("ol_i_id", "int not null"),
            ("ol_supply_w_id", "int not null"),
            ("ol_delivery_d", "{moment}"),
            ("ol_quantity", "int not null"),
            ("ol_amount", "decimal(6,2) not null"),
            ("ol_dist_info", "char(24) not null"),
        ],
        index: None,
    },
];

/// The tables, in the order of the positions above.
///
/// # Errors
/// For engines without transactions of several clients.
pub(super) fn tables(dialect: Dialect) -> Result<Vec<Table>, SessionError> {
    let (moment, end) = match dialect {
        Dialect::Postgres => ("timestamp", ""),
        Dialect::MariaDb => ("datetime(6)", " engine = InnoDB default charset = latin1"),
        Dialect::DuckDb | Dialect::DataFusion => {
            return Err(SessionError::Failed(format!(
                "order entry needs a server with transactions: {dialect} can't run it, \
                 PostgreSQL and MariaDB can"
            )));
        }
    };
    let table = |shape: &Shape| {
        let keyed = !shape.key.is_empty();
        let at_once = dialect == Dialect::MariaDb;
        let column = |(name, kind): &(&str, &str)| format!("{name} {kind}");
        let mut parts: Vec<String> = shape.columns.iter().map(column).collect();
        let mut finish = Vec::new();
        let key = format!("primary key ({})", shape.key);
        match (keyed, at_once) {
            (true, true) => parts.push(key),
            (true, false) => finish.push(format!("alter table {} add {key}", shape.name)),
            (false, _) => {}
        }
        if let Some((name, columns)) = shape.index {
            finish.push(format!("create index {name} on {} ({columns})", shape.name));
        }
        let parts = parts.join(", ").replace("{moment}", moment);
        Table {
            name: shape.name.to_owned(),
            columns: shape.columns.iter().map(|(name, _)| (*name).to_owned()).collect(),
            create: format!("create table {} ({parts}){end}", shape.name),
            finish,
        }
    };
    Ok(SHAPES.iter().map(table).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_name_their_tables() {
        let tables = tables(Dialect::Postgres).unwrap();
        for (position, name) in [
            (WAREHOUSE, "warehouse"),
            (DISTRICT, "district"),
            (ITEM, "item"),
            (STOCK, "stock"),
            (CUSTOMER, "customer"),
            (HISTORY, "history"),
            (ORDERS, "orders"),
            (NEW_ORDER, "new_order"),
            (ORDER_LINE, "order_line"),
        ] {
            assert_eq!(tables[position].name, name);
        }
    }

    #[test]
    fn keys_are_where_they_are_cheap() {
        let postgres = tables(Dialect::Postgres).unwrap();
        assert_eq!(postgres[ORDERS].finish.len(), 2);
        assert!(!postgres[ORDERS].create.contains("primary key"));
        let mariadb = tables(Dialect::MariaDb).unwrap();
        assert!(mariadb[ORDERS].create.contains("primary key (o_w_id, o_d_id, o_id)"));
        assert!(mariadb[ORDERS].create.contains("o_entry_d datetime(6)"));
        assert!(mariadb[HISTORY].finish.is_empty());
        assert!(tables(Dialect::DuckDb).is_err());
    }
}
