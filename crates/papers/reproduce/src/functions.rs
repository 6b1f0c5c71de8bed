//! The functions of Hassanein et al. (2008, sections 4.7, 5.7 and 5.8) and what became of them.

mod section;

use std::sync::LazyLock;

use serde::Deserialize;

use workahead_counters::profile::{Frame, Kind, Profile};

pub use section::sections;

/// A function that the paper names.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PublishedFunction {
    /// Its name in PostgreSQL 8.1.
    pub name: String,
    /// Its purpose.
    pub role: String,
    /// The functions that do it in PostgreSQL 15 to 18.
    pub today: Vec<String>,
    /// A note for readers.
    pub note: Option<String>,
    /// The workloads whose most time consuming functions it is among.
    pub seen_in: Vec<String>,
    /// Its shares, as the paper's text prints them.
    #[serde(default)]
    pub shares: Vec<PublishedShare>,
    /// How these change with Hyper-Threading, in percent of those without.
    #[serde(default)]
    pub changes: Vec<PublishedShare>,
    /// The workloads in which the paper says that it takes less time with Hyper-Threading.
    #[serde(default)]
    pub less_time_under_ht: Vec<String>,
    /// Those in which it takes more.
    #[serde(default)]
    pub more_time_under_ht: Vec<String>,
}

/// A share that the paper prints.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PublishedShare {
    /// Of what: `time`, `l2-misses`, `dtlb-misses`.
    pub of: String,
    /// Up to 100; below zero only for what became less.
    pub percent: f64,
    /// `uTPC-C`, `uSS`, `uNJ`.
    pub workload: String,
    /// With Hyper-Threading or without, and how many clients; `None` where the paper says neither.
    pub setting: Option<String>,
    /// Where the paper says it.
    pub source: String,
}

/// The sum of the functions of a workload's figure.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Together {
    /// `uSS`, `uNJ`.
    pub workload: String,
    /// How many there are in the figure.
    pub functions: usize,
    /// Their share of the time, 0 to 100.
    pub percent: f64,
    /// Where the paper says it.
    pub source: String,
}

/// A function of the paper in a profile of today.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionToday {
    /// The function of the paper.
    pub function: &'static PublishedFunction,
    /// Functions of today that were seen, with their share of events of their own, 0 to 1.
    pub found: Vec<(Frame, f64)>,
    /// Their sum; `None` where none was seen: no sample fell there, the compiler has put it into
    /// its caller, or it has no name in a stripped file.
    pub share: Option<f64>,
    /// Other functions of the paper whose work is part of the same share.
    pub with: Vec<&'static str>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    function: Vec<PublishedFunction>,
    together: Vec<Together>,
}

static FILE: LazyLock<File> = LazyLock::new(|| {
    toml::from_str(include_str!("../published/functions.toml"))
        .expect("a test reads the file that is built in")
});

/// The functions of the paper, in the order in which it names them.
#[must_use]
pub fn all() -> &'static [PublishedFunction] {
    &FILE.function
}

/// The sum of the functions of a figure; the paper does not give it for uTPC-C.
#[must_use]
pub fn together() -> &'static [Together] {
    &FILE.together
}

/// The share of each function of the paper in a profile of PostgreSQL today.
#[must_use]
pub fn today(profile: &Profile) -> Vec<FunctionToday> {
    all().iter().map(|function| of_today(profile, function)).collect()
}

fn of_today(profile: &Profile, function: &'static PublishedFunction) -> FunctionToday {
    let is_it = |frame: &Frame| {
        frame.kind == Kind::User && function.today.iter().any(|name| *name == plain(&frame.name))
    };
    let share = |events: u64| events as f64 / profile.events as f64;
    let hits = profile.functions.iter().filter(|of| is_it(&of.frame) && of.self_events > 0);
    let found: Vec<(Frame, f64)> =
        hits.map(|of| (of.frame.clone(), share(of.self_events))).collect();
    let sum = found.iter().map(|(_, share)| share).sum();
    let shares_work = |other: &&PublishedFunction| {
        other.name != function.name && other.today.iter().any(|name| function.today.contains(name))
    };
    let with = all().iter().filter(shares_work).map(|other| other.name.as_str()).collect();
    FunctionToday { function, share: (!found.is_empty()).then_some(sum), found, with }
}

/// A compiler names its copies of a function `name.isra.0`, `name.constprop.1`, `name.cold`.
fn plain(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

#[cfg(test)]
pub(crate) mod tests;
