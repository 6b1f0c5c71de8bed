//! `sysbench-oltp`: sysbench's OLTP program, as of 0.4 or 1.0.

use workahead_study::engine::EngineError;
use workahead_workloads::sysbench::Flavour;
use workahead_workloads::sysbench::distribution::Distribution;
use workahead_workloads::sysbench::oltp::{Options, Script};

use super::number::number;
use crate::configuration::CellConfiguration;
use crate::sysbench::FORMS;

pub(super) fn read(config: &CellConfiguration<'_>) -> Result<Options, EngineError> {
    let usual = Options::of(config.choice("form", Flavour::V10, &FORMS)?);
    let scripts = [
        ("read-write", Script::ReadWrite),
        ("read-only", Script::ReadOnly),
        ("point-select", Script::PointSelect),
    ];
    let distributions = [
        ("uniform", Distribution::Uniform),
        ("gaussian", Distribution::Gaussian),
        ("special", Distribution::Special),
    ];
    Ok(Options {
        script: config.choice("script", usual.script, &scripts)?,
        tables: number(config, "tables", usual.tables)?,
        rows: number(config, "rows", usual.rows)?,
        distribution: config.choice("distribution", usual.distribution, &distributions)?,
        seed: config.seed(),
        ..usual
    })
}

pub(super) fn data(options: &Options) -> String {
    let Options { flavour, tables, rows, seed, .. } = options;
    let form = flavour.name().replace('.', "");
    format!("sysbench{form}_{tables}_{rows}_{seed}")
}

/// 188 bytes, a tuple's header, two indexes.
pub(super) fn bytes(options: &Options) -> u64 {
    260 * u64::from(options.tables) * u64::from(options.rows)
}
