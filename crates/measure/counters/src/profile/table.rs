//! A profile: functions with their shares, and the stacks they were seen in.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::Clock;
use super::demangler::NAME_BYTES_MAX;
use crate::text::beginning;
use count::{added, functions, prune, sum, unique};

mod count;

/// More frames than are unwound of a program and of the kernel: pictures of stacks recurse.
const DEPTH_MAX: usize = 1024;

/// The profile of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Profile {
    /// The clock that shares are of.
    pub clock: Clock,
    /// Requested samples a second of work.
    pub frequency_hz: u32,
    /// From begin to end. Nothing else is timed meanwhile.
    pub duration_s: f64,
    /// Samples of the processes in question.
    pub samples: u64,
    /// Events of the clock that they stand for.
    pub events: u64,
    /// Those taken in the kernel; `None` where only programs may be sampled.
    pub kernel_samples: Option<u64>,
    /// Records that the kernel or its reader had to drop, of any process: a lower bound.
    pub lost: u64,
    /// Samples whose stack was not unwound to its outermost call.
    pub truncated: u64,
    /// Threads that the system did not let us sample.
    pub unsampled_threads: u64,
    /// Every function that was seen, the one with the most events of its own first.
    pub functions: Vec<Function>,
    /// The names that stacks refer to.
    pub frames: Vec<Frame>,
    /// Every stack with a share of at least 0.05 %; smaller ones are counted with their callers.
    pub stacks: Vec<Stack>,
}

/// A function with its samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Function {
    /// The function.
    #[serde(flatten)]
    pub frame: Frame,
    /// Samples in the function itself.
    pub self_samples: u64,
    /// Samples in it or in what it called.
    pub total_samples: u64,
    /// Events that the samples in the function itself stand for.
    pub self_events: u64,
    /// Events in it or in what it called.
    pub total_events: u64,
}

/// A function as a frame of a stack.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Frame {
    /// Its name; `module+0x1234` where there is none, by the function's begin if that is known.
    pub name: String,
    /// The file it is from, without folders; `[kernel]`, `[vdso]`.
    pub module: String,
    /// Where its code is.
    pub kind: Kind,
}

/// Where the code of a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A program or a library.
    User,
    /// The operating system.
    Kernel,
    /// Code whose name is not known: a stripped, deleted or replaced file.
    Unresolved,
    /// Not code: stands for callers that were not unwound.
    Cut,
}

/// A stack with its samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Stack {
    /// Places in [`Profile::frames`], the outermost call first.
    pub frames: Vec<u32>,
    /// Samples in its innermost function.
    pub samples: u64,
    /// Events that they stand for.
    pub events: u64,
}

/// The functions with the largest shares. The rows, the rest and the unresolved make 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Top {
    /// The largest first.
    pub rows: Vec<TopRow>,
    /// Share of all other functions that have a name.
    pub rest: f64,
    /// Share of code without a name.
    pub unresolved: f64,
}

/// A function's shares.
#[derive(Debug, Clone, PartialEq)]
pub struct TopRow {
    /// The function.
    pub frame: Frame,
    /// Share of events in the function itself, 0 to 1.
    pub share: f64,
    /// Share of events in it or in what it called.
    pub total_share: f64,
    /// Samples that the share rests on.
    pub samples: u64,
}

/// How a function's share differs between two profiles. A share of 0 says that no sample fell
/// there.
#[derive(Debug, Clone, PartialEq)]
pub struct Delta {
    /// The function.
    pub frame: Frame,
    /// Its share in the first.
    pub before: f64,
    /// Its share in the second.
    pub after: f64,
}

impl Frame {
    /// A frame, its names cut where they are longer than a result may have.
    pub(super) fn new(name: &str, module: &str, kind: Kind) -> Self {
        let bounded = |name| beginning(name, NAME_BYTES_MAX).into();
        Self { name: bounded(name), module: bounded(module), kind }
    }

    /// A frame for callers that were not unwound.
    pub(super) fn cut() -> Self {
        Self::new("[truncated]", "", Kind::Cut)
    }
}

fn has_sum(mut counts: impl Iterator<Item = u64>) -> bool {
    counts.try_fold(0_u64, u64::checked_add).is_some()
}

impl Profile {
    /// Whether its stacks are of its frames, and no deeper than any that is sampled, and its names
    /// as short.
    ///
    /// # Errors
    /// The part that does not fit, in words.
    pub fn check(&self) -> Result<(), String> {
        let event = match &self.clock {
            Clock::Event(name) => Some(name),
            Clock::Cycles | Clock::CpuClock => None,
        };
        let frames = self.frames.iter().chain(self.functions.iter().map(|one| &one.frame));
        let mut names = frames.flat_map(|frame| [&frame.name, &frame.module]).chain(event);
        if names.any(|name| name.len() > NAME_BYTES_MAX) {
            return Err(format!("a name in it has more than {} KiB", NAME_BYTES_MAX >> 10));
        }
        for stack in &self.stacks {
            if stack.frames.len() > DEPTH_MAX {
                return Err(format!("a stack has more than {DEPTH_MAX} frames"));
            }
            if let Some(frame) = stack.frames.iter().find(|at| **at as usize >= self.frames.len()) {
                return Err(format!("there is no frame {frame}"));
            }
        }
        let is_countable = has_sum(self.stacks.iter().map(|stack| stack.events))
            && has_sum(self.stacks.iter().map(|stack| stack.samples))
            && has_sum(self.functions.iter().map(|function| function.self_events));
        match is_countable {
            true => Ok(()),
            false => Err("it has more events than can be counted".to_owned()),
        }
    }

    /// Counts stacks. Frames and stacks may repeat; stacks may not be empty of frames that exist.
    pub(super) fn of(clock: Clock, frames: Vec<Frame>, stacks: Vec<Stack>) -> Self {
        let (frames, stacks) = unique(frames, stacks);
        let samples = sum(stacks.iter().map(|stack| stack.samples));
        let events = sum(stacks.iter().map(|stack| stack.events));
        let functions = functions(&frames, &stacks);
        let (frames, stacks) = prune(frames, stacks, events);
        Self {
            clock,
            frequency_hz: 0,
            duration_s: 0.0,
            samples,
            events,
            kernel_samples: None,
            lost: 0,
            truncated: 0,
            unsampled_threads: 0,
            functions,
            frames,
            stacks,
        }
    }

    /// Share of the events in code without a name; `None` without samples.
    #[must_use]
    pub fn unresolved(&self) -> Option<f64> {
        let unnamed = self.functions.iter().filter(|f| f.frame.kind == Kind::Unresolved);
        let events = sum(unnamed.map(|function| function.self_events));
        (self.events > 0).then(|| events as f64 / self.events as f64)
    }

    /// The `n` functions with the largest shares; `None` without samples.
    #[must_use]
    pub fn top(&self, n: usize) -> Option<Top> {
        let unresolved = self.unresolved()?;
        let share = |events| events as f64 / self.events as f64;
        let named = || self.functions.iter().filter(|f| f.frame.kind != Kind::Unresolved);
        let rows = named().take(n).map(|function| TopRow {
            frame: function.frame.clone(),
            share: share(function.self_events),
            total_share: share(function.total_events),
            samples: function.self_samples,
        });
        let rest = sum(named().skip(n).map(|function| function.self_events));
        Some(Top { rows: rows.collect(), rest: share(rest), unresolved })
    }

    /// Both runs as one; `None` if their clocks differ.
    #[must_use]
    pub fn merge(&self, other: &Self) -> Option<Self> {
        if self.clock != other.clock {
            return None;
        }
        let shift = u32::try_from(self.frames.len()).ok()?;
        let frames = self.frames.iter().chain(&other.frames).cloned().collect();
        let shifted = other.stacks.iter().map(|stack| Stack {
            frames: stack.frames.iter().map(|frame| frame + shift).collect(),
            ..*stack
        });
        let stacks = self.stacks.iter().cloned().chain(shifted).collect();
        let both = Self::of(self.clock.clone(), frames, stacks);
        let kernel = self.kernel_samples.zip(other.kernel_samples);
        Some(Self {
            frequency_hz: self.frequency_hz.max(other.frequency_hz),
            duration_s: self.duration_s + other.duration_s,
            // Of one of them the stacks may not have been kept.
            samples: self.samples.saturating_add(other.samples),
            events: self.events.saturating_add(other.events),
            kernel_samples: kernel.map(|(one, two)| one.saturating_add(two)),
            lost: self.lost.saturating_add(other.lost),
            truncated: self.truncated.saturating_add(other.truncated),
            unsampled_threads: self.unsampled_threads.saturating_add(other.unsampled_threads),
            // Frames cut from the stacks are still in these.
            functions: added(&self.functions, &other.functions),
            ..both
        })
    }

    /// The stacks as lines `outermost;inner;innermost samples`, which other tools draw flame graphs
    /// from (Gregg, "The Flame Graph", CACM 2016).
    #[must_use]
    pub fn folded(&self) -> String {
        let mut text = String::new();
        for stack in &self.stacks {
            let names = stack.frames.iter().map(|&frame| {
                let Frame { name, kind, .. } = &self.frames[frame as usize];
                let mark = if *kind == Kind::Kernel { "_[k]" } else { "" };
                format!("{}{mark}", name.replace(';', ":").replace('\n', " "))
            });
            let names: Vec<String> = names.collect();
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{} {}", names.join(";"), stack.samples);
        }
        text
    }

    /// How the share of every named function differs in another profile, the largest difference
    /// first; `None` if their clocks differ or one has no samples.
    #[must_use]
    pub fn compare(&self, after: &Self) -> Option<Vec<Delta>> {
        if self.clock != after.clock || self.events == 0 || after.events == 0 {
            return None;
        }
        let mut shares: BTreeMap<&Frame, (f64, f64)> = BTreeMap::new();
        for function in &self.functions {
            let share = function.self_events as f64 / self.events as f64;
            shares.entry(&function.frame).or_default().0 = share;
        }
        for function in &after.functions {
            let share = function.self_events as f64 / after.events as f64;
            shares.entry(&function.frame).or_default().1 = share;
        }
        let named = shares.into_iter().filter(|(frame, _)| frame.kind != Kind::Unresolved);
        let mut deltas: Vec<Delta> = named
            .map(|(frame, (before, after))| Delta { frame: frame.clone(), before, after })
            .collect();
        let size = |delta: &Delta| (delta.after - delta.before).abs();
        deltas.sort_by(|one, other| size(other).total_cmp(&size(one)));
        Some(deltas)
    }
}

#[cfg(test)]
pub(super) mod tests;
