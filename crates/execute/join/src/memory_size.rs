//! Parses memory sizes.

/// Units, in lower case, and their bytes.
const UNITS: [(&str, u64); 11] = [
    ("b", 1),
    ("kb", 1000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("m", 1 << 20),
    ("g", 1 << 30),
];

/// The text is not a memory size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("give a size such as 300MB or 1.5GiB")]
pub struct UnknownSize;

/// The bytes of `300MB`, `1.5 GiB`, `1000000`.
///
/// # Errors
/// If it is not a number, has an unknown unit, or is less than a byte or more than a machine can
/// have.
pub fn memory_bytes(text: &str) -> Result<usize, UnknownSize> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let unit = unit.trim().to_ascii_lowercase();
    let factor = match &unit[..] {
        "" => Some(1),
        unit => UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor),
    };
    let bytes = number.parse::<f64>().ok().zip(factor).map(|(n, factor)| n * factor as f64);
    match bytes {
        Some(bytes) if (1.0..usize::MAX as f64 / 2.0).contains(&bytes) => Ok(bytes as usize),
        _ => Err(UnknownSize),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        let sizes = [
            ("300MB", 300_000_000),
            ("300 mb", 300_000_000),
            ("1.5GiB", 3 << 29),
            ("64MiB", 64 << 20),
            ("64M", 64 << 20),
            ("12345", 12345),
            ("1e", 0),
            ("MB", 0),
            ("", 0),
            ("-3MB", 0),
            ("0", 0),
            ("1.2.3MB", 0),
            ("99999999999TB", 0),
            ("3 parsecs", 0),
        ];
        for (text, bytes) in sizes {
            assert_eq!(memory_bytes(text).unwrap_or(0), bytes, "{text}");
        }
    }
}
