//! Run plans: every cell of a study, in order.
//!
//! ```text
//!   block 0 (data)          block 1 (other data)
//!   warm-up   A B C         …
//!   rep 0     A B C   ──►   complete blocks: every cell once per repetition,
//!   rep 1     C B A   ◄──   forward then backward (ABBA), so that a machine that
//!   rep 2     A B C         slows down steadily favours none
//! ```
//!
//! Or each repetition in an order of its own, drawn from the study's seed.

use std::collections::BTreeSet;

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde::{Deserialize, Serialize};
use workahead_counters::instrumented;
use workahead_machine::caches::Cache;

use crate::cell::Cell;
use crate::cell_index::PlaceIndex;
use crate::collection::CollectionOptions;
use crate::engine::{EngineContext, Need};
use crate::instrument::{Instrumentation, Model, model};
use crate::method::Order;
use crate::protocol::{PROTOCOL, Protocol, Start};
use crate::setting::{Setting, Settings};
use crate::spec::Spec;

/// A study's cells and how they are visited.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunPlan {
    /// Id of the study.
    pub study: String,
    /// The axes, outer ones first, `case` among them.
    pub axes: Vec<String>,
    /// The axes of sweeps, along which only some cells are varied.
    #[serde(default)]
    pub sweeps: Vec<String>,
    /// The cells; those of one block lie together.
    pub cells: Vec<Cell>,
    /// Number of blocks.
    pub blocks: usize,
    /// Samples per cell.
    pub repetitions: u32,
    /// Rounds thrown away.
    pub warmup: u32,
    /// The order inside a block.
    #[serde(default, skip_serializing_if = "Order::is_abba")]
    pub order: Order,
    /// The collection of every sample.
    #[serde(default, rename = "collector", alias = "watch")]
    #[serde(skip_serializing_if = "CollectionOptions::is_nothing")]
    pub collection: CollectionOptions,
    /// The tool that every cell is run under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instrumented: Option<Instrumentation>,
    /// Indices of cells that can't be run here: they are in the run plan and never visited.
    #[serde(skip)]
    pub skipped: BTreeSet<usize>,
    #[serde(skip)]
    places: PlaceIndex,
}

/// One visit of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Visit {
    /// Index of the cell.
    pub cell: usize,
    /// Which repetition, from 0.
    pub repetition: u32,
    /// Position in the order of its repetition, from 0.
    pub slot: usize,
}

impl RunPlan {
    /// The product of all axes and cases, and after each cell its sweeps.
    pub fn new(spec: &Spec) -> RunPlan {
        let mut axes = spec.axis_names();
        let mut places = vec![Settings::new()];
        for axis in &axes {
            let values = values(spec, axis);
            let extend = |place: &Settings| {
                let with = |value: &Setting| {
                    let mut place = place.clone();
                    place.insert(axis.clone(), value.clone());
                    place
                };
                values.iter().map(with).collect::<Vec<_>>()
            };
            places = places.iter().flat_map(extend).collect();
        }
        let block_axes = spec.block_names();
        let mut cells: Vec<Cell> = Vec::with_capacity(places.len());
        let mut block = 0;
        for place in places {
            if let Some(last) = cells.last() {
                let differs = |axis: &String| last.place.get(axis) != place.get(axis);
                block += usize::from(block_axes.iter().any(differs));
            }
            let mut settings = merged(spec, &place);
            let protocol = protocol(spec, &mut settings);
            let index = cells.len();
            let cell = Cell { index, block, seed: spec.seed, place, settings, protocol };
            let swept = swept(spec, &cell);
            cells.push(cell);
            cells.extend(swept);
        }
        // The case stays last: it names the rows of tables.
        let last = axes.len() - usize::from(!spec.cases.is_empty());
        axes.splice(last..last, spec.sweep_names());
        RunPlan {
            study: spec.id.clone(),
            axes,
            sweeps: spec.sweep_names(),
            blocks: block + 1,
            cells,
            repetitions: spec.method.repetitions,
            warmup: spec.method.warmup,
            order: spec.method.order,
            collection: spec.method.collection(),
            instrumented: spec.method.instrumented.clone(),
            skipped: BTreeSet::new(),
            places: PlaceIndex::default(),
        }
    }

    /// Without visits of cells that can't be run here, by their needs.
    #[must_use]
    pub fn skipping(mut self, needs: &[Need]) -> RunPlan {
        let needs = needs.iter().take(self.cells.len()).enumerate();
        let impossible = needs.filter(|(_, need)| need.impossible.is_some());
        self.skipped = impossible.map(|(index, _)| index).collect();
        self
    }

    /// The context for the engine that runs it.
    #[must_use]
    pub fn engine_context(&self) -> EngineContext {
        EngineContext {
            collection: self.collection.clone(),
            instrumentation: self.instrumented.clone(),
            ..EngineContext::default()
        }
    }

    /// The cache models that its cells are counted by, each once; empty without a model. `caches`
    /// are those of this machine.
    ///
    /// # Errors
    /// As [`Instrumentation::geometry`].
    pub fn models(&self, caches: &[Cache]) -> Result<Vec<Model>, instrumented::Error> {
        let Some(method) = &self.instrumented else { return Ok(Vec::new()) };
        let mut models: Vec<Model> = Vec::new();
        for cell in &self.cells {
            let with = method.of(cell);
            if !models.iter().any(|known| known.caches == with.caches) {
                models.push(model(&with.caches, caches)?);
            }
        }
        Ok(models)
    }

    /// The cells of a block.
    pub fn block(&self, block: usize) -> &[Cell] {
        let start = self.cells.partition_point(|cell| cell.block < block);
        let end = self.cells.partition_point(|cell| cell.block <= block);
        &self.cells[start..end]
    }

    /// The visits of one repetition of a block: even ones forward, odd ones backward, or shuffled.
    pub fn visits(&self, block: usize, repetition: u32) -> Vec<Visit> {
        let cells = self.block(block).iter().map(|cell| cell.index);
        let mut cells: Vec<usize> = cells.filter(|cell| !self.skipped.contains(cell)).collect();
        match self.order {
            Order::Abba if repetition % 2 == 1 => cells.reverse(),
            Order::Abba => {}
            Order::Random => {
                let seed = self.cells.first().map_or(0, |cell| cell.seed);
                let mut random = ChaCha8Rng::seed_from_u64(seed);
                random.set_stream((block as u64) << 32 | u64::from(repetition));
                cells.shuffle(&mut random);
            }
        }
        let visit = |(slot, cell)| Visit { cell, repetition, slot };
        cells.into_iter().enumerate().map(visit).collect()
    }

    /// The number of samples of a complete run.
    pub fn samples(&self) -> usize {
        (self.cells.len() - self.skipped.len()) * self.repetitions as usize
    }

    /// Whether a statement about cells with these settings includes this one: a sweep's cells are
    /// included only if its axis is named.
    pub fn means(&self, settings: &Settings, cell: &Cell) -> bool {
        let swept = |axis: &String| cell.place.contains_key(axis) && !settings.contains_key(axis);
        cell.has(settings) && !self.sweeps.iter().any(swept)
    }

    /// The baseline cell of `cell`: the same except for the baseline's axes. Where the baseline
    /// takes part in the cell's sweep it is the one with the same value there; where it doesn't, it
    /// is the one without.
    pub fn baseline_of(&self, cell: &Cell, baseline: &Settings) -> Option<&Cell> {
        let mut place = cell.place.clone();
        place.extend(baseline.iter().map(|(axis, value)| (axis.clone(), value.clone())));
        self.cell_at(&place).or_else(|| {
            place.retain(|axis, _| !self.sweeps.contains(axis) || baseline.contains_key(axis));
            self.cell_at(&place)
        })
    }

    /// The first cell at a place.
    pub(crate) fn cell_at(&self, place: &Settings) -> Option<&Cell> {
        self.places.find(&self.cells, place)
    }
}

/// The cells that a cell's sweeps add to it.
fn swept(spec: &Spec, cell: &Cell) -> Vec<Cell> {
    let taken = spec.sweeps.iter().filter(|sweep| cell.has(&sweep.cells));
    let values = taken.flat_map(|sweep| sweep.values.iter().map(|value| (&sweep.axis, value)));
    let with = |(position, (axis, value)): (usize, (&String, &Setting))| {
        let mut swept = Cell { index: cell.index + 1 + position, ..cell.clone() };
        swept.place.insert(axis.clone(), value.clone());
        swept.settings.insert(axis.clone(), value.clone());
        swept
    };
    values.enumerate().map(with).collect()
}

/// The protocol of the method, unless the cell overrides it; `protocol` is removed from the
/// settings.
fn protocol(spec: &Spec, settings: &mut Settings) -> Protocol {
    let own = settings.remove(PROTOCOL);
    let own = own.as_ref().and_then(Setting::as_text);
    let start = Start::ALL.into_iter().find(|start| Some(start.name()) == own);
    let method = &spec.method;
    Protocol {
        start: start.unwrap_or(method.protocol),
        restart: method.restart,
        restore: method.restore,
    }
}

fn values(spec: &Spec, axis: &str) -> Vec<Setting> {
    match spec.axes.iter().find(|candidate| candidate.name == axis) {
        Some(axis) => axis.values.clone(),
        None => spec.cases.iter().map(|case| Setting::Text(case.name.clone())).collect(),
    }
}

/// Workload, then axes, then the case's settings: the later ones win.
fn merged(spec: &Spec, place: &Settings) -> Settings {
    let mut settings = spec.workload.clone();
    settings.extend(place.iter().map(|(name, value)| (name.clone(), value.clone())));
    let name = place.get("case").and_then(Setting::as_text);
    if let Some(case) = spec.cases.iter().find(|case| Some(case.name.as_str()) == name) {
        settings.extend(case.settings.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
    settings
}

#[cfg(test)]
mod tests;
