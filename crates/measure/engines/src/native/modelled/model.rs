//! The machine of a cell: its figures, and which of its CPUs threads get.

use workahead_simulator::preset::{Holds, Preset};
use workahead_simulator::walks::{Ahead, Helping, Main, Orders};
use workahead_study::engine::EngineError;
use workahead_walks::technique::Technique;
use workahead_walks::walk::Row;
use workahead_walks::work_ahead::{Direction, Guard, Helper, Options, Skip, Wait};

use crate::given::Given;
use crate::modelled::queues::Sharing;
use crate::native::crew::failed;
use crate::native::how::How;
use crate::native::size::Footprint;

/// A machine that operators are run on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Model {
    pub(super) preset: Preset,
    placement: Placement,
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

/// Which CPUs threads get first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Placement {
    /// The threads of a core, then those of the next.
    #[default]
    Compact,
    /// A thread of each core, then the second of each.
    Scatter,
}

const PLACEMENTS: [(&str, Placement); 2] =
    [("compact", Placement::Compact), ("scatter", Placement::Scatter)];

const SIBLINGS: [(&str, bool); 2] = [("on", true), ("off", false)];

/// The beginning of settings that change the machine.
const CHANGES: &str = "model.";

impl Model {
    pub(crate) fn read(given: &Given<'_>) -> Result<Self, EngineError> {
        let name: String = given.text("machine", String::new())?;
        if name.is_empty() {
            let known: Vec<&str> = workahead_simulator::catalogue::names().collect();
            return Err(EngineError::Failed(format!(
                "the setting `machine` is missing: one of {}",
                known.join(", ")
            )));
        }
        let mut preset = Preset::named(&name).map_err(failed)?;
        for (path, value) in given.beginning(CHANGES) {
            let path = path.strip_prefix(CHANGES).unwrap_or(&path);
            preset = preset.with_override(&format!("{path}={value}")).map_err(failed)?;
        }
        if !given.choice("siblings", true, &SIBLINGS)? {
            preset = preset.without_siblings();
        }
        let placement = given.choice("placement", Placement::Compact, &PLACEMENTS)?;
        Ok(Self { preset, placement, set: Set::Software, sharing: None, working_set_bytes: 0 })
    }

    /// As [`Model::read`], for walks: with who serves their work-ahead sets, and who else has the
    /// CPUs.
    pub(super) fn read_of_walks(given: &Given<'_>) -> Result<Self, EngineError> {
        let model = Self::read(given)?;
        let sharing = given.has("scheduler").then(|| Sharing::read(given, &model)).transpose()?;
        let model = Self { sharing, ..model };
        match given.choice("set", Set::Software, &SETS)? {
            Set::Software => Ok(model),
            set => Ok(Self { preset: with_hardware(model.preset), set, ..model }),
        }
    }

    /// What sizes by name are beside.
    pub(super) fn footprint(&self) -> Footprint {
        let bytes = |at: usize| self.preset.cache.get(at).map(|level| level.bytes as usize);
        let last = self.preset.cache.len().saturating_sub(1);
        let l2 = self.preset.cache.iter().find(|level| level.name == "L2");
        let llc_bytes = bytes(last).unwrap_or(1 << 20);
        Footprint { l2_bytes: l2.map_or(llc_bytes, |level| level.bytes as usize), llc_bytes }
    }

    /// The machine.
    pub(crate) fn preset(&self) -> &Preset {
        &self.preset
    }

    /// The CPU of each thread in turn.
    pub(crate) fn cpu(&self, thread: usize) -> usize {
        let (cores, threads) = (self.preset.cores as usize, self.preset.threads as usize);
        let thread = thread % (cores * threads);
        match self.placement {
            Placement::Compact => thread,
            Placement::Scatter => thread % cores * threads + thread / cores,
        }
    }

    /// Main threads and their helpers.
    pub(super) fn mains(&self, how: &How) -> Result<Vec<Main>, EngineError> {
        let helping = self.helping(how.technique)?;
        let main = |at| match helping {
            None => Main { cpu: self.cpu(at), helper: None },
            // A helper beside its main thread: the sibling, where there is one.
            Some(helping) => {
                Main { cpu: self.cpu(2 * at), helper: Some((self.cpu(2 * at + 1), helping)) }
            }
        };
        Ok((0..how.threads.mains()).map(main).collect())
    }

    /// What helps each main thread.
    fn helping(&self, technique: Technique) -> Result<Option<Helping>, EngineError> {
        let pause = self.preset.core.pause;
        match technique {
            Technique::WorkAhead(Options { guard: Guard::Mutex, .. }) => Err(failed(
                "setting `technique`: a model has no figure of what a locked instruction costs: \
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
            return Err(failed(
                "setting `technique`: a model has no operating system to wake a sleeper: \
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
