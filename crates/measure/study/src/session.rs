//! A run of a study from beginning to end, in the order that checks everything before anything is
//! written.
//!
//! ```text
//!  begin   spec ─► run plan ─► engine ─► needs ─► memory ─► directory ─► run.json ─┐
//!                    cells     opened    per cell  fits?     claimed               │
//!  resume  run.json ─► spec ─► run plan ─► engine: the same one, on this machine? ─┤
//!                                                                                  ▼
//!                      run ◄─ needs, memory again ◄─ engine opened with limits ◄─ limits
//! ```
//!
//! The caller decides which engine is opened, which directory is claimed, and how limits are
//! measured; the session calls it in this order.

use std::path::{Path, PathBuf};

use workahead_machine::Machine;
use workahead_machine::limits::Limits;

use crate::engine::{Engine, EngineContext, Need, Stop};
use crate::error::StudyError;
use crate::observation::Observation;
use crate::record::Record;
use crate::run_plan::RunPlan;
use crate::runner::{self, End, Event, Job};
use crate::spec::Spec;
use crate::worker_process::Command;
use crate::{fingerprint, host, log, needs};

/// Opens the engine of a study: to check it, and again when the machine's limits are known.
pub type Opener<E> = Box<dyn Fn(&EngineContext) -> Result<Box<dyn Engine>, E>>;

/// The set-up of a session.
pub struct Setup<E> {
    /// Opens the engine.
    pub open: Opener<E>,
    /// Directory in which engines keep data between runs.
    pub data_dir: PathBuf,
    /// Command that runs one cell in a process of its own.
    pub worker: Option<Command>,
}

/// A run plan that its engine has accepted; nothing is written yet.
pub struct CheckedRunPlan {
    /// The study, on as many cores as there are here.
    pub spec: Spec,
    /// The cells; those that can't be run here are skipped.
    pub run_plan: RunPlan,
    /// The needs of each cell, in the run plan's order.
    pub needs: Vec<Need>,
    /// The run plan's fingerprint on this engine.
    pub fingerprint: String,
    engine: Box<dyn Engine>,
    context: EngineContext,
    machine: Machine,
}

/// A run whose directory and record are in place.
pub struct Session<E> {
    /// The result directory.
    pub dir: PathBuf,
    /// The record of the run.
    pub record: Record,
    /// The study.
    pub spec: Spec,
    /// Its cells.
    pub run_plan: RunPlan,
    engine: Box<dyn Engine>,
    open: Opener<E>,
    context: EngineContext,
    machine: Machine,
}

impl<E> Setup<E> {
    /// Opens the engine for a run plan.
    fn opened(&self, run_plan: &RunPlan) -> Result<(Box<dyn Engine>, EngineContext), E> {
        let context = EngineContext {
            data_dir: self.data_dir.clone(),
            worker: self.worker.clone(),
            ..run_plan.engine_context()
        };
        Ok(((self.open)(&context)?, context))
    }
}

impl CheckedRunPlan {
    /// The run plan of a study, every cell checked by its engine.
    ///
    /// # Errors
    /// When the engine can't be opened, or refuses a cell.
    pub fn new<E: From<StudyError>>(spec: &Spec, setup: &Setup<E>) -> Result<CheckedRunPlan, E> {
        let machine = Machine::here();
        let spec = spec.clone().on_cores(host::cores(&machine));
        let run_plan = RunPlan::new(&spec);
        let (engine, context) = setup.opened(&run_plan)?;
        let needs = needs::of(&run_plan, engine.as_ref())?;
        let fingerprint = fingerprint::of(&run_plan, engine.as_ref());
        let run_plan = run_plan.skipping(&needs);
        Ok(CheckedRunPlan { spec, run_plan, needs, fingerprint, engine, context, machine })
    }
}

impl<E: From<StudyError>> Session<E> {
    /// Begins a run in a directory that is claimed last. `repetitions` is recorded if it replaces
    /// the study's own.
    ///
    /// # Errors
    /// When the engine refuses the study, memory does not suffice, or the directory can't be
    /// claimed or written.
    pub fn begin(
        spec: Spec,
        repetitions: Option<u32>,
        setup: Setup<E>,
        claim: impl FnOnce(&Spec) -> Result<PathBuf, StudyError>,
    ) -> Result<Session<E>, E> {
        let CheckedRunPlan { spec, run_plan, needs, fingerprint, engine, context, machine } =
            CheckedRunPlan::new(&spec, &setup)?;
        let models = run_plan.models(&machine.caches).map_err(StudyError::from)?;
        needs::fit(&spec, &needs, host::available_bytes(&machine))?;
        let dir = claim(&spec)?;
        let record = Record {
            study: spec.id.clone(),
            run_plan_fingerprint: fingerprint,
            scale: spec.scale.clone(),
            repetitions,
            seed: spec.seed,
            engine: engine.name().to_owned(),
            engine_version: engine.version(),
            command_version: env!("CARGO_PKG_VERSION").to_owned(),
            started_unix_ms: runner::unix_ms(),
            host: host::of(&machine, &run_plan.collection, engine.tier()),
            limits: None,
            models,
            needs,
            text: spec.text.clone(),
        };
        record.save(&dir)?;
        Ok(Session { dir, record, spec, run_plan, engine, open: setup.open, context, machine })
    }

    /// Continues a run, if it is this machine, engine and study that began it.
    ///
    /// # Errors
    /// When it is not, or as [`begin`](Self::begin).
    pub fn resume(
        dir: &Path,
        setup: impl FnOnce(&Spec) -> Result<Setup<E>, E>,
    ) -> Result<Session<E>, E> {
        let record = Record::load(dir)?;
        let spec = record.spec()?;
        let run_plan = RunPlan::new(&spec).skipping(&record.needs);
        let setup = setup(&spec)?;
        let (engine, context) = setup.opened(&run_plan)?;
        let machine = Machine::here();
        same_run(dir, &record, &run_plan, engine.as_ref())?;
        if machine.fingerprint() != record.host.fingerprint {
            let (path, host) = (dir.to_owned(), record.host.name);
            return Err(StudyError::OtherMachine { path, host }.into());
        }
        let needs = needs::of(&run_plan, engine.as_ref())?;
        needs::fit(&spec, &needs, host::available_bytes(&machine))?;
        let dir = dir.to_owned();
        Ok(Session { dir, record, spec, run_plan, engine, open: setup.open, context, machine })
    }

    /// Opens the engine again with the machine's limits: those of the record, so that a resumed run
    /// keeps its sizes, or else what `measure` gives.
    ///
    /// # Errors
    /// When limits can't be measured, or as [`begin`](Self::begin).
    pub fn learn_limits(
        &mut self,
        measure: impl FnOnce(&Machine) -> Result<Option<Limits>, E>,
    ) -> Result<(), E> {
        let limits = match &self.record.limits {
            Some(limits) => Limits::read(limits.clone()),
            // Samples with and without limits are not mixed.
            None if self.has_samples() => None,
            None => measure(&self.machine)?,
        };
        let Some(limits) = limits else { return Ok(()) };
        self.record.host.siblings = host::has_siblings(&self.machine, Some(&limits));
        self.context.limits = Some(limits.clone());
        self.engine = (self.open)(&self.context)?;
        let needs = needs::of(&self.run_plan, self.engine.as_ref())?;
        needs::fit(&self.spec, &needs, host::available_bytes(&self.machine))?;
        self.run_plan = self.run_plan.clone().skipping(&needs);
        self.record.needs = needs;
        if self.record.limits.is_none() {
            let limits = serde_json::to_value(&limits).expect("limits have only text keys");
            self.record.limits = Some(limits);
        }
        Ok(self.record.save(&self.dir)?)
    }

    /// The observations of the log.
    ///
    /// # Errors
    /// When it can't be read.
    pub fn kept(&self) -> Result<Vec<Observation>, StudyError> {
        log::read(&self.dir, &self.record.run_plan_fingerprint, &self.run_plan)
    }

    /// Runs the remaining visits.
    ///
    /// # Errors
    /// When the log can't be written, or the engine fails outside of a sample.
    pub fn run(
        mut self,
        stop: &Stop,
        observe: &mut dyn FnMut(Event<'_>),
    ) -> Result<End, StudyError> {
        let job = Job {
            run_plan: &self.run_plan,
            fingerprint: &self.record.run_plan_fingerprint,
            dir: &self.dir,
        };
        runner::run(job, self.engine.as_mut(), stop, observe)
    }

    fn has_samples(&self) -> bool {
        std::fs::metadata(self.dir.join(log::FILE)).is_ok_and(|log| log.len() > 0)
    }
}

/// Refuses to mix results of two engines or two run plans.
fn same_run(
    dir: &Path,
    record: &Record,
    run_plan: &RunPlan,
    engine: &dyn Engine,
) -> Result<(), StudyError> {
    let (path, found) = (dir.to_owned(), engine.version());
    if found != record.engine_version {
        let begun = record.engine_version.clone();
        return Err(StudyError::OtherEngine { path, begun, found });
    }
    let expected = fingerprint::of(run_plan, engine);
    if expected != record.run_plan_fingerprint {
        return Err(StudyError::OtherRunPlan {
            path,
            found: record.run_plan_fingerprint.clone(),
            expected,
        });
    }
    Ok(())
}
