//! Variants of a machine's file, and overrides of single figures.
//!
//! Caches are named, not numbered: `cache.L2.bytes` is the size of the cache called L2, in paths as
//! in variants.

use std::collections::BTreeMap;

use toml::{Table, Value};
use workahead_machine::nesting;

use super::figures::WORDS;
use super::{Preset, PresetError};
use crate::catalogue::one_of;

impl Preset {
    /// Reads a machine's description.
    ///
    /// # Errors
    /// If it is not a valid description, or a figure has no origin.
    pub fn parse(name: &str, text: &str) -> Result<Self, PresetError> {
        let unreadable = |why: String| PresetError::Unreadable { name: name.to_owned(), why };
        nesting::check(text).map_err(|why| unreadable(why.to_owned()))?;
        let preset: Self = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
            unreadable(format!("line {line}: {}", one_line(error.message())))
        })?;
        preset.checked()?.check_origins().map(|()| preset)
    }

    fn checked(&self) -> Result<&Self, PresetError> {
        self.check()?;
        for level in &self.cache {
            self.geometry(level)?;
        }
        Ok(self)
    }

    /// One of its variants. Changed figures have the variant as origin unless it names another.
    ///
    /// # Errors
    /// If the variant is unknown, or makes an impossible machine.
    pub fn with_variant(&self, variant: &str) -> Result<Self, PresetError> {
        let Some(change) = self.variant.get(variant) else {
            let names: Vec<&str> = self.variant.keys().map(String::as_str).collect();
            let known = match names.is_empty() {
                true => "it has none".to_owned(),
                false => one_of(variant, &names),
            };
            let (machine, name) = (self.name.clone(), variant.to_owned());
            return Err(PresetError::UnknownVariant { machine, name, known });
        };
        let mut table = Value::Table(self.table());
        merge(&mut table, &Value::Table(change.clone()))
            .map_err(|why| self.unreadable(variant, &why))?;
        let mut changed: Self =
            table.try_into().map_err(|error| self.unreadable(variant, &error.to_string()))?;
        let own = change.get("origin").and_then(Value::as_table);
        changed.note_changes(self, own, &format!("variant {variant}"));
        let join = if self.name.contains('/') { '+' } else { '/' };
        changed.name = format!("{}{join}{variant}", self.name);
        changed.checked()?.check_origins()?;
        Ok(changed)
    }

    fn unreadable(&self, variant: &str, why: &str) -> PresetError {
        let name = format!("{}, variant {variant}", self.name);
        PresetError::Unreadable { name, why: one_line(why) }
    }

    /// Records under `origin` who changed each figure that differs.
    fn note_changes(&mut self, before: &Self, own: Option<&Table>, who: &str) {
        let was: BTreeMap<String, String> = before.leaves().into_iter().collect();
        for (path, value) in self.leaves() {
            let named = own.is_some_and(|own| own.contains_key(&path));
            let Some(was) = was.get(&path).filter(|was| !named && **was != value) else { continue };
            let origin = before.origin_of(&path).unwrap_or("default");
            let origin = format!("{who}, instead of {was}: {origin}");
            self.origin.insert(path, origin);
        }
    }

    /// The same machine with one figure changed: `cache.L2.bytes=1048576`; numbers, words or
    /// switches.
    ///
    /// # Errors
    /// If the figure is unknown, or can't have this value.
    pub fn with_override(&self, change: &str) -> Result<Self, PresetError> {
        let Some((path, text)) = change.split_once('=') else {
            return Err(PresetError::NoChange(change.to_owned()));
        };
        let (path, text) = (path.trim(), text.trim());
        let refused = |why: &str| PresetError::Value {
            name: self.name.clone(),
            path: path.to_owned(),
            value: text.to_owned(),
            why: one_line(why),
        };
        let mut table = Value::Table(self.table());
        let figure = self.find(&mut table, path)?;
        let given = value_of(text);
        *figure = match (&*figure, given) {
            (Value::Float(_), Value::Integer(whole)) => Value::Float(whole as f64),
            (Value::Float(_), value @ Value::Float(_))
            | (Value::Integer(_), value @ Value::Integer(_))
            | (Value::String(_), value @ Value::String(_))
            | (Value::Boolean(_), value @ Value::Boolean(_)) => value,
            (Value::Float(_), _) => return Err(refused("it takes a number")),
            (Value::Integer(_), _) => return Err(refused("it takes a whole number")),
            (Value::Boolean(_), _) => return Err(refused("it takes true or false")),
            _ => return Err(refused("it takes a word")),
        };
        let mut changed: Self =
            table.try_into().map_err(|error: toml::de::Error| refused(error.message()))?;
        changed.note_changes(self, None, "override");
        changed.checked()?;
        Ok(changed)
    }

    /// The figure at a path.
    fn find<'t>(&self, table: &'t mut Value, path: &str) -> Result<&'t mut Value, PresetError> {
        let mut at = table;
        let mut walked = String::new();
        for step in path.split('.') {
            let known = steps(at, walked.is_empty());
            if !known.iter().any(|known| known == step) {
                return Err(self.no_figure(path, &walked, step, &known));
            }
            walked = if walked.is_empty() { step.to_owned() } else { format!("{walked}.{step}") };
            at = step_into(at, step).expect("it was just listed");
        }
        let known = steps(at, false);
        match known.is_empty() {
            true => Ok(at),
            false => Err(self.no_figure(path, &walked, "", &known)),
        }
    }

    fn no_figure(&self, path: &str, walked: &str, step: &str, known: &[String]) -> PresetError {
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let known = match (walked, known.is_empty()) {
            (_, true) => format!("{walked} is a figure itself"),
            ("", _) => one_of(step, &known),
            _ => format!("at {walked} {}", one_of(step, &known)),
        };
        PresetError::UnknownFigure { name: self.name.clone(), path: path.to_owned(), known }
    }
}

/// The keys that can follow in a path; empty at a figure.
fn steps(at: &Value, is_top: bool) -> Vec<String> {
    match at {
        Value::Table(parts) => {
            let keys = parts
                .keys()
                .filter(|key| *key != "name" && !(is_top && WORDS.contains(&key.as_str())));
            keys.cloned().collect()
        }
        Value::Array(parts) => parts.iter().filter_map(name_of).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

fn step_into<'v>(at: &'v mut Value, step: &str) -> Option<&'v mut Value> {
    match at {
        Value::Table(parts) => parts.get_mut(step),
        Value::Array(parts) => parts.iter_mut().find(|part| name_of(part) == Some(step)),
        _ => None,
    }
}

fn name_of(part: &Value) -> Option<&str> {
    part.get("name").and_then(Value::as_str)
}

/// Merges a table into another one; a list of named tables by name.
fn merge(under: &mut Value, over: &Value) -> Result<(), String> {
    match (under, over) {
        (Value::Table(under), Value::Table(over)) => {
            for (key, over) in over {
                match under.get_mut(key) {
                    Some(under) => merge(under, over)?,
                    None => {
                        under.insert(key.clone(), over.clone());
                    }
                }
            }
        }
        (under @ Value::Array(_), Value::Table(over)) => {
            for (key, over) in over {
                let Some(part) = step_into(under, key) else {
                    let names = steps(under, false);
                    let names: Vec<&str> = names.iter().map(String::as_str).collect();
                    return Err(format!("no {key}: {}", one_of(key, &names)));
                };
                merge(part, over)?;
            }
        }
        (under, over) => *under = over.clone(),
    }
    Ok(())
}

/// The TOML value of a text; a word needs no quotes.
fn value_of(text: &str) -> Value {
    let table = format!("value = {text}");
    let parsed = nesting::check(&table).ok().and_then(|()| toml::from_str::<Table>(&table).ok());
    let value = parsed.and_then(|mut table| table.remove("value"));
    value.unwrap_or_else(|| Value::String(text.to_owned()))
}

fn one_line(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(", ")
}
