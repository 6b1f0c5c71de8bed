//! TPC-H by DataFusion with its own joins and with ours, query by query.
//!
//! ```text
//! tables (in memory, in Parquet) × threads ─► sessions, alike but for the rule
//! each query: a warm-up, whose rows are compared, then rounds: stock ours joins measured, ours …
//! each pair ─► log-ratio of CPU times ─► interval; stock again, timed inside its joins ─► bound
//! ```
//!
//! All sessions have DataFusion's own settings, and tables with statistics (rows, bytes, nulls,
//! least and greatest values, as Parquet has them): without them the planner builds on the wrong
//! side, and a win would be over a plan and not over a join. So `measured`, ours with the build
//! side found at run time, is an arm of its own: it mends plans. `joins` is ours without sideways
//! filters, which spare more than joins. `cargo xtask bench sql --help`.

mod arguments;
mod described;
mod figures;
mod pairs;
mod sessions;
mod timed;

use serde_json::{Value, json};

use arguments::Asked;
use figures::Setting;
use sessions::Tables;

fn main() {
    let asked = match Asked::read() {
        Ok(asked) => asked,
        Err(why) => {
            eprintln!("error: {why}");
            std::process::exit(2);
        }
    };
    let tables = Tables::generate(&asked);
    let mut all = Vec::new();
    for &place in &asked.places {
        for &threads in &asked.threads {
            let measured = pairs::run(&asked, &tables, place, threads);
            let setting = Setting { place, threads, arms: asked.arms.clone(), measured };
            if !asked.json {
                print!("{}", figures::shown(&setting));
            }
            all.push(setting);
        }
    }
    if asked.json {
        println!("{}", result(&asked, &all));
    }
}

/// What is recorded.
fn result(asked: &Asked, all: &[Setting]) -> Value {
    let sums = all.iter().flat_map(figures::sums);
    let queries = all.iter().flat_map(figures::rows);
    let rounds = all.iter().flat_map(figures::raw);
    json!({
        "title": format!("TPC-H at scale {} in DataFusion: our joins and its own", asked.scale),
        "whole": asked.is_whole(),
        "rows": sums.chain(queries).collect::<Vec<_>>(),
        "rounds": rounds.collect::<Vec<_>>(),
        "notes": figures::notes(asked),
    })
}
