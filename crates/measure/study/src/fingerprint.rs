//! A short name for exactly what a run does, so that a resumed run continues the same one.
//!
//! FNV-1a, 64 bits (Fowler, Noll, Vo 1991): it must be the same in every build and on every
//! machine, which the standard library's hasher does not promise; nobody attacks it.

use serde::Serialize;

use crate::engine::Engine;
use crate::plan::Plan;

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

#[derive(Serialize)]
struct Run<'a> {
    engine: &'a str,
    version: String,
    plan: &'a Plan,
}

/// The fingerprint of a plan on an engine: cells with all settings, seed, order, repetitions,
/// engine and its version. Titles, charts and the paper's figures may change without one.
pub fn of(plan: &Plan, engine: &dyn Engine) -> String {
    let run = Run { engine: engine.name(), version: engine.version(), plan };
    let text = serde_json::to_string(&run).expect("plans have only text keys");
    format!("{:016x}", fnv1a(text.as_bytes()))
}

pub(crate) fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(OFFSET, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::fnv1a;

    #[test]
    fn published_vectors() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
