//! A source with the counts and failures that a test chooses.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::event::{Event, Privilege};
use crate::rotation::Pace;
use crate::source::{CountError, Counting, Reading, Source, Target};

/// How a mock's group fails.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// `open` is refused.
    Open(CountError),
    /// `begin` is refused.
    Begin(CountError),
    /// `end` is refused.
    End(CountError),
    /// The counters are taken away after this share of the time.
    Stops(f64),
    /// The group never gets counters.
    NeverRuns,
    /// A count comes out as if a counter had gone below zero.
    Wraps,
}

/// A source under a virtual clock: every event counts its own number a second.
#[derive(Debug, Clone, Default)]
pub struct Mock {
    /// Counts a second, by event; an event that is not here does not exist.
    pub per_s: BTreeMap<String, f64>,
    /// The fault of the nth group to be opened, from 0.
    pub faults: BTreeMap<usize, Fault>,
    /// How many groups may be open at once; all when none.
    pub open_max: Option<usize>,
    clock: Virtual,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    opened: usize,
    open: usize,
    requests: Vec<(Vec<String>, Privilege, Target)>,
}

/// Time that passes only in waits.
#[derive(Debug, Clone, Default)]
pub struct Virtual {
    now_s: Arc<Mutex<f64>>,
    end_s: f64,
}

impl Virtual {
    /// A clock at zero whose waits end at `end_s`.
    #[must_use]
    pub fn until(end_s: f64) -> Self {
        Self { now_s: Arc::default(), end_s }
    }
}

impl Pace for Virtual {
    fn now_s(&self) -> f64 {
        *self.now_s.lock().expect("no test panics while it holds the clock")
    }

    fn wait_until(&mut self, then_s: f64) -> bool {
        let mut now_s = self.now_s.lock().expect("no test panics while it holds the clock");
        *now_s = then_s.min(self.end_s).max(*now_s);
        // Sums of slots are not exact.
        *now_s + 1e-9 < self.end_s
    }
}

impl Mock {
    /// Counts these under that clock.
    #[must_use]
    pub fn new(per_s: &[(&str, f64)], clock: &Virtual) -> Self {
        let per_s = per_s.iter().map(|(name, per_s)| ((*name).to_owned(), *per_s)).collect();
        Self { per_s, clock: clock.clone(), ..Self::default() }
    }

    /// Requests in order: names, privilege, target.
    #[must_use]
    pub fn requests(&self) -> Vec<(Vec<String>, Privilege, Target)> {
        self.state().requests.clone()
    }

    /// How many groups are open now.
    #[must_use]
    pub fn open_now(&self) -> usize {
        self.state().open
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("no test panics while it holds the state")
    }
}

impl Source for Mock {
    fn open(
        &mut self,
        group: &[Event],
        privilege: Privilege,
        target: &Target,
    ) -> Result<Box<dyn Counting>, CountError> {
        let mut state = self.state();
        let fault = self.faults.get(&state.opened).cloned();
        state.opened += 1;
        if let Some(Fault::Open(error)) = fault {
            return Err(error);
        }
        if self.open_max.is_some_and(|most| state.open >= most) {
            return Err(CountError::TooManyFiles);
        }
        let mut per_s = Vec::with_capacity(group.len());
        for event in group {
            let unknown = || CountError::NoSuchEvent {
                event: event.name.clone(),
                why: "the mock has no such event".to_owned(),
            };
            per_s.push(*self.per_s.get(&event.name).ok_or_else(unknown)?);
        }
        state.open += 1;
        let names = group.iter().map(|event| event.name.clone()).collect();
        state.requests.push((names, privilege, target.clone()));
        drop(state);
        let clock = self.clock.clone();
        let state = Arc::clone(&self.state);
        Ok(Box::new(MockCounting { per_s, fault, clock, begun_s: None, state }))
    }
}

struct MockCounting {
    per_s: Vec<f64>,
    fault: Option<Fault>,
    clock: Virtual,
    begun_s: Option<f64>,
    state: Arc<Mutex<State>>,
}

impl Counting for MockCounting {
    fn begin(&mut self) -> Result<(), CountError> {
        if let Some(Fault::Begin(error)) = &self.fault {
            return Err(error.clone());
        }
        self.begun_s = Some(self.clock.now_s());
        Ok(())
    }

    fn end(&mut self) -> Result<Reading, CountError> {
        if let Some(Fault::End(error)) = &self.fault {
            return Err(error.clone());
        }
        let begun_s = self.begun_s.expect("begun before it ends");
        let enabled_s = self.clock.now_s() - begun_s;
        let running_s = match self.fault {
            Some(Fault::Stops(share)) => enabled_s * share,
            Some(Fault::NeverRuns) => 0.0,
            _ => enabled_s,
        };
        let count = |per_s: &f64| match self.fault {
            Some(Fault::Wraps) => u64::MAX - 5,
            _ => (per_s * running_s).round() as u64,
        };
        Ok(Reading {
            enabled_ns: (enabled_s * 1e9).round() as u64,
            running_ns: (running_s * 1e9).round() as u64,
            values: self.per_s.iter().map(count).collect(),
        })
    }
}

impl Drop for MockCounting {
    fn drop(&mut self) {
        if let Ok(mut state) = self.state.lock() {
            state.open -= 1;
        }
    }
}
