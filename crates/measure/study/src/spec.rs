//! A study as data: its TOML read, every misspelt key refused with the nearest right one.
//!
//! `[scale.NAME]` tables override parts of the same document; the merged document is read again,
//! so that a scale obeys exactly the rules of a study.

use serde::{Deserialize, Serialize};
use toml::{Table, Value};
use workahead_machine::nesting;

use crate::claim::{Claim, Requirement};
use crate::error::StudyError;
use crate::method::Method;
use crate::nearest;
use crate::setting::{Setting, Settings};

mod checks;
mod per_core;

/// The longest study of this repository has 20 KB; parsed, a text takes 130 times its bytes.
pub(crate) const TEXT_BYTES_MAX: usize = 1 << 20;

/// A study that has been read.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// Path below `studies/` without `.toml`, or the file's name.
    pub id: String,
    /// The scale that was applied.
    pub scale: Option<String>,
    /// The scales it offers.
    pub scales: Vec<String>,
    /// The whole TOML.
    pub text: String,
    /// One line.
    pub title: String,
    /// The question that it answers.
    pub question: String,
    /// Which engine runs it.
    pub engine: String,
    /// Seed of the data.
    pub seed: u64,
    /// Requirements beyond timing.
    pub needs: Vec<Requirement>,
    /// Settings of every cell.
    pub workload: Settings,
    /// Rows of the ledger that it answers.
    pub ledger: Vec<String>,
    /// Its time on 2 cores.
    pub time_s: Option<f64>,
    /// Its memory at the peak.
    pub memory_mib: Option<u64>,
    /// The axes in the order written.
    pub axes: Vec<Axis>,
    /// Named bundles of settings.
    pub cases: Vec<Case>,
    /// Axes along which only some cells are varied.
    pub sweeps: Vec<Sweep>,
    /// How it is run.
    pub method: Method,
    /// Claims of the paper.
    pub claims: Vec<Claim>,
}

/// An axis of the product.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Axis {
    /// The setting's name.
    pub name: String,
    /// Its values in the order written.
    pub values: Vec<Setting>,
}

/// A named bundle of settings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Case {
    /// Its name, the value on the axis `case`.
    pub name: String,
    /// Its settings.
    pub settings: Settings,
}

/// An axis of some cells only: each is run again with every one of the values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// The setting that is varied.
    pub axis: String,
    /// Its values.
    pub values: Vec<Setting>,
    /// The cells to vary: those with all of these settings.
    #[serde(rename = "where")]
    pub cells: Settings,
}

/// The document as serde sees it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    title: String,
    question: String,
    engine: EngineOf,
    #[serde(default)]
    seed: u64,
    #[serde(default)]
    needs: Vec<Requirement>,
    #[serde(default)]
    workload: Settings,
    #[serde(default)]
    ledger: Vec<String>,
    time_s: Option<f64>,
    memory_mib: Option<u64>,
    #[serde(default)]
    axes: Table,
    #[serde(default)]
    cases: Vec<Settings>,
    #[serde(default)]
    sweeps: Vec<Sweep>,
    #[serde(default)]
    method: Method,
    #[serde(rename = "paper", default)]
    claims: Vec<Claim>,
    #[serde(default)]
    scale: Table,
}

/// The engine of modelled machines.
const MODELLED: &str = "modelled";

/// An engine: its name, or the machine that it models.
#[derive(Deserialize)]
#[serde(untagged, expecting = "the name of an engine, or { modelled = \"MACHINE\" }")]
enum EngineOf {
    Named(String),
    Modelled(OnModel),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OnModel {
    modelled: String,
}

impl EngineOf {
    /// The engine's name; the machine becomes a setting of every cell.
    fn named(self, workload: &mut Settings) -> Result<String, String> {
        match self {
            EngineOf::Named(name) => Ok(name),
            EngineOf::Modelled(OnModel { modelled }) => {
                if workload.contains_key("machine") {
                    return Err(
                        "the machine stands twice, in `engine` and in `workload.machine`: \
                         keep one"
                            .to_owned(),
                    );
                }
                workload.insert("machine".to_owned(), Setting::Text(modelled));
                Ok(MODELLED.to_owned())
            }
        }
    }
}

impl Spec {
    /// Whether its figures are of a modelled machine.
    #[must_use]
    pub fn is_modelled(&self) -> bool {
        self.engine == MODELLED
    }

    /// Reads a study as it stands. Its scales are checked too.
    pub fn parse(id: &str, text: &str) -> Result<Spec, StudyError> {
        check_text(id, text)?;
        let document: Document =
            toml::from_str(text).map_err(|error| spec_error(id, &error, text))?;
        let spec = Spec::from_document(id, text, document)?;
        if !spec.scales.is_empty() {
            let table: Table = text.parse().map_err(|error| spec_error(id, &error, text))?;
            for scale in &spec.scales {
                Spec::scaled(id, text, table.clone(), scale)?;
            }
        }
        Ok(spec)
    }

    /// Reads a study with one of its scales applied.
    pub fn parse_scaled(id: &str, text: &str, scale: &str) -> Result<Spec, StudyError> {
        check_text(id, text)?;
        let table: Table = text.parse().map_err(|error| spec_error(id, &error, text))?;
        Spec::scaled(id, text, table, scale)
    }

    fn scaled(id: &str, text: &str, mut table: Table, scale: &str) -> Result<Spec, StudyError> {
        let scales = table.get("scale").and_then(Value::as_table).cloned().unwrap_or_default();
        let Some(changes) = scales.get(scale) else {
            let known: Vec<&str> = scales.keys().map(String::as_str).collect();
            let remedy = match known.is_empty() {
                true => "it has none, leave --scale out".to_owned(),
                false => nearest::remedy(scale, &known),
            };
            return Err(StudyError::UnknownScale {
                id: id.to_owned(),
                given: scale.to_owned(),
                remedy,
            });
        };
        let at = format!("scale.{scale}");
        let wrong = |message: String| StudyError::Spec { id: id.to_owned(), message };
        let changes = changes.as_table().ok_or_else(|| wrong(format!("{at} is not a table")))?;
        if changes.contains_key("scale") {
            return Err(wrong(format!("{at}: a scale cannot change the scales")));
        }
        merge(&mut table, changes, &at).map_err(wrong)?;
        let document: Document =
            table.try_into().map_err(|error| wrong(format!("{at}: {}", friendly(&error))))?;
        let mut spec = Spec::from_document(id, text, document)?;
        spec.scale = Some(scale.to_owned());
        Ok(spec)
    }

    /// With these repetitions in place of its own.
    ///
    /// # Errors
    /// If they are too many, or too few.
    pub fn repeated(mut self, repetitions: u32) -> Result<Spec, StudyError> {
        self.method.repetitions = repetitions;
        let wrong = |message| StudyError::Spec { id: self.id.clone(), message };
        checks::check(&self).map_err(wrong)?;
        Ok(self)
    }

    fn from_document(id: &str, text: &str, mut document: Document) -> Result<Spec, StudyError> {
        let wrong = |message: String| StudyError::Spec { id: id.to_owned(), message };
        let engine = document.engine.named(&mut document.workload).map_err(wrong)?;
        let axes = document.axes.into_iter().map(axis).collect::<Result<Vec<_>, _>>();
        let cases = document.cases.into_iter().enumerate().map(case).collect::<Result<Vec<_>, _>>();
        let spec = Spec {
            id: id.to_owned(),
            scale: None,
            scales: document.scale.keys().cloned().collect(),
            text: text.to_owned(),
            title: document.title,
            question: document.question,
            engine,
            seed: document.seed,
            needs: document.needs,
            workload: document.workload,
            ledger: document.ledger,
            time_s: document.time_s,
            memory_mib: document.memory_mib,
            axes: axes.map_err(wrong)?,
            cases: cases.map_err(wrong)?,
            sweeps: document.sweeps,
            method: document.method,
            claims: document.claims,
        };
        checks::check(&spec).map_err(wrong)?;
        Ok(spec)
    }

    /// Names of all axes in order, outer ones first; `case` last when there are cases and it is
    /// not a block.
    pub fn axis_names(&self) -> Vec<String> {
        let mut names = self.block_names();
        names.extend(self.axes.iter().map(|axis| axis.name.clone()));
        if !self.cases.is_empty() {
            names.push("case".to_owned());
        }
        let mut seen = std::collections::HashSet::new();
        names.retain(|name| seen.insert(name.clone()));
        names
    }

    /// The axes of the sweeps, each once.
    pub fn sweep_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.sweeps.iter().map(|sweep| sweep.axis.clone()).collect();
        names.dedup();
        names
    }

    /// The remedy when this scale is too large: `else_do` with the study's own text if it has no
    /// other.
    pub(crate) fn other_scales(&self, else_do: &str) -> String {
        let others = self.scales.iter().filter(|scale| Some(*scale) != self.scale.as_ref());
        let others: Vec<String> = others.map(|scale| format!("--scale {scale}")).collect();
        match others.is_empty() {
            true => format!("copy the study (`workahead study show`) and {else_do}"),
            false => format!("try {}", others.join(" or ")),
        }
    }

    /// Names of the axes that change the data.
    pub fn block_names(&self) -> Vec<String> {
        match &self.method.blocks {
            Some(blocks) => blocks.clone(),
            None => self.axes.iter().map(|axis| axis.name.clone()).collect(),
        }
    }
}

fn check_text(id: &str, text: &str) -> Result<(), StudyError> {
    let wrong = |message: String| Err(StudyError::Spec { id: id.to_owned(), message });
    if text.len() > TEXT_BYTES_MAX {
        return wrong(format!("its text has more than {} KiB", TEXT_BYTES_MAX >> 10));
    }
    nesting::check(text).or_else(|why| wrong(why.to_owned()))
}

fn axis((name, value): (String, Value)) -> Result<Axis, String> {
    let list = format!("axes.{name} is not a list of values: write `{name} = [ … ]`");
    let Value::Array(values) = value else { return Err(list) };
    let values: Result<Vec<Setting>, _> = values.into_iter().map(Value::try_into).collect();
    Ok(Axis { name, values: values.map_err(|_| list)? })
}

fn case((index, mut settings): (usize, Settings)) -> Result<Case, String> {
    match settings.remove("name") {
        Some(Setting::Text(name)) if !name.is_empty() => Ok(Case { name, settings }),
        _ => Err(format!("case {} has no name: add `name = \"…\"` to it", index + 1)),
    }
}

/// Lays `changes` over `table`. Workload settings and axes must exist already: a new one would be
/// a misspelt old one.
fn merge(table: &mut Table, changes: &Table, at: &str) -> Result<(), String> {
    for (key, change) in changes {
        if let ("workload" | "axes", Value::Table(change)) = (key.as_str(), change) {
            let known: Vec<&str> = match table.get(key) {
                Some(Value::Table(known)) => known.keys().map(String::as_str).collect(),
                _ => Vec::new(),
            };
            if let Some(new) = change.keys().find(|new| !known.contains(&new.as_str())) {
                let remedy = nearest::remedy(new, &known);
                return Err(format!("{at}.{key} changes `{new}`, which {key} lacks: {remedy}"));
            }
        }
        match (table.get_mut(key), change) {
            (Some(Value::Table(inner)), Value::Table(change)) if key != "baseline" => {
                let at = format!("{at}.{key}");
                merge(inner, change, &at)?;
            }
            _ => {
                table.insert(key.clone(), change.clone());
            }
        }
    }
    Ok(())
}

fn spec_error(id: &str, error: &toml::de::Error, text: &str) -> StudyError {
    let message = match error.span() {
        Some(span) => {
            let line = text[..span.start.min(text.len())].matches('\n').count() + 1;
            format!("line {line}: {}", friendly(error))
        }
        None => friendly(error),
    };
    StudyError::Spec { id: id.to_owned(), message }
}

/// Serde's message, with the list of what it expected shortened to the nearest name.
fn friendly(error: &toml::de::Error) -> String {
    let message = error.message().replace('\n', ", ");
    for (start, what) in [("unknown field ", "key"), ("unknown variant ", "value")] {
        if let Some(rest) = message.strip_prefix(start) {
            let mut quoted = rest.split('`').skip(1).step_by(2);
            let given = quoted.next().unwrap_or_default();
            let known: Vec<&str> = quoted.collect();
            return format!("unknown {what} `{given}`: {}", nearest::remedy(given, &known));
        }
    }
    match message.strip_prefix("missing field ") {
        Some(field) => format!("the key {field} is missing: add it"),
        None => message,
    }
}

#[cfg(test)]
mod tests;
