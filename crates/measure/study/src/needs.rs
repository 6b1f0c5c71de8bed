//! The needs of a run plan, checked before anything is run.

use crate::engine::{Engine, Need};
use crate::error::StudyError;
use crate::run_plan::RunPlan;
use crate::spec::Spec;

/// Bytes per MiB.
const MIB: u64 = 1 << 20;

/// The needs of each cell, in the run plan's order. Refuses settings that the engine does not know.
pub fn of(run_plan: &RunPlan, engine: &dyn Engine) -> Result<Vec<Need>, StudyError> {
    let need = |cell| {
        engine.check(cell).map_err(|source| StudyError::Cell {
            id: run_plan.study.clone(),
            label: format!("\"{}\"", cell.label(&run_plan.axes)),
            source,
        })
    };
    run_plan.cells.iter().map(need).collect()
}

/// The memory of the largest cell.
pub fn memory_bytes_max(needs: &[Need]) -> u64 {
    needs.iter().map(|need| need.memory_bytes).max().unwrap_or(0)
}

/// Refuses a run plan that does not fit, naming smaller scales.
pub fn fit(spec: &Spec, needs: &[Need], available_bytes: u64) -> Result<(), StudyError> {
    let needed_bytes = memory_bytes_max(needs);
    if needed_bytes <= available_bytes {
        return Ok(());
    }
    Err(StudyError::Memory {
        id: spec.id.clone(),
        needed_mib: needed_bytes.div_ceil(MIB),
        available_mib: available_bytes / MIB,
        remedy: format!("{}, or free memory", spec.other_scales("lower its sizes")),
    })
}
