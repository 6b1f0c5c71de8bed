//! The machine of a walk: the kind of its work-ahead set, and the sharing of its CPUs.

use workahead_engines::configuration::CellConfiguration;
use workahead_native::execution::Execution;
use workahead_simulator::preset::{Contents, Preset};
use workahead_simulator::walks::{
    DirectHelperOptions, Helper as PlacedHelper, HelperKind, HelperOptions, Main,
};
use workahead_study::engine::EngineError;
use workahead_walks::technique::Technique;
use workahead_walks::walk::Row;
use workahead_walks::work_ahead::{Direction, Guard, Helper, Options, Skip, Throttle, Wait};

use crate::machine::ModelledMachine;
use crate::queues::Sharing;

/// A machine that operators are run on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Model {
    pub(super) machine: ModelledMachine,
    set: SetKind,
    /// How walks share the CPUs with loops, if they do.
    pub(super) sharing: Option<Sharing>,
    /// Working set of the walks.
    pub(super) working_set_bytes: u64,
}

/// Kind of a work-ahead set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum SetKind {
    /// Served by a helper thread.
    #[default]
    Software,
    /// Hardware beside the core (L4.1).
    Hardware,
}

const SETS: [(&str, SetKind); 2] =
    [("software", SetKind::Software), ("hardware", SetKind::Hardware)];

impl Model {
    /// Reads the machine, the kind of work-ahead sets, and the sharing of CPUs.
    pub(super) fn read(config: &CellConfiguration<'_>) -> Result<Self, EngineError> {
        let machine = ModelledMachine::read(config)?;
        let sharing = match config.has("scheduler") {
            true => Some(Sharing::read(config, &machine)?),
            false => None,
        };
        let set = config.choice("set", SetKind::Software, &SETS)?;
        let machine = match set {
            SetKind::Software => machine,
            SetKind::Hardware => machine.with_preset(with_hardware),
        };
        Ok(Self { machine, set, sharing, working_set_bytes: 0 })
    }

    /// The machine's figures.
    pub(super) fn preset(&self) -> &Preset {
        self.machine.preset()
    }

    /// Main threads and their helpers.
    pub(super) fn mains(&self, execution: &Execution) -> Result<Vec<Main>, EngineError> {
        let kind = self.kind(execution.technique)?;
        let main = |at| match kind {
            None => Main { cpu: self.machine.cpu(at), helper: None },
            // The helper runs on the main thread's sibling, if there is one.
            Some(kind) => Main {
                cpu: self.machine.cpu(2 * at),
                helper: Some(PlacedHelper { cpu: self.machine.cpu(2 * at + 1), kind }),
            },
        };
        Ok((0..execution.threads.mains()).map(main).collect())
    }

    /// The helper of each main thread.
    fn kind(&self, technique: Technique) -> Result<Option<HelperKind>, EngineError> {
        let pause = self.preset().core.pause;
        match technique {
            Technique::WorkAhead(Options { guard: Guard::Mutex, .. }) => Err(EngineError::setting(
                "technique",
                "the cost of a locked instruction is not modelled: \
                 leave out `guard=mutex`",
            )),
            Technique::WorkAhead(Options { helper: None, .. }) => Ok(None),
            Technique::WorkAhead(options) if self.set == SetKind::Hardware => {
                Ok(Some(HelperKind::Hardware { posts: options.size }))
            }
            Technique::WorkAhead(Options { helper: Some(helper), .. }) => {
                helper_options(helper, pause).map(HelperKind::Set).map(Some)
            }
            Technique::DirectHelper { throttle, .. } if throttle != Throttle::Pause => {
                Err(unthrottled(throttle))
            }
            Technique::DirectHelper { size, .. } => {
                Ok(Some(HelperKind::Direct(DirectHelperOptions { rows: size as Row, pause })))
            }
            _ => Ok(None),
        }
    }
}

/// No document says what the instruction costs on a machine of theirs, which had none.
fn unthrottled(throttle: Throttle) -> EngineError {
    let name = throttle.name();
    EngineError::setting(
        "technique",
        format!("the cost of `{name}` is not modelled: leave it out, or write `pause`"),
    )
}

fn helper_options(helper: Helper, pause: u32) -> Result<HelperOptions, EngineError> {
    let spin = match helper.wait {
        Wait::None => None,
        Wait::Spin { pauses } => Some(pauses * pause),
        Wait::Throttle(Throttle::Pause) => Some(pause),
        Wait::Throttle(throttle) => return Err(unthrottled(throttle)),
        Wait::Sleep(_) => {
            return Err(EngineError::setting(
                "technique",
                "a model has no operating system to wake a sleeping thread: \
                 leave out `wait=sleep`",
            ));
        }
    };
    let backward = helper.direction == Direction::Backward;
    Ok(HelperOptions { backward, spin, skips_recent: helper.skip == Skip::RecentLines })
}

/// The machine with hardware work-ahead sets, each modelled as an extra core that only loads: one
/// thread per core, and the unified caches shared with the extra core.
fn with_hardware(mut preset: Preset) -> Preset {
    let cores = preset.cores;
    preset.cores *= 2;
    preset.threads = 1;
    for level in preset.cache.iter_mut().filter(|level| level.holds == Contents::Both) {
        level.cores *= 2;
    }
    preset.name = format!("{} with {cores} hardware work-ahead sets", preset.name);
    preset
}
