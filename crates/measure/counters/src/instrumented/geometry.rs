//! The caches of the model: two levels, as cachegrind has them.
//!
//! ```text
//!   l1i ──┐
//!         ├──► last ──► memory        each: bytes = sets x ways x line bytes, sets a power of two
//!   l1d ──┘                           least recently used line replaced, stores allocate
//! ```
//!
//! All three are always given. Without `--LL` the tool takes the last level of whatever host it
//! runs on, and no two machines would count the same.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Error;

/// The shape of one cache. Written `bytes,ways,line bytes`: `32768,8,64` or `32KiB,8,64`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CacheShape {
    bytes: u64,
    ways: u64,
    line_bytes: u64,
}

/// The caches of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Geometry {
    /// Instructions, first level.
    pub l1i: CacheShape,
    /// Data, first level.
    pub l1d: CacheShape,
    /// The level before memory, of both. Where a machine has three levels, its middle one has no
    /// place in the model.
    pub last: CacheShape,
}

/// The tool keeps sizes in a signed 32-bit number.
const BYTES_MAX: u64 = i32::MAX as u64;
/// The tool refuses shorter lines. It cuts an access to the length of a line, so lines shorter
/// than a vector register (32 bytes) undercount what crosses them.
const LINE_BYTES_MIN: u64 = 16;

impl CacheShape {
    /// A cache of this many bytes, ways (lines that may hold the same address) and bytes per line.
    ///
    /// # Errors
    /// If valgrind would refuse it, or would silently count with another: the line is a power of
    /// two of at least 16 bytes, the bytes are sets x ways x line, the sets a power of two, and
    /// there is more than one line.
    pub fn new(bytes: u64, ways: u64, line_bytes: u64) -> Result<Self, Error> {
        let shape = Self { bytes, ways, line_bytes };
        match shape.fault() {
            None => Ok(shape),
            Some(why) => Err(Error::Shape { text: shape.to_string(), why }),
        }
    }

    fn fault(self) -> Option<String> {
        let Self { bytes, ways, line_bytes } = self;
        if line_bytes < LINE_BYTES_MIN || !line_bytes.is_power_of_two() {
            return Some(format!("its line must be a power of two from {LINE_BYTES_MIN} bytes up"));
        }
        if bytes > BYTES_MAX {
            return Some("it must be smaller than 2 GiB".to_owned());
        }
        if bytes <= line_bytes {
            return Some("it must hold more than one line".to_owned());
        }
        if ways == 0 {
            return Some("it must have at least one way".to_owned());
        }
        let set = ways.checked_mul(line_bytes).filter(|set| bytes.is_multiple_of(*set));
        let Some(set) = set else {
            return Some("its bytes must be a multiple of ways x line".to_owned());
        };
        let sets = bytes / set;
        (!sets.is_power_of_two()).then(|| {
            // As valgrind itself does with a last level that it finds.
            let fit = 1 << sets.ilog2();
            let near = Self { bytes: fit * set, ways, line_bytes };
            format!("its {sets} sets must be a power of two, as in `{near}`")
        })
    }

    /// Its size.
    #[must_use]
    pub fn bytes(self) -> u64 {
        self.bytes
    }

    /// Lines that may hold the same address.
    #[must_use]
    pub fn ways(self) -> u64 {
        self.ways
    }

    /// Bytes of a line.
    #[must_use]
    pub fn line_bytes(self) -> u64 {
        self.line_bytes
    }

    /// As the tools write it down: `32768 B, 64 B, 8-way associative`, or `direct-mapped`.
    pub(super) fn of_description(text: &str) -> Option<Self> {
        let mut parts = text.split(',').map(str::trim);
        let mut bytes = || parts.next()?.strip_suffix(" B")?.parse().ok();
        let (bytes, line_bytes) = (bytes()?, bytes()?);
        let ways = match parts.next()? {
            "direct-mapped" => 1,
            ways => ways.strip_suffix("-way associative")?.parse().ok()?,
        };
        Self::new(bytes, ways, line_bytes).ok()
    }
}

/// `32KiB,8,64`; a size that is not a whole number of KiB in bytes.
impl fmt::Display for CacheShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bytes, ways, line_bytes } = self;
        match bytes {
            0 => write!(f, "0"),
            mib if mib.is_multiple_of(1 << 20) => write!(f, "{}MiB", mib >> 20),
            kib if kib.is_multiple_of(1 << 10) => write!(f, "{}KiB", kib >> 10),
            other => write!(f, "{other}"),
        }?;
        write!(f, ",{ways},{line_bytes}")
    }
}

impl FromStr for CacheShape {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let parts: Option<Vec<u64>> = text.split(',').map(|part| size(part.trim())).collect();
        match parts.as_deref() {
            Some(&[bytes, ways, line_bytes]) => Self::new(bytes, ways, line_bytes),
            _ => Err(Error::Shape {
                text: text.to_owned(),
                why: "it is written `bytes,ways,line bytes`, such as `32KiB,8,64`".to_owned(),
            }),
        }
    }
}

/// A number of bytes, or of KiB or MiB when it says so.
fn size(text: &str) -> Option<u64> {
    let units = [("KiB", 10), ("MiB", 20)];
    let unit = units.iter().find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, *shift)));
    let (digits, shift) = unit.unwrap_or((text, 0));
    digits.trim_end().parse::<u64>().ok()?.checked_mul(1 << shift)
}

impl TryFrom<String> for CacheShape {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<CacheShape> for String {
    fn from(shape: CacheShape) -> Self {
        shape.to_string()
    }
}

impl Geometry {
    /// The arguments for cachegrind or callgrind.
    #[must_use]
    pub fn words(&self) -> [String; 3] {
        [("I1", self.l1i), ("D1", self.l1d), ("LL", self.last)].map(|(name, shape)| {
            format!("--{name}={},{},{}", shape.bytes, shape.ways, shape.line_bytes)
        })
    }
}

impl fmt::Display for Geometry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "L1I {}; L1D {}; last level {}", self.l1i, self.l1d, self.last)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_may_be_written_in_two_ways() {
        let plain: CacheShape = "32768,8,64".parse().unwrap();
        assert_eq!(plain, "32KiB, 8, 64".parse().unwrap());
        assert_eq!((plain.bytes(), plain.ways(), plain.line_bytes()), (32768, 8, 64));
        assert_eq!(plain.to_string(), "32KiB,8,64");
        let last: CacheShape = "2MiB,16,64".parse().unwrap();
        let geometry = Geometry { l1i: plain, l1d: plain, last };
        assert_eq!(geometry.words(), ["--I1=32768,8,64", "--D1=32768,8,64", "--LL=2097152,16,64"]);
    }

    /// Shapes that valgrind 3.19 refuses (tried one by one), and sizes that it would round down.
    #[test]
    fn shapes_that_valgrind_refuses_are_refused_before() {
        for (text, why) in [
            ("32768,7,64", "multiple"),
            ("30000,8,64", "multiple"),
            ("33280,8,64", "65 sets"),
            ("32768,8,60", "power of two"),
            ("32768,8,8", "from 16 bytes"),
            ("0,8,64", "more than one line"),
            ("64,1,64", "more than one line"),
            ("32768,0,64", "one way"),
            ("65536,2048,64", "multiple"),
            ("4096MiB,16,64", "2 GiB"),
            ("272629760,20,64", "as in `160MiB,20,64`"),
            ("32768,8", "bytes,ways,line bytes"),
            ("32 GB,8,64", "bytes,ways,line bytes"),
            ("32768,8,64,2", "bytes,ways,line bytes"),
            ("", "bytes,ways,line bytes"),
            ("18446744073709551615MiB,8,64", "bytes,ways,line bytes"),
        ] {
            let error = text.parse::<CacheShape>().unwrap_err().to_string();
            assert!(error.contains(why) && !error.contains('\n'), "{text}: {error}");
        }
        for text in ["98304,12,64", "128,2,64", "65536,1024,64", "65536,1,1024", "32768,8,16"] {
            assert!(text.parse::<CacheShape>().is_ok(), "{text}");
        }
    }

    #[test]
    fn descriptions_of_the_tools_are_read() {
        let read = CacheShape::of_description;
        assert_eq!(read("  32768 B, 64 B, 8-way associative"), "32768,8,64".parse().ok());
        assert_eq!(read("32768 B, 64 B, direct-mapped"), "32768,1,64".parse().ok());
        assert_eq!(read("32768 B, 64 B"), None);
        assert_eq!(read("much"), None);
    }

    proptest! {
        #[test]
        fn any_shape_survives_being_written(
            sets in 0u32..16, ways in 1u64..33, line in 4u32..9,
        ) {
            let line_bytes = 1 << line;
            let bytes = (1 << sets) * ways * line_bytes;
            prop_assume!(bytes > line_bytes);
            let shape = CacheShape::new(bytes, ways, line_bytes).unwrap();
            prop_assert_eq!(shape.to_string().parse::<CacheShape>().unwrap(), shape);
            let json = serde_json::to_string(&shape).unwrap();
            prop_assert_eq!(serde_json::from_str::<CacheShape>(&json).unwrap(), shape);
        }

        #[test]
        fn no_text_and_no_numbers_panic(
            text in ".*", bytes: u64, ways: u64, line_bytes: u64, shift in 0u32..64,
        ) {
            let _ = text.parse::<CacheShape>();
            let _ = CacheShape::of_description(&text);
            let _ = CacheShape::new(bytes, ways, line_bytes);
            let _ = CacheShape::new(bytes >> shift, ways >> shift, 1 << shift);
        }
    }
}
