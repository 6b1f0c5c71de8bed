//! The workloads of served databases, by the settings that studies give them.

use std::sync::Arc;

use workahead_study::engine::EngineError;
use workahead_workloads::client::Workload;
use workahead_workloads::dbmbench::{Bounds, Dbmbench, Form, Options, Plan, Query};

use crate::given::Given;

/// What is run, and on which data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Work {
    /// One query of the micro-benchmarks after DBmbench.
    Dbmbench(Options),
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Dbmbench,
}

const KINDS: [(&str, Kind); 1] = [("dbmbench", Kind::Dbmbench)];

/// Most rows of a table: numbers of 32 bits.
const ROWS_MAX: usize = u32::MAX as usize;

impl Work {
    pub(super) fn read(given: &Given<'_>) -> Result<Self, EngineError> {
        if !given.has("workload") {
            let names = KINDS.map(|(name, _)| name).join(", ");
            let says = format!("the setting `workload` is missing: choose from {names}");
            return Err(EngineError::Failed(says));
        }
        match given.choice("workload", Kind::Dbmbench, &KINDS)? {
            Kind::Dbmbench => dbmbench(given).map(Work::Dbmbench),
        }
    }

    /// The workload itself.
    pub(super) fn open(&self) -> Result<Arc<dyn Workload>, EngineError> {
        let failed = |error: &dyn std::fmt::Display| EngineError::Failed(error.to_string());
        match self {
            Work::Dbmbench(options) => {
                let workload = Dbmbench::new(*options).map_err(|error| failed(&error))?;
                Ok(Arc::new(workload))
            }
        }
    }

    /// Names the rows it needs: those of one name are the same.
    pub(super) fn data(&self) -> String {
        match self {
            Work::Dbmbench(Options { t1_rows, t2_rows, a2_values, a3_values, seed, .. }) => {
                format!("dbmbench_{t1_rows}_{t2_rows}_{a2_values}_{a3_values}_{seed}")
            }
        }
    }

    /// About what its tables take.
    pub(super) fn data_bytes(&self) -> u64 {
        match self {
            // 100 bytes and a tuple's header; an index of T1 and one of T2.
            Work::Dbmbench(options) => {
                160 * (u64::from(options.t1_rows) + u64::from(options.t2_rows))
            }
        }
    }
}

fn dbmbench(given: &Given<'_>) -> Result<Options, EngineError> {
    let queries = Query::ALL.map(|query| (query.name(), query));
    let seed = Options::seed_of(given.choice("query", Query::Utpcc, &queries)?);
    let rows = |key, usual| Ok::<_, EngineError>(given.number(key, usual, 1..=ROWS_MAX)? as u32);
    let plans = [("native", Plan::Native), ("seed", Plan::Seed)];
    Ok(Options {
        t1_rows: rows("rows", seed.t1_rows as usize)?,
        t2_rows: rows("inner_rows", seed.t2_rows as usize)?,
        a2_values: rows("values", seed.a2_values as usize)?,
        selectivity: given.real("selectivity", seed.selectivity, 0.0..=1.0)?,
        plan: given.choice("plan", seed.plan, &plans)?,
        bounds: given.choice(
            "bounds",
            seed.bounds,
            &[("fixed", Bounds::Fixed), ("random", Bounds::Random)],
        )?,
        form: given.choice(
            "answers",
            seed.form,
            &[("stored", Form::IntoResult), ("returned", Form::ToClient)],
        )?,
        seed: given.seed(),
        ..seed
    })
}
