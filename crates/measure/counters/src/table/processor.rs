//! Which processors a table is for, and which one a machine has.

use serde::Deserialize;

/// The processors of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Processors {
    vendor: String,
    family: u32,
    /// Empty for all of the family.
    models: Vec<Range>,
}

/// One model, or the first and the last of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(super) enum Range {
    One(u32),
    FirstAndLast(u32, u32),
}

impl Processors {
    pub(super) fn new(vendor: String, family: u32, models: Vec<Range>) -> Self {
        Self { vendor, family, models }
    }

    /// Whether a processor is one of them. A table without a vendor matches none: it is chosen by
    /// name.
    pub(super) fn have(&self, vendor: &str, family: u32, model: u32) -> bool {
        !self.vendor.is_empty()
            && self.vendor == vendor
            && self.family == family
            && (self.models.is_empty() || self.models.iter().any(|range| range.contains(model)))
    }
}

impl Range {
    fn contains(self, model: u32) -> bool {
        match self {
            Self::One(only) => model == only,
            Self::FirstAndLast(first, last) => (first..=last).contains(&model),
        }
    }
}

/// Vendor, family and model of the first processor in `/proc/cpuinfo`. On Arm the architecture's
/// version is the family, and the part is the model: 8 and 0xd0c for a Neoverse N1.
pub(super) fn of_cpuinfo(text: &str) -> Option<(String, u32, u32)> {
    let value = |key: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(name, _)| name.trim() == key).map(|(_, value)| value.trim())
    };
    if let Some(vendor) = value("vendor_id") {
        return Some((vendor.to_owned(), number(value("cpu family")?)?, number(value("model")?)?));
    }
    let architecture = number(value("CPU architecture")?)?;
    Some(("arm".to_owned(), architecture, number(value("CPU part")?)?))
}

/// Decimal, or with `0x`.
fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}
