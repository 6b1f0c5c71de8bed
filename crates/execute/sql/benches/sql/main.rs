//! TPC-H, TPC-DS and joins of our own by DataFusion with its own joins and with ours, query by
//! query.
//!
//! ```text
//! tables (in memory, in Parquet) × threads ─► sessions, alike but for the rule
//! each query: a warm-up, whose rows are compared, then rounds: stock ours joins runtime, ours …
//! each pair ─► log-ratio of CPU times ─► interval; stock again, timed inside its joins ─► bound
//! ```
//!
//! All sessions have DataFusion's own settings, and tables with statistics (rows, bytes, nulls,
//! minimum and maximum, as Parquet has them): without them the planner builds on the wrong side,
//! and a win would be over a plan and not over a join. So `runtime`, ours with the build side
//! chosen at run time, is an arm of its own: it corrects plans. `joins` is ours without sideways
//! filters, which save more than joins. With `--duckdb`, DuckDB runs in the same rounds.
//! `cargo xtask bench sql --help`.

#[path = "../../tests/answer/mod.rs"]
mod answer;
mod arguments;
#[path = "../../tests/tpcds/data.rs"]
mod data;
mod duckdb;
mod figures;
mod operator_time;
#[path = "../../tests/tpcds/order.rs"]
mod order;
mod orders;
mod pairs;
#[path = "../../tests/tpcds/rewrites.rs"]
mod rewrites;
mod sessions;
mod shapes;
mod statistics_table;
mod suite;

use serde_json::{Value, json};
use workahead_machine::{Machine, Sysroot};

use arguments::Arguments;
use figures::Setting;
use sessions::Tables;

fn main() {
    let arguments = match Arguments::read() {
        Ok(arguments) => arguments,
        Err(why) => {
            eprintln!("error: {why}");
            std::process::exit(2);
        }
    };
    let tables = Tables::generate(&arguments);
    let mut all = Vec::new();
    for &storage in &arguments.storages {
        for &threads in &arguments.threads {
            let measured = pairs::run(&arguments, &tables, storage, threads);
            let (suite, arms) = (arguments.suite, arguments.arms.clone());
            let setting = Setting { suite, storage, threads, arms, measured };
            if !arguments.json {
                print!("{}", figures::table(&setting));
            }
            all.push(setting);
        }
    }
    if arguments.json {
        println!("{}", result(&arguments, &all));
    }
}

/// The recorded result.
fn result(arguments: &Arguments, all: &[Setting]) -> Value {
    let sums = all.iter().flat_map(figures::sums);
    let queries = all.iter().flat_map(figures::rows);
    let rounds = all.iter().flat_map(figures::raw);
    let (suite, scale) = (arguments.suite, arguments.scale);
    json!({
        "title": format!("{} at scale {scale} in DataFusion: our joins and its own", suite.title()),
        "suite": suite.title(),
        "machine": Machine::read(&Sysroot::live()),
        "whole": arguments.is_whole(),
        "duckdb": arguments.duckdb,
        "rows": sums.chain(queries).collect::<Vec<_>>(),
        "tables": figures::times(all),
        "rounds": rounds.collect::<Vec<_>>(),
        "notes": figures::notes(arguments),
    })
}
