//! The statements of the transactions.
//!
//! Where the isolation level alone does not keep two clients from changing a row on the strength of
//! the same reading, rows that will be changed are read `for update` ([`Isolation`]).

use super::population::DISTRICTS;
use crate::session::{Dialect, Session, SessionError, StatementId};

/// The isolation that transactions run at. Results name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Isolation {
    /// Rows that will be changed are read for update; not repeatable, but no update is lost.
    ReadCommitted,
    /// In PostgreSQL snapshots, under which these five transactions are serializable (Fekete et
    /// al., "Making snapshot isolation serializable", TODS 30(2), 2005); what conflicts is tried
    /// again. InnoDB's level of that name needs reading for update on top.
    RepeatableRead,
    /// As the specification requires; conflicting transactions are tried again.
    Serializable,
}

impl Isolation {
    /// Its name in SQL.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadCommitted => "read committed",
            Self::RepeatableRead => "repeatable read",
            Self::Serializable => "serializable",
        }
    }

    /// Whether rows that will be changed are read for update.
    #[must_use]
    pub fn reads_for_update(self, dialect: Dialect) -> bool {
        self == Self::ReadCommitted || dialect == Dialect::MariaDb
    }

    /// The statement that sets it for a session.
    #[must_use]
    pub fn setting(self, dialect: Dialect) -> String {
        let session = match dialect {
            Dialect::MariaDb => "session",
            _ => "session characteristics as",
        };
        format!("set {session} transaction isolation level {}", self.name())
    }
}

/// A statement of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ask {
    WarehouseTax,
    NextOrder,
    TakeOrder,
    OrderingCustomer,
    EnterOrder,
    EnterNewOrder,
    Item,
    TakeStock,
    EnterLine,
    PayWarehouse,
    WarehouseAddress,
    PayDistrict,
    DistrictAddress,
    Named,
    PayingCustomer,
    CreditData,
    PayCustomer,
    PayBadCustomer,
    EnterHistory,
    StatusCustomer,
    LastOrder,
    LastLines,
    OldestOpen,
    AnyOpen,
    Close,
    Delivered,
    Carry,
    DeliverLines,
    Amount,
    DeliverCustomer,
    RecentOrders,
    LowStock,
}

impl Ask {
    const ALL: [Self; 32] = [
        Self::WarehouseTax,
        Self::NextOrder,
        Self::TakeOrder,
        Self::OrderingCustomer,
        Self::EnterOrder,
        Self::EnterNewOrder,
        Self::Item,
        Self::TakeStock,
        Self::EnterLine,
        Self::PayWarehouse,
        Self::WarehouseAddress,
        Self::PayDistrict,
        Self::DistrictAddress,
        Self::Named,
        Self::PayingCustomer,
        Self::CreditData,
        Self::PayCustomer,
        Self::PayBadCustomer,
        Self::EnterHistory,
        Self::StatusCustomer,
        Self::LastOrder,
        Self::LastLines,
        Self::OldestOpen,
        Self::AnyOpen,
        Self::Close,
        Self::Delivered,
        Self::Carry,
        Self::DeliverLines,
        Self::Amount,
        Self::DeliverCustomer,
        Self::RecentOrders,
        Self::LowStock,
    ];

    /// Its text; `{lock}` stands where it may be read for update.
    fn text(self) -> &'static str {
        match self {
            Self::WarehouseTax => "select w_tax from warehouse where w_id = ?",
            Self::NextOrder => {
                "select d_next_o_id, d_tax from district where d_w_id = ? and d_id = ?{lock}"
            }
            Self::TakeOrder => {
                "update district set d_next_o_id = d_next_o_id + 1 where d_w_id = ? and d_id = ?"
            }
            Self::OrderingCustomer => {
                "select c_discount, c_last, c_credit from customer \
                 where c_w_id = ? and c_d_id = ? and c_id = ?"
            }
            Self::EnterOrder => {
                "insert into orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_carrier_id, \
                 o_ol_cnt, o_all_local) values (?, ?, ?, ?, current_timestamp, null, ?, ?)"
            }
            Self::EnterNewOrder => {
                "insert into new_order (no_o_id, no_d_id, no_w_id) values (?, ?, ?)"
            }
            Self::Item => "select i_price, i_name, i_data from item where i_id = ?",
            Self::TakeStock => {
                "update stock set s_quantity = ?, s_ytd = s_ytd + ?, \
                 s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + ? \
                 where s_w_id = ? and s_i_id = ?"
            }
            Self::EnterLine => {
                "insert into order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, \
                 ol_supply_w_id, ol_delivery_d, ol_quantity, ol_amount, ol_dist_info) \
                 values (?, ?, ?, ?, ?, ?, null, ?, ?, ?)"
            }
            Self::PayWarehouse => "update warehouse set w_ytd = w_ytd + ? where w_id = ?",
            Self::WarehouseAddress => {
                "select w_name, w_street_1, w_street_2, w_city, w_state, w_zip \
                 from warehouse where w_id = ?"
            }
            Self::PayDistrict => {
                "update district set d_ytd = d_ytd + ? where d_w_id = ? and d_id = ?"
            }
            Self::DistrictAddress => {
                "select d_name, d_street_1, d_street_2, d_city, d_state, d_zip \
                 from district where d_w_id = ? and d_id = ?"
            }
            Self::Named => {
                "select c_id from customer where c_w_id = ? and c_d_id = ? and c_last = ? \
                 order by c_first, c_id"
            }
            Self::PayingCustomer => {
                "select c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, \
                 c_zip, c_phone, c_since, c_credit, c_credit_lim, c_discount, c_balance \
                 from customer where c_w_id = ? and c_d_id = ? and c_id = ?{lock}"
            }
            Self::CreditData => {
                "select c_data from customer where c_w_id = ? and c_d_id = ? and c_id = ?{lock}"
            }
            Self::PayCustomer => {
                "update customer set c_balance = c_balance - ?, \
                 c_ytd_payment = c_ytd_payment + ?, c_payment_cnt = c_payment_cnt + 1 \
                 where c_w_id = ? and c_d_id = ? and c_id = ?"
            }
            Self::PayBadCustomer => {
                "update customer set c_balance = c_balance - ?, \
                 c_ytd_payment = c_ytd_payment + ?, c_payment_cnt = c_payment_cnt + 1, \
                 c_data = ? where c_w_id = ? and c_d_id = ? and c_id = ?"
            }
            _ => self.later_text(),
        }
    }

    /// Of the payment's end and of the last three transactions.
    fn later_text(self) -> &'static str {
        match self {
            Self::EnterHistory => {
                "insert into history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, \
                 h_amount, h_data) values (?, ?, ?, ?, ?, current_timestamp, ?, ?)"
            }
            Self::StatusCustomer => {
                "select c_balance, c_first, c_middle, c_last from customer \
                 where c_w_id = ? and c_d_id = ? and c_id = ?"
            }
            Self::LastOrder => {
                "select o_id, o_entry_d, o_carrier_id from orders \
                 where o_w_id = ? and o_d_id = ? and o_c_id = ? order by o_id desc limit 1"
            }
            Self::LastLines => {
                "select ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d \
                 from order_line where ol_w_id = ? and ol_d_id = ? and ol_o_id = ?"
            }
            Self::OldestOpen => {
                "select no_o_id from new_order where no_w_id = ? and no_d_id = ? \
                 order by no_o_id limit 1{lock}"
            }
            Self::AnyOpen => {
                "select no_o_id from new_order where no_w_id = ? and no_d_id = ? limit 1"
            }
            Self::Close => {
                "delete from new_order where no_w_id = ? and no_d_id = ? and no_o_id = ?"
            }
            Self::Delivered => {
                "select o_c_id from orders where o_w_id = ? and o_d_id = ? and o_id = ?"
            }
            Self::Carry => {
                "update orders set o_carrier_id = ? where o_w_id = ? and o_d_id = ? and o_id = ?"
            }
            Self::DeliverLines => {
                "update order_line set ol_delivery_d = current_timestamp \
                 where ol_w_id = ? and ol_d_id = ? and ol_o_id = ?"
            }
            Self::Amount => {
                "select sum(ol_amount) from order_line \
                 where ol_w_id = ? and ol_d_id = ? and ol_o_id = ?"
            }
            Self::DeliverCustomer => {
                "update customer set c_balance = c_balance + ?, \
                 c_delivery_cnt = c_delivery_cnt + 1 \
                 where c_w_id = ? and c_d_id = ? and c_id = ?"
            }
            Self::RecentOrders => "select d_next_o_id from district where d_w_id = ? and d_id = ?",
            Self::LowStock => {
                "select count(distinct s_i_id) from order_line, stock \
                 where ol_w_id = ? and ol_d_id = ? and ol_o_id < ? and ol_o_id >= ? \
                 and s_w_id = ? and s_i_id = ol_i_id and s_quantity < ?"
            }
            other => other.text(),
        }
    }
}

/// All statements, prepared on a session.
#[derive(Debug, Clone)]
pub(super) struct PreparedStatements {
    asks: Vec<StatementId>,
    /// Stock with the text of each district.
    stock: Vec<StatementId>,
    /// Whether an oldest open order may be gone once it could be locked.
    pub(super) rereads: bool,
}

impl PreparedStatements {
    pub(super) fn on(
        session: &mut dyn Session,
        isolation: Isolation,
    ) -> Result<Self, SessionError> {
        let dialect = session.dialect();
        session.run(&isolation.setting(dialect))?;
        let lock = if isolation.reads_for_update(dialect) { " for update" } else { "" };
        let mut prepare =
            |text: &str| session.prepare(&dialect.placeholders(&text.replace("{lock}", lock)));
        let asks = Ask::ALL.iter().map(|ask| prepare(ask.text())).collect::<Result<_, _>>()?;
        let stock = |district| {
            prepare(&format!(
                "select s_quantity, s_data, s_dist_{district:02} from stock \
                 where s_w_id = ? and s_i_id = ?{{lock}}"
            ))
        };
        let stock = (1..=DISTRICTS).map(stock).collect::<Result<_, _>>()?;
        let rereads = isolation == Isolation::ReadCommitted && dialect == Dialect::Postgres;
        Ok(Self { asks, stock, rereads })
    }

    pub(super) fn ask(&self, ask: Ask) -> StatementId {
        self.asks[ask as usize]
    }

    pub(super) fn stock(&self, district: u32) -> StatementId {
        self.stock[district as usize - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::recorder::{Recorder, Request};

    #[test]
    fn statements_are_found_under_their_names() {
        for (position, ask) in Ask::ALL.into_iter().enumerate() {
            assert_eq!(ask as usize, position);
            assert!(!ask.text().is_empty());
        }
    }

    #[test]
    fn rows_are_read_for_update_where_the_level_needs_it() {
        let locks = |dialect, isolation| {
            let mut session = Recorder::new(dialect, |_| Ok(Vec::new()));
            PreparedStatements::on(&mut session, isolation).unwrap();
            let locking = |request: &&Request| match request {
                Request::Prepare(text) => text.ends_with(" for update"),
                _ => false,
            };
            assert!(!session.log.iter().any(|request| format!("{request:?}").contains("{lock}")));
            (session.log[0].clone(), session.log.iter().filter(locking).count())
        };
        let level = |text: &str| Request::Run(text.to_owned());
        let postgres = locks(Dialect::Postgres, Isolation::RepeatableRead);
        let session = "set session characteristics as transaction isolation level";
        assert_eq!(postgres, (level(&format!("{session} repeatable read")), 0));
        // Next order, paying customer, credit data, oldest open order, ten of stock.
        let mariadb = locks(Dialect::MariaDb, Isolation::RepeatableRead);
        let session = "set session transaction isolation level";
        assert_eq!(mariadb, (level(&format!("{session} repeatable read")), 14));
        assert_eq!(locks(Dialect::Postgres, Isolation::ReadCommitted).1, 14);
    }
}
