//! One point of a study: everything an engine must know to run it once.

use serde::{Deserialize, Serialize};

use crate::label;
use crate::protocol::Protocol;
use crate::setting::{Setting, Settings};

/// A cell: one value of every axis, one case, over the workload.
///
/// ```
/// use workahead_study::{run_plan::RunPlan, spec::Spec};
/// let spec = Spec::parse("demo", r#"
///     title = "Demo"
///     question = "Which?"
///     engine = "native"
///     workload = { operator = "hash_join", rows = 1000 }
///     [axes]
///     pages = ["huge", "small"]
///     [[cases]]
///     name = "sequential"
///     technique = "sequential"
///     [[cases]]
///     name = "AMAC"
///     technique = "amac:width=32"
/// "#).unwrap();
/// let run_plan = RunPlan::new(&spec);
/// assert_eq!(run_plan.cells.len(), 4);
/// let last = &run_plan.cells[3];
/// assert_eq!(last.text("technique"), Some("amac:width=32"));
/// assert_eq!(last.integer("rows"), Some(1000));
/// assert_eq!(last.case(), "AMAC");
/// assert_eq!(last.block, 1); // another page size is other data
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Position in the run plan.
    pub index: usize,
    /// Cells of one block share their data, which is prepared once.
    pub block: usize,
    /// Seed of the data.
    pub seed: u64,
    /// The cell's coordinates: a value per axis, the name of the case under `case`.
    pub place: Settings,
    /// Workload, axes and case merged, the later ones winning; includes `case` when there are
    /// cases.
    pub settings: Settings,
    /// The protocol before each of its samples.
    #[serde(default, skip_serializing_if = "Protocol::is_usual")]
    pub protocol: Protocol,
}

impl Cell {
    /// A setting's value.
    pub fn get(&self, key: &str) -> Option<&Setting> {
        self.settings.get(key)
    }

    /// A setting that is a text.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.get(key).and_then(Setting::as_text)
    }

    /// A setting that is a whole number.
    pub fn integer(&self, key: &str) -> Option<i64> {
        self.get(key).and_then(Setting::as_integer)
    }

    /// The name of the case; empty when the study has none.
    pub fn case(&self) -> &str {
        self.place.get("case").and_then(Setting::as_text).unwrap_or_default()
    }

    /// The cell in words: the values of its axes, then its case, outer ones first as in `axes`.
    /// Long ones are cut, so that several cells may have the same.
    pub fn label(&self, axes: &[String]) -> String {
        let values: Vec<String> =
            axes.iter().filter_map(|axis| self.place.get(axis)).map(label::value).collect();
        label::cut(&values.join(" / "), label::CHARS_MAX).into_owned()
    }

    /// Whether the cell has all of these settings or coordinates: an axis that is not a setting of
    /// the engine, such as `protocol`, is a coordinate only.
    pub fn has(&self, settings: &Settings) -> bool {
        let is = |key: &String| self.settings.get(key).or_else(|| self.place.get(key));
        settings.iter().all(|(key, value)| is(key) == Some(value))
    }
}
