//! DataFusion's own sqllogictest files, run twice: by DataFusion alone and with our joins.
//!
//! ```text
//! file ─► records ─► stock: outcomes ─┐
//!                 └► ours:  outcomes ─┴─► rows equal? ─► counts, and what was left out
//! ```
//!
//! Both must return the same rows, whatever the file expects; the number of met expectations shows
//! that the harness works like DataFusion's own. Statements about plans (`EXPLAIN`) are left out
//! and reported: their plans differ on purpose.
//!
//! `cargo test -p workahead-sql --test slt -- [FILE…]`

mod arm;
mod cells;
mod compare;
mod corpus;
mod refusing_pool;
mod tables;

use std::process::ExitCode;

use arm::{Arm, Joins};
use compare::Tally;
use corpus::Corpus;

/// Files about joins, and the ways in which ours runs besides the default of 8192-row batches.
/// Stock always has the default: with one-row batches the memory of its joins of strings grows with
/// the product of a query's joins, and `imdb.slt` does not fit. TPC-H from files is a test of its
/// own.
const FILES: [(&str, &[Joins]); 14] = {
    const ROW: Joins = Joins::InBatches(1);
    const FEW: Joins = Joins::InBatches(7);
    const FILE: Joins = Joins::Spilling;
    const MERGE: Joins = Joins::InsteadOfSortMerge;
    [
        ("imdb.slt", &[FILE, ROW, FEW]),
        ("joins.slt", &[FILE, ROW, FEW, MERGE]),
        ("join_only.slt", &[FILE, ROW, FEW, MERGE]),
        ("join_disable_repartition_joins.slt", &[FILE, ROW, FEW]),
        ("join_lists.slt", &[FILE, ROW, FEW]),
        ("join_is_not_distinct_from.slt", &[FILE, ROW, FEW, MERGE]),
        ("join_limit_pushdown.slt", &[FILE, ROW, FEW]),
        ("sort_merge_join.slt", &[FILE, ROW, FEW, MERGE]),
        ("subquery.slt", &[FILE, ROW, FEW, MERGE]),
        ("lateral_join.slt", &[FILE, ROW, FEW]),
        ("null_aware_anti_join.slt", &[FILE, ROW, FEW]),
        ("push_down_filter_outer_joins.slt", &[FILE, ROW, FEW]),
        ("push_down_filter_parquet.slt", &[FILE, ROW, FEW]),
        ("tpch/tpch.slt", &[MERGE]),
    ]
};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "--list") {
        return ExitCode::SUCCESS;
    }
    let names: Vec<&String> = words.iter().filter(|word| !word.starts_with('-')).collect();
    let corpus = match Corpus::find() {
        Ok(corpus) => corpus,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        // Some of the plans are deep.
        .thread_stack_size(16 << 20)
        .enable_all()
        .build()
        .expect("a runtime");
    let mut total = Tally::default();
    for (file, ways) in FILES {
        if !names.is_empty() && !names.iter().any(|name| file.contains(name.as_str())) {
            continue;
        }
        total.add(runtime.block_on(compared(&corpus, file, ways)));
    }
    println!("{total}");
    total.libtest();
    if total.failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

async fn compared(corpus: &Corpus, file: &str, ways: &[Joins]) -> Tally {
    let records = corpus.records(file);
    corpus.scratch(file);
    let stock = Arm::new(file, Joins::Stock).await.run(&records).await;
    let mut total = Tally::default();
    for joins in std::iter::once(Joins::Ours).chain(ways.iter().copied()) {
        corpus.scratch(file);
        let ours = Arm::new(file, joins).await.run(&records).await;
        let tally = compare::compare(&records, &stock, &ours);
        println!("{file}{joins}: {tally}");
        tally.print_notes();
        if joins == Joins::Ours {
            // The same for every way.
            tally.print_left_out();
        }
        total.add(tally);
    }
    total
}
