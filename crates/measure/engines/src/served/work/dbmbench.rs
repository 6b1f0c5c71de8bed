//! `dbmbench`: one query of the micro-benchmarks after DBmbench.

use workahead_study::engine::EngineError;
use workahead_workloads::dbmbench::{Bounds, Form, Options, Plan, Query};

use super::number::number;
use crate::configuration::CellConfiguration;

pub(super) fn read(config: &CellConfiguration<'_>) -> Result<Options, EngineError> {
    let queries = Query::ALL.map(|query| (query.name(), query));
    let paper = Options::of_paper(config.choice("query", Query::Utpcc, &queries)?);
    let plans = [("native", Plan::Native), ("paper", Plan::Paper)];
    Ok(Options {
        t1_rows: number(config, "rows", paper.t1_rows)?,
        t2_rows: number(config, "inner_rows", paper.t2_rows)?,
        a2_values: number(config, "values", paper.a2_values)?,
        selectivity: config.real("selectivity", paper.selectivity, 0.0..=1.0)?,
        plan: config.choice("plan", paper.plan, &plans)?,
        bounds: config.choice(
            "bounds",
            paper.bounds,
            &[("fixed", Bounds::Fixed), ("random", Bounds::Random)],
        )?,
        form: config.choice(
            "answers",
            paper.form,
            &[("stored", Form::IntoResult), ("returned", Form::ToClient)],
        )?,
        seed: config.seed(),
        ..paper
    })
}

pub(super) fn data(options: &Options) -> String {
    let Options { t1_rows, t2_rows, a2_values, a3_values, seed, .. } = options;
    format!("dbmbench_{t1_rows}_{t2_rows}_{a2_values}_{a3_values}_{seed}")
}

/// 100 bytes and a tuple's header; an index of T1 and one of T2.
pub(super) fn bytes(options: &Options) -> u64 {
    160 * (u64::from(options.t1_rows) + u64::from(options.t2_rows))
}
