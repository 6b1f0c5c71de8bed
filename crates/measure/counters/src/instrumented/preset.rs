//! Caches by name: this machine's, and those of the papers. Each parameter has its source.

use workahead_machine::caches::{Cache, CacheKind};

use super::{CacheShape, Error, Geometry};

/// Caches with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preset {
    /// The name.
    pub name: String,
    /// The caches.
    pub geometry: Geometry,
    /// The source of its numbers: of all, then of those a paper leaves out, and of those the model
    /// changes.
    pub origins: Vec<String>,
}

/// This machine, its caches of the highest level as the last.
pub const THIS_MACHINE: &str = "this-machine";
/// This machine with its second level as the last: what a third level of the host, shared with
/// unknown others, would have to serve.
pub const THIS_MACHINE_L2: &str = "this-machine-l2";

/// Sizes of the first data cache and of the last level are the only things in which variants
/// differ: (name, L1D bytes, last level bytes).
const PENTIUM_4: [(&str, u64, u64); 2] =
    [("pentium-4-ht-2m", 64 << 10, 2 << 20), ("pentium-4-ht-2m-l1d-16k", 16 << 10, 2 << 20)];
const PENTIUM_PRO: [(&str, u64, u64); 3] = [
    ("pentium-pro-256k", 8 << 10, 256 << 10),
    ("pentium-pro-512k", 8 << 10, 512 << 10),
    ("pentium-pro-1m", 8 << 10, 1 << 20),
];

/// Parameters of their machine that Hassanein et al. (2008) leave out.
const PENTIUM_4_ORIGINS: [&str; 5] = [
    "last level: 2 MiB: Hassanein et al. (2008), the machine of their experiments",
    "L1I: stands in for the trace cache of 12 K micro-operations, which the model lacks; 16 KiB, \
     8-way, 64 B: it misses like 8 to 16 KiB of instructions (Hinton et al. 2001, The \
     Microarchitecture of the Pentium 4 Processor)",
    "L1D: 8-way, 64 B lines: not in Hassanein et al. (2008); Intel's optimisation manual for \
     models 3 and 4",
    "L1D: 64 KiB is what Hassanein et al. (2008) print; Intel's manual says 16 KiB, which is the \
     variant pentium-4-ht-2m-l1d-16k",
    "last level: 8-way, 64 B lines: not in Hassanein et al. (2008); Intel's optimisation manual \
     (lines are fetched in pairs there, not here)",
];

/// Parameters that Keeton et al. (1998, table 3) leave out.
const PENTIUM_PRO_ORIGINS: [&str; 2] = [
    "bytes and ways: Keeton et al. (1998), table 3",
    "lines of 32 B: not in Keeton et al. (1998), table 3; Intel's manual of the Pentium Pro",
];

impl Preset {
    /// The names of all presets.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let papers = PENTIUM_4.iter().chain(&PENTIUM_PRO).map(|(name, ..)| *name);
        [THIS_MACHINE, THIS_MACHINE_L2].into_iter().chain(papers)
    }

    /// The caches of this name. `caches` are those of this machine
    /// ([`Machine::caches`](workahead_machine::Machine)).
    ///
    /// # Errors
    /// If there is no such name, or the system does not describe the caches of this machine.
    pub fn named(name: &str, caches: &[Cache]) -> Result<Self, Error> {
        let of = |(known, ..): &&(&str, u64, u64)| *known == name;
        if let Some((_, l1d, last)) = PENTIUM_4.iter().find(of) {
            let shape = |bytes| CacheShape::new(bytes, 8, 64);
            let geometry =
                Geometry { l1i: shape(16 << 10)?, l1d: shape(*l1d)?, last: shape(*last)? };
            return Ok(Self::of(name, geometry, &PENTIUM_4_ORIGINS));
        }
        if let Some((_, l1d, last)) = PENTIUM_PRO.iter().find(of) {
            let geometry = Geometry {
                l1i: CacheShape::new(8 << 10, 4, 32)?,
                l1d: CacheShape::new(*l1d, 2, 32)?,
                last: CacheShape::new(*last, 4, 32)?,
            };
            return Ok(Self::of(name, geometry, &PENTIUM_PRO_ORIGINS));
        }
        match name {
            THIS_MACHINE => Self::of_machine(name, caches, u32::MAX),
            THIS_MACHINE_L2 => Self::of_machine(name, caches, 2),
            _ => Err(Error::NoPreset { name: name.to_owned(), hint: hint(name) }),
        }
    }

    fn of(name: &str, geometry: Geometry, origins: &[&str]) -> Self {
        let origins = origins.iter().map(|&origin| origin.to_owned()).collect();
        Self { name: name.to_owned(), geometry, origins }
    }

    /// Of the CPU that comes first where they differ.
    fn of_machine(name: &str, caches: &[Cache], level_max: u32) -> Result<Self, Error> {
        let mut origins = vec!["this machine, as its system describes it".to_owned()];
        let first = |kind| move |cache: &&Cache| cache.level == 1 && cache.kind == kind;
        let find = |kind| caches.iter().find(first(kind));
        let unified = || find(CacheKind::Unified);
        let levels = caches.iter().filter(|cache| cache.holds_data());
        let highest = levels.clone().map(|cache| cache.level).filter(|level| *level <= level_max);
        // A first level is none of its own here: the model has two.
        let highest = highest.max().filter(|level| *level > 1);
        let last = highest.and_then(|level| levels.clone().find(|cache| cache.level == level));
        let mut shape = |what, cache: Option<&Cache>| {
            modelled(what, cache.ok_or(Error::UnknownCache(what))?, &mut origins)
        };
        let geometry = Geometry {
            l1i: shape("L1I", find(CacheKind::Instruction).or_else(unified))?,
            l1d: shape("L1D", find(CacheKind::Data).or_else(unified))?,
            last: shape("last level", last)?,
        };
        Ok(Self { name: name.to_owned(), geometry, origins })
    }
}

/// Usual values for what a system leaves out.
const LINE_BYTES: u64 = 64;
const WAYS: u64 = 8;

/// A cache whose sets are not a power of two (those of recent servers) keeps its bytes as nearly as
/// valgrind's own rounding does: fewer sets, more ways.
fn modelled(what: &str, cache: &Cache, origins: &mut Vec<String>) -> Result<CacheShape, Error> {
    let bytes = cache.bytes;
    let line = cache.line_bytes.unwrap_or_else(|| {
        origins.push(format!("{what}: the system names no line: {LINE_BYTES} B assumed"));
        LINE_BYTES
    });
    let ways = cache.ways.unwrap_or_else(|| {
        origins.push(format!("{what}: the system names no ways: {WAYS} assumed"));
        WAYS
    });
    let sets = bytes.checked_div(line.saturating_mul(ways)).unwrap_or(0);
    if sets == 0 || sets.is_power_of_two() {
        return CacheShape::new(bytes, ways, line);
    }
    let fewer = 1 << sets.ilog2();
    let ways = bytes.div_ceil(fewer * line);
    let shape = CacheShape::new(fewer * ways * line, ways, line)?;
    origins.push(format!(
        "{what}: {bytes} B in {sets} sets can't be modelled: {shape}, as valgrind rounds it"
    ));
    Ok(shape)
}

fn hint(name: &str) -> String {
    let near = Preset::names().map(|known| (strsim::jaro_winkler(known, name), known));
    match near.max_by(|a, b| a.0.total_cmp(&b.0)) {
        // Typing errors in these names stay above it.
        Some((likeness, known)) if likeness > 0.9 => format!("did you mean `{known}`?"),
        _ => format!("known are {}", Preset::names().collect::<Vec<_>>().join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use workahead_machine::CpuSet;

    use super::*;

    fn cache(level: u32, kind: CacheKind, bytes: u64, ways: Option<u64>) -> Cache {
        let cpus = CpuSet::from_iter([0]);
        Cache { level, kind, bytes, line_bytes: Some(64), ways, cpus }
    }

    fn server() -> Vec<Cache> {
        vec![
            cache(1, CacheKind::Data, 48 << 10, Some(12)),
            cache(1, CacheKind::Instruction, 32 << 10, Some(8)),
            cache(2, CacheKind::Unified, 2 << 20, Some(16)),
            cache(3, CacheKind::Unified, 260 << 20, Some(20)),
        ]
    }

    /// Valgrind 3.19 said of this last level: `simulated LL cache: line_size 64 assoc 33
    /// total_size 276,824,064`.
    #[test]
    fn a_last_level_is_rounded_as_valgrind_rounds_it() {
        let preset = Preset::named(THIS_MACHINE, &server()).unwrap();
        let last = CacheShape::new(276_824_064, 33, 64).unwrap();
        assert_eq!(preset.geometry.last, last);
        assert_eq!(preset.geometry.l1d.to_string(), "48KiB,12,64");
        let [_, origin] = preset.origins.as_slice() else { panic!("{:?}", preset.origins) };
        assert!(origin.contains("212992 sets"), "{origin}");
        let second = Preset::named(THIS_MACHINE_L2, &server()).unwrap();
        assert_eq!(second.geometry.last.to_string(), "2MiB,16,64");
        assert_eq!(second.origins.len(), 1, "{:?}", second.origins);
    }

    #[test]
    fn figures_missing_from_the_system_are_assumed_and_reported() {
        let mut caches = server();
        caches[0].ways = None;
        caches[2].line_bytes = None;
        caches[0].bytes = 32 << 10;
        let preset = Preset::named(THIS_MACHINE_L2, &caches).unwrap();
        assert_eq!(preset.geometry.l1d.to_string(), "32KiB,8,64");
        assert_eq!(preset.origins.len(), 3, "{:?}", preset.origins);
    }

    #[test]
    fn without_caches_the_remedy_is_named() {
        let error = Preset::named(THIS_MACHINE, &[]).unwrap_err().to_string();
        assert!(error.contains("L1I") && error.contains("32KiB,8,64"), "{error}");
        let error = Preset::named(THIS_MACHINE, &server()[..2]).unwrap_err().to_string();
        assert!(error.contains("last level"), "{error}");
    }

    #[test]
    fn machines_of_the_papers_name_what_their_paper_leaves_out() {
        for name in Preset::names() {
            let preset = Preset::named(name, &server()).unwrap();
            assert_eq!(preset.name, name);
        }
        let quad = Preset::named("pentium-pro-1m", &[]).unwrap();
        assert_eq!(quad.geometry.to_string(), "L1I 8KiB,4,32; L1D 8KiB,2,32; last level 1MiB,4,32");
        let error = Preset::named("pentium-pro-1mb", &[]).unwrap_err().to_string();
        assert!(error.ends_with("did you mean `pentium-pro-1m`?"), "{error}");
        let error = Preset::named("vax", &[]).unwrap_err().to_string();
        assert!(error.contains("pentium-4-ht-2m-l1d-16k"), "{error}");
    }
}
