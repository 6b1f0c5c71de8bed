//! The raw counts of a run, slot by slot: everything else can be derived from them again.
//!
//! A recording is a file of JSON lines: the header first, then a line a slot. One that was
//! constructed by hand says so in its header, and so does everything derived from it.

use std::collections::HashSet;
use std::io::{BufRead, Error, ErrorKind, Read, Write};

use serde::{Deserialize, Serialize};

use crate::event::{Code, Event, Privilege};
use crate::source::Reading;
use crate::text::beginning;

/// A slot of 20 counts on each of 8,192 CPUs, the most that Linux has.
const LINE_BYTES_MAX: usize = 4 << 20;

/// The counts of one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Stream {
    /// Groups, target and machine of the counts.
    #[serde(flatten)]
    pub header: Header,
    /// In the order of time.
    pub slots: Vec<Slot>,
}

/// Groups, target and machine of the counts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The machine's table of events, if it has one of its own.
    pub table: Option<String>,
    /// The requested groups of metrics.
    #[serde(default)]
    pub metrics: Vec<String>,
    /// The processor, in words.
    pub machine: String,
    /// Logical CPUs that share a core, each core's in one list.
    #[serde(default)]
    pub cores: Vec<Vec<u32>>,
    /// The counted target, in words: a control group, the threads of a server, all of the machine.
    /// Its key in recordings of earlier versions is the alias.
    #[serde(alias = "whom")]
    pub target: String,
    /// How it was constructed, where no machine was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constructed: Option<String>,
    /// The groups; slots name them by their place in this list.
    pub groups: Vec<Group>,
    /// How long a slot was to be.
    pub slot_s: f64,
    /// Why there is no hardware event in the groups, or why counting ended early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacks: Option<String>,
    /// Requested events that are in no group, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<UncountedEvent>,
}

/// An event that could not be counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct UncountedEvent {
    /// Its name.
    pub event: String,
    /// Why.
    pub why: String,
}

/// Events that are counted together.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Group {
    /// Those that are always counted first, but for a leader of the others.
    pub events: Vec<Event>,
    /// User code, the kernel, or both.
    pub privilege: Privilege,
}

/// A time slot in which one group was counted on all CPUs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Slot {
    /// Which group.
    pub group: usize,
    /// When it began, seconds after the first.
    pub begun_s: f64,
    /// How long it was.
    pub wall_s: f64,
    /// The counts, by CPU.
    pub cpus: Vec<OnCpu>,
    /// Why it is discarded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spoilt: Option<Spoilt>,
}

/// The counts on one CPU, or on all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnCpu {
    /// Its number; none for all together.
    pub cpu: Option<u32>,
    /// The counts of all targets there.
    #[serde(flatten)]
    pub reading: Reading,
}

/// Why a slot is thrown away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spoilt {
    /// The kernel gave the counters to another program for a part of it.
    Multiplexed,
    /// The group never had its counters.
    NeverRan,
    /// A count went backward or is impossibly large: a counter wrapped.
    Wrapped,
    /// The system refused, with the reason.
    Refused(String),
}

impl Spoilt {
    /// In words.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Spoilt::Multiplexed => "the counters were shared with another program".to_owned(),
            Spoilt::NeverRan => "another program or the NMI watchdog held the counters".to_owned(),
            Spoilt::Wrapped => "a counter wrapped".to_owned(),
            Spoilt::Refused(why) => why.clone(),
        }
    }
}

/// Why a recording can't be used.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The file can't be read.
    #[error("the recording can't be read: {0}")]
    Read(#[from] std::io::Error),
    /// A line is not of a recording.
    #[error("line {line} is not a recording's: {why}")]
    Line {
        /// From 1.
        line: usize,
        /// The fault.
        why: String,
    },
}

impl Stream {
    /// Slots that were not discarded.
    pub fn usable(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().filter(|slot| slot.spoilt.is_none())
    }

    /// The counts on some CPUs only.
    #[must_use]
    pub fn on(&self, cpus: &[u32]) -> Self {
        let cpus: HashSet<u32> = cpus.iter().copied().collect();
        let is_meant = |on: &&OnCpu| on.cpu.is_some_and(|cpu| cpus.contains(&cpu));
        let slots = self.slots.iter().map(|slot| Slot {
            group: slot.group,
            begun_s: slot.begun_s,
            wall_s: slot.wall_s,
            cpus: slot.cpus.iter().filter(is_meant).cloned().collect(),
            spoilt: slot.spoilt.clone(),
        });
        Self { header: self.header.clone(), slots: slots.collect() }
    }

    /// How many slots were thrown away.
    #[must_use]
    pub fn spoilt(&self) -> usize {
        self.slots.len() - self.usable().count()
    }

    /// How often each group was counted in slots that may be used.
    #[must_use]
    pub fn visits(&self) -> Vec<usize> {
        let mut visits = vec![0; self.header.groups.len()];
        self.usable().for_each(|slot| visits[slot.group] += 1);
        visits
    }

    /// How often an event happened in a nanosecond of the fastest slot: of cycles, the clock of the
    /// core in GHz. Slots in which the CPU was partly idle are slower.
    #[must_use]
    pub fn most_per_ns(&self, event: &str) -> Option<f64> {
        let of_slot = |slot: &Slot| {
            let group = &self.header.groups[slot.group];
            let index = group.events.iter().position(|one| one.name == event)?;
            let running = slot.cpus.iter().filter(|on| on.reading.running_ns > 0);
            let per_ns =
                running.map(|on| on.reading.values[index] as f64 / on.reading.running_ns as f64);
            per_ns.max_by(f64::total_cmp)
        };
        self.usable().filter_map(of_slot).max_by(f64::total_cmp).filter(|per_ns| *per_ns > 0.0)
    }

    /// Writes it as a recording.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        serde_json::to_writer(&mut *out, &self.header)?;
        out.write_all(b"\n")?;
        for slot in &self.slots {
            serde_json::to_writer(&mut *out, slot)?;
            out.write_all(b"\n")?;
        }
        Ok(())
    }

    /// Reads a recording.
    ///
    /// # Errors
    /// If it can't be read, or a line is not of a recording.
    pub fn read(from: &mut dyn BufRead) -> Result<Self, RecordingError> {
        let wrong = |line: usize, why: String| RecordingError::Line { line, why };
        let first = line(from, 1)?.ok_or_else(|| wrong(1, "the file is empty".to_owned()))?;
        let header = serde_json::from_str(&first).map_err(|error| wrong(1, error.to_string()))?;
        let mut stream = Self { header, slots: Vec::new() };
        stream.check_header().map_err(|why| wrong(1, why))?;
        let mut cpus = HashSet::new();
        for number in 2.. {
            let Some(text) = line(from, number)? else { break };
            if text.is_empty() {
                continue;
            }
            let slot: Slot =
                serde_json::from_str(&text).map_err(|error| wrong(number, error.to_string()))?;
            stream.check_slot(&slot, &mut cpus).map_err(|why| wrong(number, why))?;
            stream.slots.push(slot);
        }
        Ok(stream)
    }

    /// Whether its cores may be a machine's, its words are as short as a page can repeat them, and
    /// its slots fit its groups.
    ///
    /// # Errors
    /// The first fault, in words.
    pub fn check(&self) -> Result<(), String> {
        self.check_header()?;
        let mut cpus = HashSet::new();
        self.slots.iter().try_for_each(|slot| self.check_slot(slot, &mut cpus))
    }

    fn check_header(&self) -> Result<(), String> {
        self.check_cores()?;
        self.check_words()
    }

    /// Each CPU of a core is a series of its own, which is computed from all slots.
    fn check_cores(&self) -> Result<(), String> {
        let cores = &self.header.cores;
        if cores.iter().any(|core| core.len() > CORE_CPUS_MAX) {
            return Err(format!("a core has more than {CORE_CPUS_MAX} CPUs"));
        }
        if cores.iter().map(Vec::len).sum::<usize>() > CPUS_MAX {
            return Err(format!("its cores have more than {CPUS_MAX} CPUs"));
        }
        Ok(())
    }

    /// An event has a rate on each CPU, and a reason stands at each metric that it explains.
    fn check_words(&self) -> Result<(), String> {
        let Header { table, metrics, machine, target, .. } = &self.header;
        let Header { constructed, groups, lacks, left_out, .. } = &self.header;
        if groups.len() > GROUPS_MAX {
            return Err(format!("it has more than {GROUPS_MAX} groups"));
        }
        if groups.iter().any(|group| group.events.len() > GROUP_EVENTS_MAX) {
            return Err(format!("a group has more than {GROUP_EVENTS_MAX} events"));
        }
        let events = || groups.iter().flat_map(|group| &group.events);
        if events().any(|event| event.name.len() > NAME_BYTES_MAX) {
            return Err(format!("the name of an event has more than {NAME_BYTES_MAX} bytes"));
        }
        let sources = events().filter_map(|event| match &event.code {
            Code::Other { source, .. } => Some(source),
            Code::Software(_) | Code::Core { .. } => None,
        });
        let mut texts = [machine, target]
            .into_iter()
            .chain([table, constructed, lacks].into_iter().flatten())
            .chain(metrics)
            .chain(left_out.iter().flat_map(|left| [&left.event, &left.why]))
            .chain(sources);
        match texts.any(|text| text.len() > TEXT_BYTES_MAX) {
            true => Err(format!("a text in it has more than {TEXT_BYTES_MAX} bytes")),
            false => Ok(()),
        }
    }

    /// `cpus` are those of the slots before it: each is a series of its own.
    fn check_slot(&self, slot: &Slot, cpus: &mut HashSet<u32>) -> Result<(), String> {
        let Some(group) = self.header.groups.get(slot.group) else {
            return Err(format!("there is no group {}", slot.group));
        };
        if slot.spoilt.is_none() && !(slot.wall_s.is_finite() && slot.wall_s > 0.0) {
            return Err(format!("no slot takes {} seconds", slot.wall_s));
        }
        if slot.cpus.len() > CPUS_MAX {
            return Err(format!("a slot has more than {CPUS_MAX} CPUs"));
        }
        cpus.extend(slot.cpus.iter().filter_map(|on| on.cpu));
        if cpus.len() > CPUS_MAX {
            return Err(format!("it has more than {CPUS_MAX} CPUs"));
        }
        if let Some(Spoilt::Refused(why)) = &slot.spoilt
            && why.len() > TEXT_BYTES_MAX
        {
            return Err(format!("the reason of a slot has more than {TEXT_BYTES_MAX} bytes"));
        }
        let wanted = group.events.len();
        match slot.cpus.iter().find(|on| on.reading.values.len() != wanted) {
            Some(on) if slot.spoilt.is_none() => Err(format!(
                "group {} has {wanted} events, and {} values are given",
                slot.group,
                on.reading.values.len()
            )),
            _ => Ok(()),
        }
    }
}

/// The most CPUs that Linux is built for (`NR_CPUS` of x86-64).
const CPUS_MAX: usize = 8192;

/// The most logical CPUs that a core may have. POWER10's have eight; a virtual machine may be given
/// others.
pub(crate) const CORE_CPUS_MAX: usize = 64;

/// The most groups of a recording. Every event of our largest table alone, for user and kernel, is
/// a few hundred.
const GROUPS_MAX: usize = 4096;

/// The most events of a group: more than any core has counters.
const GROUP_EVENTS_MAX: usize = 256;

/// The longest name of an event, in bytes. Vendors' have 60.
const NAME_BYTES_MAX: usize = 256;

/// The longest other text, in bytes: a reason may name a path.
const TEXT_BYTES_MAX: usize = 4 << 10;

/// The longest beginning of a text that a recording may have.
pub(crate) fn bounded(mut text: String) -> String {
    text.truncate(beginning(&text, TEXT_BYTES_MAX).len());
    text
}

/// The next line, without its end; `None` after the last one. Its number is for errors.
fn line(from: &mut dyn BufRead, number: usize) -> Result<Option<String>, RecordingError> {
    let mut bytes = Vec::new();
    Read::take(&mut *from, LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut bytes)?;
    if bytes.is_empty() {
        return Ok(None);
    }
    if bytes.len() > LINE_BYTES_MAX {
        let why = format!("it has more than {} MiB", LINE_BYTES_MAX >> 20);
        return Err(RecordingError::Line { line: number, why });
    }
    let text = String::from_utf8(bytes);
    let text = text.map_err(|_| Error::new(ErrorKind::InvalidData, "it is not text in UTF-8"))?;
    Ok(Some(text.trim_end_matches(['\n', '\r']).to_owned()))
}

#[cfg(test)]
mod tests;
