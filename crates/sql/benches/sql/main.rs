//! TPC-H by DataFusion with its own joins and with ours, query by query.
//!
//! ```text
//! tables (in memory, in Parquet) × threads ─► two sessions, alike but for the rule
//! each query: a warm-up, whose rows are compared, then rounds: stock ours, ours stock…
//! each pair ─► log-ratio of CPU times ─► interval; stock again, timed inside its joins ─► bound
//! ```
//!
//! Both sessions have the same settings, a memory pool, and tables with statistics (rows, bytes,
//! nulls, least and greatest values, as Parquet has them): without them the planner builds on the
//! wrong side, and a win would be over a plan and not over a join. `cargo xtask bench sql --help`.

mod asked;
mod described;
mod figures;
mod pairs;
mod sessions;
mod timed;

use serde_json::{Value, json};

use asked::Asked;
use pairs::Measured;
use sessions::{Place, Tables};

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
            if !asked.json {
                print!("{}", figures::shown(&measured, place, threads));
            }
            all.push((place, threads, measured));
        }
    }
    if asked.json {
        println!("{}", result(&asked, &all));
    }
}

/// What is recorded.
fn result(asked: &Asked, all: &[(Place, usize, Vec<Measured>)]) -> Value {
    let settings = || all.iter().map(|(place, threads, measured)| (*place, *threads, measured));
    let sums = settings().flat_map(|(p, t, measured)| figures::sums(measured, p, t));
    let queries = settings().flat_map(|(p, t, measured)| figures::rows(measured, p, t));
    let rounds = settings().flat_map(|(p, t, measured)| figures::raw(measured, p, t));
    json!({
        "title": format!("TPC-H at scale {} in DataFusion: our joins and its own", asked.scale),
        "whole": asked.is_whole(),
        "rows": sums.chain(queries).collect::<Vec<_>>(),
        "rounds": rounds.collect::<Vec<_>>(),
        "notes": figures::notes(asked),
    })
}
