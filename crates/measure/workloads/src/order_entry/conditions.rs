//! The twelve consistency conditions (clause 3.3.2), as queries for what breaks them.
//!
//! Every query answers with the places where its condition does not hold, so that an empty answer
//! is what is wanted and the first row says where to look. They run on a database without clients,
//! in one transaction. Sums are of decimals and compared exactly. Conditions that read all order
//! lines of every customer look at ten warehouses, if there are more; condition 11 is only true
//! before anything is delivered.
//!
//! Amounts of an order or a customer are added up in one pass over all tables, with signs, and
//! must come to nothing. Joins of sums say the same and were tried: planners take the columns of a
//! key for independent, expect a handful of sums and look all of them up for each customer, which
//! took minutes on two warehouses.

use std::fmt::Write;

use super::population::Population;
use crate::client::{Condition, Moment, Outcome};
use crate::session::{Row, Session, SessionError, Value, first};

/// More warehouses are sampled by heavy conditions.
const SAMPLED_ABOVE: u32 = 10;

/// One of the conditions.
struct Rule {
    number: u32,
    says: &'static str,
    /// For what breaks it; `{orders}` and the like narrow it to some warehouses.
    broken: &'static str,
    heavy: bool,
}

const RULES: [Rule; 12] = [
    Rule {
        number: 1,
        says: "w_ytd = sum(d_ytd)",
        broken: "select w_id, w_ytd, districts from warehouse join \
            (select d_w_id, sum(d_ytd) as districts from district group by d_w_id) as d \
            on d_w_id = w_id where w_ytd <> districts",
        heavy: false,
    },
    Rule {
        number: 2,
        says: "d_next_o_id - 1 = max(o_id) = max(no_o_id)",
        broken: "select d_w_id, d_id, d_next_o_id, last_order, last_open from district \
            left join (select o_w_id, o_d_id, max(o_id) as last_order from orders \
                group by o_w_id, o_d_id) as o on o_w_id = d_w_id and o_d_id = d_id \
            left join (select no_w_id, no_d_id, max(no_o_id) as last_open from new_order \
                group by no_w_id, no_d_id) as n on no_w_id = d_w_id and no_d_id = d_id \
            where coalesce(last_order, 0) <> d_next_o_id - 1 \
                or coalesce(last_open, d_next_o_id - 1) <> d_next_o_id - 1",
        heavy: false,
    },
    Rule {
        number: 3,
        says: "max(no_o_id) - min(no_o_id) + 1 = rows of new_order",
        broken: "select no_w_id, no_d_id, min(no_o_id), max(no_o_id), count(*) from new_order \
            group by no_w_id, no_d_id having max(no_o_id) - min(no_o_id) + 1 <> count(*)",
        heavy: false,
    },
    Rule {
        number: 4,
        says: "sum(o_ol_cnt) = rows of order_line",
        broken: "select d_w_id, d_id, stated, counted from district \
            left join (select o_w_id, o_d_id, sum(o_ol_cnt) as stated from orders \
                group by o_w_id, o_d_id) as o on o_w_id = d_w_id and o_d_id = d_id \
            left join (select ol_w_id, ol_d_id, count(*) as counted from order_line \
                group by ol_w_id, ol_d_id) as l on ol_w_id = d_w_id and ol_d_id = d_id \
            where coalesce(stated, 0) <> coalesce(counted, 0)",
        heavy: false,
    },
    Rule {
        number: 5,
        says: "o_carrier_id is null where there is a row of new_order, and only there",
        broken: "select o_w_id, o_d_id, o_id, o_carrier_id, no_o_id from orders \
            left join new_order on no_w_id = o_w_id and no_d_id = o_d_id and no_o_id = o_id \
            where {orders} and (o_carrier_id is null) <> (no_o_id is not null) \
            union all select no_w_id, no_d_id, no_o_id, o_carrier_id, no_o_id from new_order \
            left join orders on no_w_id = o_w_id and no_d_id = o_d_id and no_o_id = o_id \
            where {new_order} and o_id is null",
        heavy: true,
    },
    Rule {
        number: 6,
        says: "o_ol_cnt = rows of order_line, for every order",
        broken: "select w_id, d_id, o_id, sum(missing) from \
            (select o_w_id as w_id, o_d_id as d_id, o_id, o_ol_cnt as missing from orders \
                where {orders} \
            union all select ol_w_id, ol_d_id, ol_o_id, -1 from order_line \
                where {order_line}) as counts \
            group by w_id, d_id, o_id having sum(missing) <> 0",
        heavy: true,
    },
    Rule {
        number: 7,
        says: "ol_delivery_d is null where o_carrier_id is, and only there",
        broken: "select ol_w_id, ol_d_id, ol_o_id, ol_number, ol_delivery_d, o_carrier_id \
            from order_line left join orders \
            on o_w_id = ol_w_id and o_d_id = ol_d_id and o_id = ol_o_id \
            where {order_line} and (ol_delivery_d is null) <> (o_carrier_id is null)",
        heavy: true,
    },
    Rule {
        number: 8,
        says: "w_ytd = sum(h_amount)",
        broken: "select w_id, w_ytd, paid from warehouse left join \
            (select h_w_id, sum(h_amount) as paid from history group by h_w_id) as h \
            on h_w_id = w_id where w_ytd <> coalesce(paid, 0)",
        heavy: false,
    },
    Rule {
        number: 9,
        says: "d_ytd = sum(h_amount)",
        broken: "select d_w_id, d_id, d_ytd, paid from district left join \
            (select h_w_id, h_d_id, sum(h_amount) as paid from history \
                group by h_w_id, h_d_id) as h on h_w_id = d_w_id and h_d_id = d_id \
            where d_ytd <> coalesce(paid, 0)",
        heavy: false,
    },
    Rule {
        number: 10,
        says: "c_balance = sum(delivered ol_amount) - sum(h_amount)",
        broken: "select w_id, d_id, c_id, sum(amount) from \
            (select c_w_id as w_id, c_d_id as d_id, c_id, c_balance as amount from customer \
                where {customer} \
            union all select o_w_id, o_d_id, o_c_id, -ol_amount from orders join order_line \
                on ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id \
                where {orders} and {order_line} and ol_delivery_d is not null \
            union all select h_c_w_id, h_c_d_id, h_c_id, h_amount from history \
                where {history}) as amounts \
            group by w_id, d_id, c_id having sum(amount) <> 0",
        heavy: true,
    },
    Rule {
        number: 11,
        says: "rows of orders - rows of new_order = orders that were delivered from the start",
        broken: "select o_w_id, o_d_id, ordered, waiting from \
            (select o_w_id, o_d_id, count(*) as ordered from orders group by o_w_id, o_d_id) as o \
            left join (select no_w_id, no_d_id, count(*) as waiting from new_order \
                group by no_w_id, no_d_id) as n on no_w_id = o_w_id and no_d_id = o_d_id \
            where ordered - coalesce(waiting, 0) <> {delivered}",
        heavy: false,
    },
    Rule {
        number: 12,
        says: "c_balance + c_ytd_payment = sum(delivered ol_amount)",
        broken: "select w_id, d_id, c_id, sum(amount) from \
            (select c_w_id as w_id, c_d_id as d_id, c_id, \
                c_balance + c_ytd_payment as amount from customer where {customer} \
            union all select o_w_id, o_d_id, o_c_id, -ol_amount from orders join order_line \
                on ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id \
                where {orders} and {order_line} and ol_delivery_d is not null) as amounts \
            group by w_id, d_id, c_id having sum(amount) <> 0",
        heavy: true,
    },
];

/// The columns by which tables are narrowed to some warehouses.
const NARROWED: [(&str, &str); 5] = [
    ("{orders}", "o_w_id"),
    ("{new_order}", "no_w_id"),
    ("{order_line}", "ol_w_id"),
    ("{history}", "h_c_w_id"),
    ("{customer}", "c_w_id"),
];

/// Looks at every condition that is to hold now.
///
/// # Errors
/// When one could not be looked at.
pub(super) fn check(
    session: &mut dyn Session,
    population: Population,
    when: Moment,
) -> Result<Vec<Condition>, SessionError> {
    let sample = sample(population.warehouses);
    let look = |session: &mut dyn Session, rule: &Rule| {
        let outcome = match (rule.number, when) {
            (11, Moment::Drained) => {
                Outcome::Skipped("it is only true before the first delivery".to_owned())
            }
            _ => {
                let sample = sample.as_deref().filter(|_| rule.heavy);
                rule.look(session, &text(rule, population, sample), sample)?
            }
        };
        let name = format!("condition {}", rule.number);
        Ok(Condition { name, says: rule.says.to_owned(), outcome })
    };
    session.begin()?;
    let conditions = RULES.iter().map(|rule| look(session, rule)).collect();
    session.rollback()?;
    conditions
}

/// Warehouses to look at, evenly spread; none when it is all of them.
fn sample(warehouses: u32) -> Option<Vec<u32>> {
    let spread = |index: u32| 1 + (u64::from(index) * u64::from(warehouses - 1) / 9) as u32;
    (warehouses > SAMPLED_ABOVE).then(|| (0..SAMPLED_ABOVE).map(spread).collect())
}

fn text(rule: &Rule, population: Population, sample: Option<&[u32]>) -> String {
    let delivered = (population.first_open() - 1).to_string();
    let mut text = rule.broken.replace("{delivered}", &delivered);
    for (mark, column) in NARROWED {
        let narrowed = match sample {
            None => "1 = 1".to_owned(),
            Some(sample) => {
                let sample: Vec<String> = sample.iter().map(u32::to_string).collect();
                format!("{column} in ({})", sample.join(", "))
            }
        };
        text = text.replace(mark, &narrowed);
    }
    // One is enough to know, a count of millions would only take time.
    text.push_str(" limit 1");
    text
}

impl Rule {
    fn look(
        &self,
        session: &mut dyn Session,
        text: &str,
        sample: Option<&[u32]>,
    ) -> Result<Outcome, SessionError> {
        let statement = session.prepare(text)?;
        let broken = first(session, statement, &[], |row| shown(row, text))?;
        Ok(match (broken, sample) {
            (Some(row), _) => Outcome::Broken(row),
            (None, Some(sample)) => Outcome::HoldsInSample(format!("warehouses {sample:?}")),
            (None, None) => Outcome::Holds,
        })
    }
}

/// Of a text: names and sums are shorter.
const SHOWN_CHARS_MAX: usize = 200;

/// A row as `name value, name value`; the names are those of the text.
fn shown(row: Row<'_>, text: &str) -> Result<String, SessionError> {
    let names = text.trim_start_matches("select ").split(" from ").next().unwrap_or_default();
    let mut shown = String::new();
    for (column, name) in names.split(", ").enumerate().take(row.columns()) {
        let separator = if column == 0 { "" } else { ", " };
        let value = match row.value(column)? {
            Value::Null => "null".to_owned(),
            Value::Int(int) => int.to_string(),
            Value::Real(real) => real.to_string(),
            Value::Decimal(decimal) => decimal.to_string(),
            Value::Text(text) => text.chars().take(SHOWN_CHARS_MAX).collect(),
            Value::Date(date) => date.to_string(),
            Value::Timestamp(moment) => moment.to_string(),
        };
        write!(shown, "{separator}{} {value}", name.trim()).expect("writing to text succeeds");
    }
    Ok(shown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Dialect;
    use crate::session::recorder::{Recorder, Request};

    fn outcomes(population: Population, when: Moment) -> Vec<Outcome> {
        let mut session = Recorder::new(Dialect::Postgres, |request| match request {
            Request::Statement(text, _) if text.contains("w_ytd <> districts") => {
                Ok(vec![vec![Value::Int(3), Value::Text("1.00"), Value::Text("2.00")]])
            }
            _ => Ok(Vec::new()),
        });
        let conditions = check(&mut session, population, when).unwrap();
        assert!(!session.log.iter().any(|request| format!("{request:?}").contains('{')
            && matches!(request, Request::Prepare(text) if text.contains('{'))));
        assert_eq!(session.log.last(), Some(&Request::Rollback));
        conditions.into_iter().map(|condition| condition.outcome).collect()
    }

    #[test]
    fn broken_and_unchecked_conditions_are_named() {
        let found = outcomes(Population::of(1), Moment::Drained);
        let first = "w_id 3, w_ytd 1.00, districts 2.00".to_owned();
        assert_eq!(found[0], Outcome::Broken(first));
        assert!(matches!(found[10], Outcome::Skipped(_)));
        assert_eq!(found.iter().filter(|found| **found == Outcome::Holds).count(), 10);
        assert_eq!(outcomes(Population::of(1), Moment::Loaded)[10], Outcome::Holds);
    }

    #[test]
    fn heavy_conditions_look_at_ten_warehouses() {
        let found = outcomes(Population::of(100), Moment::Drained);
        let sampled = |outcome: &&Outcome| matches!(outcome, Outcome::HoldsInSample(_));
        assert_eq!(found.iter().filter(sampled).count(), 5);
        assert_eq!(
            found[5],
            Outcome::HoldsInSample(
                "warehouses [1, 12, 23, 34, 45, 56, 67, 78, 89, 100]".to_owned()
            )
        );
        assert_eq!(sample(10), None);
        assert_eq!(sample(11).unwrap().len(), 10);
    }
}
