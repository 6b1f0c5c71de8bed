//! The machine and its limits, in the JSON of `workahead machine --json` and `limits --json`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;
use workahead_machine::Machine;
use workahead_machine::limits::{Budget, Limits, Store};

use crate::errors::Error;

/// The interval at which a pending Ctrl-C is checked.
const TICK: Duration = Duration::from_millis(50);

/// The description of this computer.
#[pyfunction]
pub(crate) fn machine(py: Python<'_>) -> PyResult<String> {
    let json = py.detach(|| serde_json::to_string(&Machine::here()));
    Ok(json.map_err(Error::Json)?)
}

/// The kept limits, if there are any.
#[pyfunction]
pub(crate) fn kept_limits(py: Python<'_>) -> PyResult<Option<String>> {
    let limits = py.detach(|| Store::of_user().load(&Machine::here()));
    let json = limits.map(|limits| serde_json::to_string(&limits)).transpose();
    Ok(json.map_err(Error::Json)?)
}

/// Measures the limits: quickly, and not kept, or thoroughly.
#[pyfunction]
pub(crate) fn measured_limits(py: Python<'_>, quick: bool) -> PyResult<String> {
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let measuring = thread::Builder::new().spawn(move || measure(quick, &stopped));
    let measuring = measuring.map_err(Error::Thread)?;
    let mut interrupted = Ok(());
    while !measuring.is_finished() {
        py.detach(|| thread::sleep(TICK));
        if interrupted.is_ok() {
            interrupted = py.check_signals();
        }
        // It ends within a pass.
        stop.store(interrupted.is_err(), Ordering::Relaxed);
    }
    interrupted?;
    let limits = measuring.join();
    let limits = limits.map_err(|_| Error::Defect("the measurement panicked".to_owned()))??;
    Ok(serde_json::to_string(&limits).map_err(Error::Json)?)
}

fn measure(quick: bool, stop: &AtomicBool) -> Result<Limits, Error> {
    let machine = Machine::here();
    let progress = &mut |_: workahead_machine::limits::Progress<'_>| {};
    if quick {
        return Ok(Limits::measure(&machine, Budget::quick(&machine), progress, stop)?);
    }
    let store = Store::of_user();
    Ok(Limits::measure_and_save(&machine, &store, progress, stop)?.limits)
}
