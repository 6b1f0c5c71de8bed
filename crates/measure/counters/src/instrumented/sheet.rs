//! The common part of both formats: rows of counts that add up to functions.

use std::collections::{BTreeMap, HashMap};

use super::program_counts::{FunctionCounts, ProgramCounts, sort};
use super::{CacheShape, Geometry, Tool};

/// Where a program is that the tools could not read: they write `???`.
const UNKNOWN: &str = "???";
/// More than the tools have, with room for events that they derive.
const EVENTS_MAX: usize = 64;

/// Counts while they are read.
#[derive(Debug)]
pub(super) struct Sheet {
    tool: Tool,
    command: String,
    events: Vec<String>,
    functions: Vec<Function>,
    places: HashMap<(Option<String>, String), usize>,
    caches: [Option<CacheShape>; 3],
    totals: Option<Vec<i64>>,
}

#[derive(Debug)]
struct Function {
    counts: FunctionCounts,
    /// How much of the first event is in which file.
    files: BTreeMap<String, i64>,
}

/// Why a line can't be read.
pub(super) type Fault = String;

impl Sheet {
    pub(super) fn new(tool: Tool) -> Self {
        Self {
            tool,
            command: String::new(),
            events: Vec::new(),
            functions: Vec::new(),
            places: HashMap::new(),
            caches: [None; 3],
            totals: None,
        }
    }

    /// `desc: I1 cache: 32768 B, 64 B, 8-way associative`; other descriptions say nothing here.
    pub(super) fn describe(&mut self, text: &str) {
        let names = ["I1 cache:", "D1 cache:", "LL cache:"];
        for (cache, name) in self.caches.iter_mut().zip(names) {
            if let Some(shape) = text.trim().strip_prefix(name) {
                *cache = CacheShape::of_description(shape);
            }
        }
    }

    pub(super) fn set_command(&mut self, text: &str) {
        text.trim().clone_into(&mut self.command);
    }

    /// `events: Ir I1mr …`; once, or the same again in each part of a file.
    pub(super) fn set_events(&mut self, text: &str) -> Result<(), Fault> {
        let events: Vec<String> = text.split_ascii_whitespace().map(str::to_owned).collect();
        if events.is_empty() || events.len() > EVENTS_MAX {
            return Err(format!("{} events, not 1 to {EVENTS_MAX}", events.len()));
        }
        if let Some(twice) = (1..events.len()).find(|&at| events[..at].contains(&events[at])) {
            return Err(format!("event {} twice", events[twice]));
        }
        if !self.events.is_empty() && self.events != events {
            return Err("other events than before".to_owned());
        }
        self.events = events;
        Ok(())
    }

    /// One count per event, in their order; those left out at the end are zero, and so is `.`.
    pub(super) fn counts<'a>(
        &self,
        words: impl Iterator<Item = &'a str>,
    ) -> Result<Vec<i64>, Fault> {
        if self.events.is_empty() {
            return Err("counts before the line of events".to_owned());
        }
        let mut counts = Vec::with_capacity(self.events.len());
        for word in words {
            if counts.len() == self.events.len() {
                return Err(format!("more than {} counts", self.events.len()));
            }
            let count = if word == "." { Some(0) } else { number(word) };
            counts.push(count.ok_or_else(|| format!("`{word}` is not a count"))?);
        }
        counts.resize(self.events.len(), 0);
        Ok(counts)
    }

    /// The place of a function, made when it is new.
    pub(super) fn function(&mut self, module: Option<&str>, name: &str) -> usize {
        let key = (module.map(str::to_owned), name.to_owned());
        *self.places.entry(key).or_insert_with_key(|(module, name)| {
            self.functions.push(Function {
                counts: FunctionCounts {
                    name: name.clone(),
                    module: module.clone(),
                    file: None,
                    counts: Vec::new(),
                    inclusive: None,
                },
                files: BTreeMap::new(),
            });
            self.functions.len() - 1
        })
    }

    /// Counts of a function itself, in a file.
    pub(super) fn add(&mut self, at: usize, file: &str, counts: &[i64]) -> Result<(), Fault> {
        let function = &mut self.functions[at];
        if file != UNKNOWN && !file.is_empty() {
            match function.files.get_mut(file) {
                Some(first) => *first = first.saturating_add(counts[0]),
                None => drop(function.files.insert(file.to_owned(), counts[0])),
            }
        }
        add(&mut function.counts.counts, counts)
    }

    /// Counts of what a function called.
    pub(super) fn add_called(&mut self, at: usize, counts: &[i64]) -> Result<(), Fault> {
        add(self.functions[at].counts.inclusive.get_or_insert_default(), counts)
    }

    /// The tool's own sums, of one part of the file.
    pub(super) fn add_totals(&mut self, counts: &[i64]) -> Result<(), Fault> {
        add(self.totals.get_or_insert_default(), counts)
    }

    /// The whole file, if it is complete.
    pub(super) fn finish(self) -> Result<ProgramCounts, Fault> {
        let width = self.events.len();
        let Some(totals) = self.totals else {
            return Err("it ends before its sums: the run was cut short".to_owned());
        };
        let mut sums = vec![0; width];
        let follows_calls = self.tool == Tool::Callgrind;
        let mut functions = Vec::with_capacity(self.functions.len());
        for Function { mut counts, files } in self.functions {
            counts.counts.resize(width, 0);
            add(&mut sums, &counts.counts)?;
            if follows_calls {
                add(counts.inclusive.get_or_insert_default(), &counts.counts)?;
            }
            let most = files.into_iter().max_by_key(|(_, first)| *first);
            // All that has no symbol is in no one file.
            counts.file = most.map(|(file, _)| file).filter(|_| counts.name != UNKNOWN);
            functions.push(counts);
        }
        if let Some(at) = (0..width).find(|&at| sums[at] != totals[at]) {
            let event = &self.events[at];
            let (sum, total) = (sums[at], totals[at]);
            return Err(format!("its functions have {sum} {event}, its sums say {total}"));
        }
        sort(&mut functions);
        let [l1i, l1d, last] = self.caches;
        let geometry = l1i.zip(l1d).zip(last).map(|((l1i, l1d), last)| Geometry { l1i, l1d, last });
        Ok(ProgramCounts {
            tool: self.tool,
            geometry,
            command: self.command,
            processes: 1,
            events: self.events,
            totals,
            functions,
        })
    }
}

/// Checked: a file may be damaged.
fn add(to: &mut Vec<i64>, from: &[i64]) -> Result<(), Fault> {
    to.resize(to.len().max(from.len()), 0);
    for (to, &from) in to.iter_mut().zip(from) {
        let sum = to.checked_add(from);
        *to = sum.ok_or_else(|| "counts of more than 63 bits together".to_owned())?;
    }
    Ok(())
}

/// Decimal, or hexadecimal with `0x`; never below zero.
pub(super) fn number(word: &str) -> Option<i64> {
    if !word.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    match word.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok().filter(|&n| n >= 0),
        None => word.parse().ok(),
    }
}
