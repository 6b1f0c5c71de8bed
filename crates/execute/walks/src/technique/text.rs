//! Techniques as text: as study files write them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::{Near, Technique};
use crate::schedule::WIDTH_MAX;
use crate::work_ahead::{
    Deduplicate, Direction, ENTRIES_MAX, Guard, Helper, Options, Skip, States, Throttle, Wait,
};

/// Every technique's name.
pub(super) const NAMES: &str = "sequential, staged, group, amac, rounds, distance, coroutine, \
     work-ahead, direct-helper";

/// The paper's choice of size (§6.1).
const SIZE: usize = 128;
/// Pause instructions between two looks of a waiting helper, unless a study says otherwise.
const PAUSES: u32 = 1;

/// A technique that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TechniqueError {
    /// No such name.
    #[error("unknown technique `{0}`: use one of {NAMES}")]
    Name(String),
    /// No such key for this technique.
    #[error("unknown option `{key}` of `{name}`: it takes {known}")]
    Key {
        /// The technique.
        name: String,
        /// The given option.
        key: String,
        /// The options that it takes.
        known: &'static str,
    },
    /// A value out of range or of the wrong kind.
    #[error("`{key}={value}` of `{name}` is not {wanted}")]
    Value {
        /// The technique.
        name: String,
        /// The option.
        key: String,
        /// The given value.
        value: String,
        /// The values that it takes.
        wanted: String,
    },
}

/// The options of one technique, taken one by one; what is left over is unknown.
struct OptionList<'a> {
    name: &'a str,
    pairs: Vec<(&'a str, &'a str)>,
}

impl<'a> OptionList<'a> {
    fn read(text: &'a str) -> Self {
        let (name, options) = text.split_once(':').unwrap_or((text, ""));
        let pairs = options
            .split(',')
            .filter(|pair| !pair.trim().is_empty())
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
            .map(|(key, value)| (key.trim(), value.trim()))
            .collect();
        Self { name: name.trim(), pairs }
    }

    fn take(&mut self, key: &str) -> Option<&'a str> {
        let at = self.pairs.iter().position(|(given, _)| *given == key)?;
        Some(self.pairs.swap_remove(at).1)
    }

    fn wrong(&self, key: &str, value: &str, wanted: impl Into<String>) -> TechniqueError {
        TechniqueError::Value {
            name: self.name.to_owned(),
            key: key.to_owned(),
            value: value.to_owned(),
            wanted: wanted.into(),
        }
    }

    fn number(&mut self, key: &str, usual: usize, most: usize) -> Result<usize, TechniqueError> {
        let Some(value) = self.take(key) else { return Ok(usual) };
        match value.parse() {
            Ok(number) if (1..=most).contains(&number) => Ok(number),
            _ => Err(self.wrong(key, value, format!("a number from 1 to {most}"))),
        }
    }

    fn choice<T: Copy>(
        &mut self,
        key: &str,
        usual: T,
        choices: &[(&str, T)],
    ) -> Result<T, TechniqueError> {
        let Some(value) = self.take(key) else { return Ok(usual) };
        let names = || choices.iter().map(|choice| choice.0).collect::<Vec<_>>().join(", ");
        match choices.iter().find(|choice| choice.0 == value) {
            Some(choice) => Ok(choice.1),
            None => Err(self.wrong(key, value, format!("one of {}", names()))),
        }
    }

    fn nothing_left(&self, known: &'static str) -> Result<(), TechniqueError> {
        match self.pairs.first() {
            None => Ok(()),
            Some((key, _)) => Err(TechniqueError::Key {
                name: self.name.to_owned(),
                key: (*key).to_owned(),
                known,
            }),
        }
    }
}

const L1_L2: [(&str, Near); 2] = [("l1", Near::L1), ("l2", Near::L2)];
const NONE_L1: [(&str, Near); 2] = [("none", Near::None), ("l1", Near::L1)];
const DIRECTIONS: [(&str, Direction); 2] =
    [("forward", Direction::Forward), ("backward", Direction::Backward)];
const GUARDS: [(&str, Guard); 2] = [("none", Guard::None), ("mutex", Guard::Mutex)];
const STATES: [(&str, States); 2] = [("together", States::Together), ("apart", States::Apart)];
const DEDUPLICATE: [(&str, (Deduplicate, Skip)); 3] = [
    ("none", (Deduplicate::Nothing, Skip::Nothing)),
    ("post", (Deduplicate::InPost, Skip::Nothing)),
    ("helper", (Deduplicate::Nothing, Skip::RecentLines)),
];
const HELPERS: [(&str, bool); 2] = [("on", true), ("off", false)];
const WORK_AHEAD_KEYS: &str = "size, direction, wait, pauses, guard, states, dedupe, helper";

fn work_ahead(given: &mut OptionList<'_>) -> Result<Technique, TechniqueError> {
    let size = given.number("size", SIZE, ENTRIES_MAX)?;
    let direction = given.choice("direction", Direction::Backward, &DIRECTIONS)?;
    let pauses = given.number("pauses", PAUSES as usize, 100_000)? as u32;
    let mut waits = vec![
        ("none", Wait::None),
        ("spin", Wait::Spin { pauses }),
        ("sleep", Wait::Sleep(Duration::from_micros(50))),
        ("throttle", Wait::Throttle(Throttle::best())),
    ];
    waits.extend(Throttle::ALL.map(|(name, throttle)| (name, Wait::Throttle(throttle))));
    let wait = given.choice("wait", Wait::Spin { pauses }, &waits)?;
    let guard = given.choice("guard", Guard::None, &GUARDS)?;
    let states = given.choice("states", States::Together, &STATES)?;
    let (deduplicate, skip) = given.choice("dedupe", DEDUPLICATE[0].1, &DEDUPLICATE)?;
    let on = given.choice("helper", true, &HELPERS)?;
    given.nothing_left(WORK_AHEAD_KEYS)?;
    let helper = on.then_some(Helper { direction, wait, skip });
    Ok(Technique::WorkAhead(Options { size, guard, states, deduplicate, helper }))
}

/// Each throttle, and the best that this CPU has.
fn throttles() -> [(&'static str, Throttle); 6] {
    let [pause, serialize, tpause, umwait, wfe] = Throttle::ALL;
    [pause, serialize, tpause, umwait, wfe, ("best", Throttle::best())]
}

impl FromStr for Technique {
    type Err = TechniqueError;

    fn from_str(text: &str) -> Result<Self, TechniqueError> {
        let mut given = OptionList::read(text);
        let (technique, known) = match given.name {
            "sequential" => (Technique::Sequential, "no option"),
            "staged" => {
                (Technique::Staged { width: given.number("width", SIZE, WIDTH_MAX)? }, "width")
            }
            "group" => (Technique::Group { width: given.number("width", 64, WIDTH_MAX)? }, "width"),
            "amac" => {
                let width = given.number("width", 32, WIDTH_MAX)?;
                (
                    Technique::Amac { width, hint: given.choice("hint", Near::L1, &L1_L2)? },
                    "width, hint",
                )
            }
            "rounds" => {
                let width = given.number("width", 1024, WIDTH_MAX)?;
                let hint = given.choice("hint", Near::L1, &NONE_L1)?;
                (Technique::Rounds { width, hint }, "width, hint")
            }
            "distance" => {
                let rows = given.number("rows", 32, WIDTH_MAX)?;
                (
                    Technique::Distance { rows, hint: given.choice("hint", Near::L1, &L1_L2)? },
                    "rows, hint",
                )
            }
            "coroutine" => {
                (Technique::Coroutine { width: given.number("width", 32, WIDTH_MAX)? }, "width")
            }
            "work-ahead" => (work_ahead(&mut given)?, WORK_AHEAD_KEYS),
            "direct-helper" => {
                let size = given.number("size", SIZE, ENTRIES_MAX)?;
                let throttle = given.choice("throttle", Throttle::Pause, &throttles())?;
                (Technique::DirectHelper { size, throttle }, "size, throttle")
            }
            other => return Err(TechniqueError::Name(other.to_owned())),
        };
        given.nothing_left(known)?;
        Ok(technique)
    }
}

/// The name of a value among its choices.
fn name_of<T: PartialEq>(choices: &[(&'static str, T)], value: &T) -> &'static str {
    choices.iter().find(|choice| choice.1 == *value).map_or("?", |choice| choice.0)
}

impl fmt::Display for Technique {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Technique::Sequential => write!(out, "sequential"),
            Technique::Staged { width } => write!(out, "staged:width={width}"),
            Technique::Group { width } => write!(out, "group:width={width}"),
            Technique::Amac { width, hint } => {
                write!(out, "amac:width={width},hint={}", name_of(&L1_L2, hint))
            }
            Technique::Rounds { width, hint } => {
                write!(out, "rounds:width={width},hint={}", name_of(&NONE_L1, hint))
            }
            Technique::Distance { rows, hint } => {
                write!(out, "distance:rows={rows},hint={}", name_of(&L1_L2, hint))
            }
            Technique::Coroutine { width } => write!(out, "coroutine:width={width}"),
            Technique::DirectHelper { size, throttle: Throttle::Pause } => {
                write!(out, "direct-helper:size={size}")
            }
            Technique::DirectHelper { size, throttle } => {
                write!(out, "direct-helper:size={size},throttle={}", throttle.name())
            }
            Technique::WorkAhead(options) => {
                let Options { size, guard, states, deduplicate, helper } = options;
                write!(out, "work-ahead:size={size},guard={}", name_of(&GUARDS, guard))?;
                write!(out, ",states={}", name_of(&STATES, states))?;
                let Some(Helper { direction, wait, skip }) = helper else {
                    return write!(out, ",helper=off");
                };
                write!(out, ",direction={}", name_of(&DIRECTIONS, direction))?;
                write!(out, ",dedupe={}", name_of(&DEDUPLICATE, &(*deduplicate, *skip)))?;
                match wait {
                    Wait::None => write!(out, ",wait=none"),
                    Wait::Spin { pauses } => write!(out, ",wait=spin,pauses={pauses}"),
                    Wait::Sleep(_) => write!(out, ",wait=sleep"),
                    Wait::Throttle(throttle) => write!(out, ",wait={}", throttle.name()),
                }
            }
        }
    }
}
