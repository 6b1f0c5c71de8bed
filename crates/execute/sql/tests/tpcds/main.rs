//! TPC-DS's 99 queries: the answers are DuckDB's, by DataFusion alone and with our joins, with
//! memory for all and with so little that joins spill.
//!
//! ```text
//! DuckDB ─► tables, texts, answers (data.rs) ─► arms ─► rows ─► a right answer? (../answer)
//! ```
//!
//! In a pool, a query may fail for want of memory where DataFusion's own joins fail too; where
//! they pass, ours have to, and no answer may be wrong. `WORKAHEAD_TPCDS` lists the scales.

#[path = "../answer/mod.rs"]
mod answer;
mod arm;
mod data;
mod order;
mod rewrites;

use std::collections::BTreeSet;

use arm::{Arm, Outcomes};
use data::Data;

/// The one that is looked at by default: the smallest with rows in every table.
const SCALE: f64 = 0.01;

const MB: usize = 1 << 20;
/// The pool of a small container.
const POOL_BYTES: usize = 64 * MB;
/// At the usual scale, enough for the batches that wait in a plan and too little for its tables.
const SMALL_POOL_BYTES: usize = 3 * MB;

fn scales() -> Vec<f64> {
    let wanted = std::env::var("WORKAHEAD_TPCDS").ok();
    let number = |text: &str| text.parse().expect("WORKAHEAD_TPCDS lists scales: 0.1,1");
    wanted.map_or(vec![SCALE], |list| list.split(',').map(number).collect())
}

/// Every query is answered, and rightly.
fn all_pass(arms: impl IntoIterator<Item = Arm>) {
    let arms: Vec<Arm> = arms.into_iter().collect();
    for scale in scales() {
        let data = Data::of(scale);
        let ran: Vec<Outcomes> = arms.iter().map(|arm| arm.run(&data)).collect();
        let failed: String = ran.iter().map(Outcomes::table).collect();
        assert!(failed.is_empty(), "scale {scale}:\n{failed}");
        assert!(ran.iter().all(|ran| ran.joins_are_the_arms()), "a join is not the arm's");
    }
}

/// No answer is wrong, and what passes with DataFusion's own joins passes with ours. Returns how
/// many of our joins spilled.
fn passes_where_stock_does(data: &Data, arm: Arm) -> usize {
    let stock = Arm { ours: false, ..arm }.run(data);
    let ours = arm.run(data);
    let tables = stock.table() + &ours.table();
    eprintln!("{tables}");
    let wrong = stock.wrong.len() + ours.wrong.len();
    let lost: BTreeSet<_> =
        ours.refused.keys().filter(|q| !stock.refused.contains_key(*q)).collect();
    assert!(wrong == 0 && lost.is_empty(), "ours alone fail {lost:?}\n{tables}");
    ours.spilled
}

const OURS: Arm = Arm { ours: true, partitions: 2, pool_bytes: None, limits: true };

#[test]
fn datafusion_returns_right_answers() {
    all_pass([1, 2].map(|partitions| Arm { ours: false, partitions, ..OURS }));
}

#[test]
fn our_joins_return_right_answers() {
    all_pass([1, 2].map(|partitions| Arm { partitions, ..OURS }));
}

/// A limit hides rows, and changes plans.
#[test]
fn both_return_right_answers_without_limits() {
    all_pass([false, true].map(|ours| Arm { ours, limits: false, ..OURS }));
}

#[test]
fn our_joins_pass_in_a_pool_where_datafusions_do() {
    for scale in scales() {
        let data = Data::of(scale);
        for partitions in [1, 2] {
            let pool_bytes = Some(POOL_BYTES);
            passes_where_stock_does(&data, Arm { partitions, pool_bytes, ..OURS });
        }
    }
}

#[test]
fn our_joins_return_right_answers_from_files() {
    let data = Data::of(SCALE);
    for partitions in [1, 2] {
        let pool_bytes = Some(SMALL_POOL_BYTES);
        let spilled = passes_where_stock_does(&data, Arm { partitions, pool_bytes, ..OURS });
        assert!(spilled > 5, "{spilled} joins spilled");
    }
}
