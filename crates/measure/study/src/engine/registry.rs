//! The engines of a program, by the names that studies use.
//!
//! Crates with engines add them by a function `register`; the command chooses the crates, so that
//! nothing here depends on an engine.

use super::{Answer, Engine, EngineContext, EngineError, Stop};
use crate::worker_process::{Reply, Request, Worker};

/// Opens an engine.
pub type OpenEngine = fn(&EngineContext) -> Result<Box<dyn Engine>, EngineError>;

/// Opens an engine that can run one cell in a process of its own.
pub type OpenWorker = fn(&EngineContext) -> Result<Box<dyn Worker>, EngineError>;

/// An engine that can be opened.
#[derive(Debug, Clone, Copy)]
pub struct EngineEntry {
    /// The name that studies use.
    pub name: &'static str,
    /// A description, in a line.
    pub description: &'static str,
    /// Opens it.
    pub open: OpenEngine,
    /// Opens it in a worker process; `None` for engines that run in processes of others.
    pub open_worker: Option<OpenWorker>,
}

/// All engines of a program, in the order in which they were registered.
#[derive(Debug, Clone, Default)]
pub struct EngineRegistry {
    entries: Vec<EngineEntry>,
}

impl EngineRegistry {
    /// Adds an engine.
    ///
    /// # Panics
    /// If there is one of that name.
    pub fn register(&mut self, entry: EngineEntry) {
        let name = entry.name;
        assert!(self.entries().all(|known| known.name != name), "engine `{name}` exists");
        self.entries.push(entry);
    }

    /// Every engine.
    pub fn entries(&self) -> impl Iterator<Item = &EngineEntry> {
        self.entries.iter()
    }

    /// Opens an engine by its name.
    ///
    /// # Errors
    /// When no engine has that name, or the engine does not support the context.
    pub fn open(
        &self,
        name: &str,
        context: &EngineContext,
    ) -> Result<Box<dyn Engine>, EngineError> {
        match self.entries().find(|entry| entry.name == name) {
            Some(entry) => (entry.open)(context),
            None => {
                Err(EngineError::unknown("engine", name, self.entries().map(|entry| entry.name)))
            }
        }
    }

    /// Handles a request in a worker process: prepares a cell and runs it, untimed, the requested
    /// number of times.
    ///
    /// # Errors
    /// When the engine can't run in a worker process, the cell can't be run, or two runs give
    /// different answers.
    pub fn reply(&self, request: &Request) -> Result<Reply, EngineError> {
        let mut engine = self.open_worker(request)?;
        engine.prepare(&request.cell, &Stop::new())?;
        let mut answer: Option<Answer> = None;
        for _ in 0..request.runs {
            let got = engine.run_once(&request.cell)?;
            match answer.replace(got) {
                Some(expected) if expected != got => {
                    return Err(EngineError::WrongAnswer { got, expected });
                }
                _ => {}
            }
        }
        Ok(Reply { runs: request.runs, answer })
    }

    fn open_worker(&self, request: &Request) -> Result<Box<dyn Worker>, EngineError> {
        let workers = || self.entries().filter_map(|entry| Some((entry.name, entry.open_worker?)));
        let Some((_, open)) = workers().find(|(name, _)| *name == request.engine) else {
            let names = workers().map(|(name, _)| name);
            return Err(EngineError::unknown("engine", &request.engine, names));
        };
        let context = EngineContext {
            data_dir: request.home.clone(),
            limits: request.limits.clone(),
            ..EngineContext::default()
        };
        open(&context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Mock;

    fn registry() -> EngineRegistry {
        let mut registry = EngineRegistry::default();
        registry.register(EngineEntry {
            name: "mock",
            description: "pretends",
            open: |_| Ok(Box::new(Mock::new())),
            open_worker: None,
        });
        registry
    }

    #[test]
    fn an_unknown_name_gets_the_nearest() {
        let registry = registry();
        let open = |name| registry.open(name, &EngineContext::default());
        assert_eq!(open("mock").unwrap().name(), "mock");
        let error = open("mokc").map(drop).unwrap_err().to_string();
        assert_eq!(error, "unknown engine `mokc`: did you mean `mock`?");
    }

    #[test]
    #[should_panic(expected = "engine `mock` exists")]
    fn a_name_is_registered_once() {
        let mut registry = registry();
        let again = *registry.entries().next().unwrap();
        registry.register(again);
    }
}
