//! Walks on a modelled machine: the same code that runs natively, its accesses taken to the model.
//!
//! ```text
//!   a thread a walk:  schedule ── walk ──► Recorder ──chunks──┐   hits go to the sink they go to
//!                                                             ▼   natively: answers are checked
//!   the model:        main's script ── Post ──► set ──► helper's script, which reacts in the
//!                          │                               │      machine's own time
//!                          └───────────► processor ◄───────┘
//! ```
//!
//! What a main thread does depends on no other thread (Zhou et al. 2005, section 4), so it can be
//! recorded ahead of the model; what a helper does depends on what was posted by then, so it is a
//! script that looks. Addresses of this process become pages in the order in which the model first
//! touches them, which is the same in every process.

mod helper;
mod pages;
mod recorder;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, sync_channel};

use crate::bus::BusCounts;
use crate::core::Processor;
use crate::hierarchy::Found;
use crate::op::{Op, Script};
use crate::preset::{Preset, PresetError};
use crate::run::{Ran, Slices, Thread, run};
use crate::ticks::Ticks;

pub use helper::Orders;
pub use recorder::{Costs, Recorder, Written};

use helper::{HelperScript, Slots};
use pages::Pages;
use recorder::Said;

/// A main thread of a run.
#[derive(Debug, Clone, Copy)]
pub struct Main {
    /// Its logical CPU.
    pub cpu: usize,
    /// Its helper, if there is one: where it runs and what it is told.
    pub helper: Option<(usize, Orders)>,
}

/// What came of walks.
#[derive(Debug, Clone)]
pub struct Walked {
    /// By CPU and by thread: the mains in their order, then the helpers in theirs.
    pub ran: Ran,
    /// What each CPU's accesses found.
    pub found: Vec<Found>,
    /// What the bus did.
    pub bus: BusCounts,
    /// Entries that helpers loaded, and looks at entries that had not changed.
    pub helped: (u64, u64),
}

/// Chunks of a recording that may wait for the model: bounded memory, and room to run ahead.
const CHUNKS: usize = 4;

/// Runs main threads and their helpers on a machine with empty caches. `walk` is called once for
/// each main thread, on a thread of its own, with the recorder that its walk is to run over.
///
/// # Errors
/// If there is no such machine, or a thread is placed on a CPU it doesn't have.
pub fn run_walks(
    preset: &Preset,
    (mains, costs): (&[Main], Costs),
    walk: impl Fn(usize, Recorder) + Sync,
) -> Result<Walked, PresetError> {
    let mut processor = Processor::new(preset)?;
    let cpus = preset.cpus() as usize;
    let used = mains
        .iter()
        .flat_map(|main| std::iter::once(main.cpu).chain(main.helper.iter().map(|(cpu, _)| *cpu)));
    if let Some(cpu) = used.clone().find(|cpu| *cpu >= cpus) {
        return Err(PresetError::Range {
            name: preset.name.clone(),
            what: "the CPU of a thread".to_owned(),
            value: cpu as f64,
            range: "what the machine has: see `workahead simulate --machine NAME --describe`",
        });
    }
    let pages = Rc::new(RefCell::new(Pages::new()));
    let helped = Rc::new(RefCell::new((0, 0)));
    let ran = std::thread::scope(|scope| {
        let (mut threads, mut helpers) = (Vec::new(), Vec::new());
        let (mut placement, mut helper_placement) = (Vec::new(), Vec::new());
        for (number, main) in mains.iter().enumerate() {
            let (sender, receiver) = sync_channel(CHUNKS);
            let walk = &walk;
            scope.spawn(move || walk(number, Recorder::new(number, costs, sender)));
            let slots = Rc::new(RefCell::new(Slots::default()));
            let script = MainScript {
                receiver,
                chunk: Vec::new().into_iter(),
                pages: Rc::clone(&pages),
                slots: Rc::clone(&slots),
            };
            threads.push(Thread { script: Box::new(script), space: 0, attends: false });
            placement.push(main.cpu);
            if let Some((cpu, orders)) = main.helper {
                let counted = Rc::clone(&helped);
                let script = HelperScript::new(orders, slots, Rc::clone(&pages), counted);
                helpers.push(Thread { script: Box::new(script), space: 0, attends: true });
                helper_placement.push(cpu);
            }
        }
        threads.extend(helpers);
        placement.extend(helper_placement);
        run(&mut processor, threads, &placement, Slices::default())
    });
    let helped = *helped.borrow();
    let (found, bus) = (processor.hierarchy.found.clone(), processor.hierarchy.bus.counts);
    Ok(Walked { ran, found, bus, helped })
}

/// Plays what a main thread recorded, and shows its posts to the helper when they are made.
struct MainScript {
    receiver: Receiver<Vec<Said>>,
    chunk: std::vec::IntoIter<Said>,
    pages: Rc<RefCell<Pages>>,
    slots: Rc<RefCell<Slots>>,
}

impl Script for MainScript {
    #[inline]
    fn next(&mut self, _: Ticks) -> Option<Op> {
        let said = match self.chunk.next() {
            Some(said) => said,
            None => {
                // The walk's end closes the channel.
                self.chunk = self.receiver.recv().ok()?.into_iter();
                self.chunk.next()?
            }
        };
        let mut pages = self.pages.borrow_mut();
        Some(match said {
            Said::Op(op) => pages.placed(op),
            Said::Post { slot, shape, pointer } => {
                self.slots.borrow_mut().post(slot, shape, pointer);
                pages.placed(Op::Store { address: shape.address(slot), bytes: Slots::BYTES })
            }
        })
    }
}
