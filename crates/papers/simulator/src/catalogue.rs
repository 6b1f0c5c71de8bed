//! The embedded machines, and machines in files.
//!
//! ```text
//!   ppro-quad                            a machine of machines/
//!   ppro-quad/4p-512k+outstanding-1      with its variants, one over the other
//!   my/machine.toml/ht-off               a file, which may have variants too
//! ```

#[cfg(test)]
mod tests;

use workahead_machine::regular_file;

use crate::preset::{Preset, PresetError};

/// The longest description.
const BYTES_MAX: u64 = 1 << 20;

/// The text of an embedded machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmbeddedFile {
    /// Path below `machines/`, without `.toml`.
    pub name: &'static str,
    /// TOML text.
    pub text: &'static str,
}

static MACHINES: &[EmbeddedFile] = include!(concat!(env!("OUT_DIR"), "/machines.rs"));

/// Variants of a machine at a time: each is applied to the whole of it.
const VARIANTS_MAX: usize = 16;
/// Suffix of a machine's file name.
const FILE: &str = ".toml";

/// Every embedded machine, by name.
#[must_use]
pub fn all() -> &'static [EmbeddedFile] {
    MACHINES
}

/// Names of the embedded machines.
pub fn names() -> impl Iterator<Item = &'static str> {
    MACHINES.iter().map(|machine| machine.name)
}

impl Preset {
    /// A machine by its name or file, with variants after a slash, joined by `+`.
    ///
    /// # Errors
    /// If the machine or variant is unknown, or its description is invalid.
    pub fn named(reference: &str) -> Result<Self, PresetError> {
        let (machine, variants) = match reference.find(FILE) {
            Some(at) => reference.split_at(at + FILE.len()),
            None => reference.split_at(reference.find('/').unwrap_or(reference.len())),
        };
        if variants.split('+').count() > VARIANTS_MAX {
            let why = format!("more than {VARIANTS_MAX} variants are given");
            return Err(PresetError::Unreadable { name: machine.to_owned(), why });
        }
        let preset = match machine.ends_with(FILE) {
            true => {
                let text = regular_file::read_text(machine.as_ref(), BYTES_MAX);
                let text = text.map_err(|error| {
                    let why = format!("cannot be read: {error}");
                    PresetError::Unreadable { name: machine.to_owned(), why }
                })?;
                Self::parse(machine, &text)?
            }
            false => embedded(machine)?,
        };
        let variants = variants.strip_prefix('/').unwrap_or(variants);
        let variants = variants.split('+').filter(|variant| !variant.is_empty());
        variants.into_iter().try_fold(preset, |preset, variant| preset.with_variant(variant))
    }
}

fn embedded(name: &str) -> Result<Preset, PresetError> {
    match MACHINES.iter().find(|machine| machine.name == name) {
        Some(machine) => Preset::parse(machine.name, machine.text),
        None => {
            let known: Vec<&str> = names().collect();
            Err(PresetError::Unknown { name: name.to_owned(), known: one_of(name, &known) })
        }
    }
}

/// Least similarity of a suggested name.
const LIKE: f64 = 0.8;
/// Longer texts are not names; comparing two takes the product of their lengths.
const NAME_BYTES_MAX: usize = 200;

/// The list of known names, and the most similar one.
pub(crate) fn one_of(given: &str, known: &[&str]) -> String {
    let like = |name: &str| strsim::jaro_winkler(&given.to_lowercase(), &name.to_lowercase());
    let is_name = |name: &str| name.len() <= NAME_BYTES_MAX;
    let names = known.iter().filter(|name| is_name(given) && is_name(name));
    let nearest = names.map(|name| (like(name), name));
    let nearest =
        nearest.filter(|(like, _)| *like >= LIKE).max_by(|one, two| one.0.total_cmp(&two.0));
    let all = format!("there are {}", known.join(", "));
    match nearest {
        Some((_, name)) => format!("{all}; did you mean {name}?"),
        None => all,
    }
}
