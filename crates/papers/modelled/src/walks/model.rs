//! The machine of a walk: what serves its work-ahead set, and who shares its CPUs.

use workahead_engines::configuration::CellConfiguration;
use workahead_native::execution::Execution;
use workahead_simulator::preset::{Holds, Preset};
use workahead_simulator::walks::{Ahead, Helping, Main, Orders};
use workahead_study::engine::EngineError;
use workahead_walks::technique::Technique;
use workahead_walks::walk::Row;
use workahead_walks::work_ahead::{Direction, Guard, Helper, Options, Skip, Wait};

use crate::machine::ModelledMachine;
use crate::queues::Sharing;

/// A machine that operators are run on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Model {
    pub(super) machine: ModelledMachine,
    set: Set,
    /// How walks share the CPUs with loops, where they do.
    pub(super) sharing: Option<Sharing>,
    /// What they touch.
    pub(super) working_set_bytes: u64,
}

/// Who serves a work-ahead set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Set {
    /// A thread.
    #[default]
    Software,
    /// Something beside the core (L4.1).
    Hardware,
}

const SETS: [(&str, Set); 2] = [("software", Set::Software), ("hardware", Set::Hardware)];

impl Model {
    /// Reads the machine, who serves work-ahead sets, and who else has the CPUs.
    pub(super) fn read(config: &CellConfiguration<'_>) -> Result<Self, EngineError> {
        let machine = ModelledMachine::read(config)?;
        let sharing = match config.has("scheduler") {
            true => Some(Sharing::read(config, &machine)?),
            false => None,
        };
        let set = config.choice("set", Set::Software, &SETS)?;
        let machine = match set {
            Set::Software => machine,
            Set::Hardware => machine.with_preset(with_hardware),
        };
        Ok(Self { machine, set, sharing, working_set_bytes: 0 })
    }

    /// The machine's figures.
    pub(super) fn preset(&self) -> &Preset {
        self.machine.preset()
    }

    /// Main threads and their helpers.
    pub(super) fn mains(&self, execution: &Execution) -> Result<Vec<Main>, EngineError> {
        let helping = self.helping(execution.technique)?;
        let main = |at| match helping {
            None => Main { cpu: self.machine.cpu(at), helper: None },
            // A helper beside its main thread: the sibling, where there is one.
            Some(helping) => Main {
                cpu: self.machine.cpu(2 * at),
                helper: Some((self.machine.cpu(2 * at + 1), helping)),
            },
        };
        Ok((0..execution.threads.mains()).map(main).collect())
    }

    /// What helps each main thread.
    fn helping(&self, technique: Technique) -> Result<Option<Helping>, EngineError> {
        let pause = self.preset().core.pause;
        match technique {
            Technique::WorkAhead(Options { guard: Guard::Mutex, .. }) => Err(EngineError::setting(
                "technique",
                "a model has no figure of what a locked instruction costs: \
                 leave out `guard=mutex`",
            )),
            Technique::WorkAhead(Options { helper: None, .. }) => Ok(None),
            Technique::WorkAhead(options) if self.set == Set::Hardware => {
                Ok(Some(Helping::Hardware { posts: options.size }))
            }
            Technique::WorkAhead(Options { helper: Some(helper), .. }) => {
                orders(helper, pause).map(Helping::Set).map(Some)
            }
            Technique::DirectHelper { size } => {
                Ok(Some(Helping::Direct(Ahead { rows: size as Row, pause })))
            }
            _ => Ok(None),
        }
    }
}

fn orders(helper: Helper, pause: u32) -> Result<Orders, EngineError> {
    let spin = match helper.wait {
        Wait::None => None,
        Wait::Spin { pauses } => Some(pauses * pause),
        Wait::Sleep(_) => {
            return Err(EngineError::setting(
                "technique",
                "a model has no operating system to wake a sleeper: \
                 leave out `wait=sleep`",
            ));
        }
    };
    let backward = helper.direction == Direction::Backward;
    Ok(Orders { backward, spin, skips_recent: helper.skip == Skip::RecentLines })
}

/// The machine with something beside each core that loads for it: one thread a core, and every
/// cache but those at the core itself shared with what is beside it.
fn with_hardware(mut preset: Preset) -> Preset {
    let cores = preset.cores;
    preset.cores *= 2;
    preset.threads = 1;
    for level in preset.cache.iter_mut().filter(|level| level.holds == Holds::Both) {
        level.cores *= 2;
    }
    preset.name = format!("{} with {cores} hardware work-ahead sets", preset.name);
    preset
}
