//! Checks of a method beyond serde's: ranges, and names defined elsewhere.

use std::collections::BTreeSet;

use workahead_counters::counter::ALL;
use workahead_counters::metric;
use workahead_counters::rotation::SLOT_S;

use super::Method;
use crate::instrument;
use crate::nearest;

/// More repetitions than this are a typing error.
const REPETITIONS_MAX: u32 = 2_000;

/// Faster sampling would mostly sample itself.
const PROFILE_HZ_MAX: u32 = 10_000;

impl Method {
    /// The first error, in words.
    pub(crate) fn check(&self) -> Result<(), String> {
        if !(1..=REPETITIONS_MAX).contains(&self.repetitions) {
            return Err(format!("method.repetitions must lie between 1 and {REPETITIONS_MAX}"));
        }
        if self.warmup > REPETITIONS_MAX {
            return Err(format!("method.warmup must lie between 0 and {REPETITIONS_MAX}"));
        }
        check_collection(self)?;
        check_instrumented(self)
    }
}

fn check_collection(method: &Method) -> Result<(), String> {
    if !SLOT_S.contains(&method.slot_s) {
        let (from, to) = (SLOT_S.start(), SLOT_S.end());
        return Err(format!("method.slot_s must lie between {from} and {to} seconds"));
    }
    if method.profile_hz > PROFILE_HZ_MAX {
        return Err(format!("method.profile_hz must lie between 0 and {PROFILE_HZ_MAX}"));
    }
    if !method.profile_by.is_empty() && method.profile_hz == 0 {
        return Err("method.profile_by needs samples: give profile_hz, such as 99".to_owned());
    }
    let by = method.profile_by.iter().map(|by| by.name().to_owned());
    if let Some(twice) = repeated(by) {
        return Err(format!("method.profile_by names `{twice}` twice: remove one"));
    }
    let known: Vec<&str> = metric::groups().into_iter().chain([ALL]).collect();
    match method.counters.iter().find(|name| !known.contains(&name.as_str())) {
        Some(name) => {
            let remedy = nearest::remedy(name, &known);
            Err(format!("method.counters has no group `{name}`: {remedy}"))
        }
        None => Ok(()),
    }
}

fn check_instrumented(method: &Method) -> Result<(), String> {
    let Some(instrumented) = &method.instrumented else { return Ok(()) };
    if !method.collection().is_nothing() {
        return Err("method.instrumented counts by a model and not by this machine: leave \
                    `counters` and `profile_hz` out"
            .to_owned());
    }
    check_caches(&instrumented.caches)
}

/// Refuses unknown caches of a model.
pub(crate) fn check_caches(text: &str) -> Result<(), String> {
    instrument::check(text).map_err(|why| format!("method.instrumented: {why}"))
}

/// The first repeated name.
pub(crate) fn repeated(names: impl Iterator<Item = String>) -> Option<String> {
    let mut seen = BTreeSet::new();
    names.into_iter().find(|name| !seen.insert(name.clone()))
}
