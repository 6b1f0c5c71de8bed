//! One profile on a page of its own, for a program without a study.

use serde::Serialize;
use workahead_counters::profile::Profile;

use crate::functions::flames::ALONE_BYTES;
use crate::functions::{CellFunctions, of_what};
use crate::words;

/// The page.
#[derive(Debug, Serialize)]
pub(crate) struct Page {
    pub(crate) title: String,
    /// Its duration and number of samples.
    pub(crate) kicker: String,
    pub(crate) of: CellFunctions,
}

impl Page {
    /// `name` distinguishes one profile of many.
    pub(crate) fn of(name: &str, profile: &Profile) -> Self {
        let of_what = of_what(&profile.clock);
        Self {
            title: format!("Where {of_what} goes, by function").replace("cycles goes", "cycles go"),
            kicker: format!(
                "{}{} in {}",
                if name.is_empty() { String::new() } else { format!("{name}: ") },
                words::counted(usize::try_from(profile.samples).unwrap_or(usize::MAX), "sample"),
                crate::number::seconds(profile.duration_s)
            ),
            of: CellFunctions::new(String::new(), profile, (Some(profile), ALONE_BYTES)),
        }
    }
}
