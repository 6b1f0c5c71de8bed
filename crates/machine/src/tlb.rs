//! Translation buffers, as the processor describes them (CPUID).
//!
//! Three dialects: Intel's leaf 0x18 lists them one by one; older Intel processors answer leaf 2
//! with one-byte descriptors (Software Developer's Manual, volume 2A, table 3-12); AMD has leaves
//! 0x8000_0005, 0x8000_0006 and 0x8000_0019 (Programmer's Manual, volume 3, appendix E). Other
//! architectures do not tell, and no table of processor models is kept here: `unknown`.
//!
//! Only buffers that translate data are listed.

use serde::{Deserialize, Serialize};

use crate::sysroot::Sysroot;

/// The translation buffers of a core.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tlb {
    /// The source.
    pub source: TlbSource,
    /// One entry per level and page size; empty when unknown.
    pub levels: Vec<TlbLevel>,
}

/// Source of the description of the translation buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TlbSource {
    /// The processor, or the hypervisor in its name.
    Cpuid,
    /// Nobody.
    Unknown,
}

/// How many pages of one size a level translates at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TlbLevel {
    /// 1 is nearest to the core.
    pub level: u32,
    /// Page size.
    pub page_bytes: u64,
    /// Entries for pages of this size (sizes may share them).
    pub entries: u64,
}

impl Tlb {
    pub(crate) fn read(root: &Sysroot) -> Self {
        let mut levels = if root.is_live() { cpuid::levels() } else { Vec::new() };
        levels.sort_unstable();
        levels.dedup();
        let source = if levels.is_empty() { TlbSource::Unknown } else { TlbSource::Cpuid };
        Self { source, levels }
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "x86")))]
mod cpuid {
    pub(super) fn levels() -> Vec<super::TlbLevel> {
        Vec::new()
    }
}

#[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
mod cpuid {
    use raw_cpuid::{CpuId, CpuIdReader, CpuIdReaderNative, CpuIdResult, DatType};

    use super::TlbLevel;

    const KIB_4: u64 = 4 << 10;
    const MIB_2: u64 = 2 << 20;
    const GIB_1: u64 = 1 << 30;

    pub(super) fn levels() -> Vec<TlbLevel> {
        of(CpuIdReaderNative)
    }

    pub(super) fn of<R: CpuIdReader>(read: R) -> Vec<TlbLevel> {
        let cpuid = CpuId::with_cpuid_reader(read.clone());
        let listed = listed(&cpuid);
        if !listed.is_empty() {
            return listed;
        }
        match cpuid.get_vendor_info().as_ref().map(|vendor| vendor.as_str()) {
            Some("GenuineIntel") => descriptors(&read.cpuid1(2)),
            Some("AuthenticAMD" | "HygonGenuine") => amd(&cpuid),
            _ => Vec::new(),
        }
    }

    /// Each register holds four descriptors if its highest bit is clear; the lowest byte of EAX is
    /// a constant. The library's own reader stops at the first descriptor it does not know.
    fn descriptors(answer: &CpuIdResult) -> Vec<TlbLevel> {
        let registers = [answer.eax & !0xff, answer.ebx, answer.ecx, answer.edx];
        let valid = registers.into_iter().filter(|register| register >> 31 == 0);
        let buffers = valid.flat_map(|register| register.to_le_bytes()).flat_map(described);
        buffers.map(|&buffer| one(buffer)).collect()
    }

    fn listed<R: CpuIdReader>(cpuid: &CpuId<R>) -> Vec<TlbLevel> {
        let mut levels = Vec::new();
        for buffer in cpuid.get_deterministic_address_translation_info().into_iter().flatten() {
            let data = [DatType::DataTLB, DatType::UnifiedTLB, DatType::LoadOnly];
            if !data.contains(&buffer.cache_type()) {
                continue;
            }
            let entries = u64::from(buffer.ways()) * u64::from(buffer.sets());
            let sizes = [
                (buffer.has_4k_entries(), KIB_4),
                (buffer.has_2mb_entries(), MIB_2),
                (buffer.has_1gb_entries(), GIB_1),
            ];
            let level = u32::from(buffer.cache_level());
            let held = sizes.into_iter().filter(|&(held, _)| held && entries > 0);
            levels.extend(held.map(|(_, page_bytes)| TlbLevel { level, page_bytes, entries }));
        }
        levels
    }

    /// Level, page size and entries of the data buffers among the descriptors of leaf 2 (cores from
    /// 2006 to 2019).
    fn described(descriptor: u8) -> &'static [(u32, u64, u64)] {
        match descriptor {
            0x03 => &[(1, KIB_4, 64)],
            0x5a => &[(1, MIB_2, 32)],
            0x63 => &[(1, MIB_2, 32), (1, GIB_1, 4)],
            0xa0 => &[(1, KIB_4, 32)],
            0xb3 => &[(2, KIB_4, 128)],
            0xb4 => &[(2, KIB_4, 256)],
            0xba => &[(1, KIB_4, 64)],
            0xc0 => &[(1, KIB_4, 8)],
            0xc1 => &[(2, KIB_4, 1024), (2, MIB_2, 1024)],
            0xc2 => &[(1, KIB_4, 16), (1, MIB_2, 16)],
            0xc3 => &[(2, KIB_4, 1536), (2, MIB_2, 1536), (2, GIB_1, 16)],
            0xc4 => &[(1, MIB_2, 32)],
            0xca => &[(2, KIB_4, 512)],
            _ => &[],
        }
    }

    fn one((level, page_bytes, entries): (u32, u64, u64)) -> TlbLevel {
        TlbLevel { level, page_bytes, entries }
    }

    fn amd<R: CpuIdReader>(cpuid: &CpuId<R>) -> Vec<TlbLevel> {
        let mut levels = Vec::new();
        let mut add = |level, page_bytes, entries| {
            if entries > 0 {
                levels.push(TlbLevel { level, page_bytes, entries });
            }
        };
        if let Some(first) = cpuid.get_l1_cache_and_tlb_info() {
            add(1, KIB_4, u64::from(first.dtlb_4k_size()));
            add(1, MIB_2, u64::from(first.dtlb_2m_4m_size()));
        }
        if let Some(second) = cpuid.get_l2_l3_cache_and_tlb_info() {
            add(2, KIB_4, u64::from(second.dtlb_4k_size()));
            add(2, MIB_2, u64::from(second.dtlb_2m_4m_size()));
        }
        if let Some(large) = cpuid.get_tlb_1gb_page_info() {
            add(1, GIB_1, u64::from(large.dtlb_l1_1gb_size()));
            add(2, GIB_1, u64::from(large.dtlb_l2_1gb_size()));
        }
        levels
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        /// Answers from a list of `(leaf, subleaf, [eax, ebx, ecx, edx])`; zeros elsewhere.
        fn answers(
            list: &'static [(u32, u32, [u32; 4])],
        ) -> impl Fn(u32, u32) -> CpuIdResult + Clone {
            move |leaf, subleaf| {
                let found = list.iter().find(|&&(l, s, _)| (l, s) == (leaf, subleaf));
                let [eax, ebx, ecx, edx] = found.map_or([0; 4], |answer| answer.2);
                CpuIdResult { eax, ebx, ecx, edx }
            }
        }

        const INTEL: [u32; 3] = [0x756e_6547, 0x6c65_746e, 0x4965_6e69];
        const AMD: [u32; 3] = [0x6874_7541, 0x444d_4163, 0x6974_6e65];

        #[test]
        fn an_amd_processor_of_2021() {
            let levels = of(answers(&[
                (0, 0, [0x10, AMD[0], AMD[1], AMD[2]]),
                (0x8000_0000, 0, [0x8000_0023, AMD[0], AMD[1], AMD[2]]),
                (0x8000_0005, 0, [0xff40_ff40, 0xff40_ff40, 0x2008_0140, 0x2008_0140]),
                (0x8000_0006, 0, [0x5c00_2200, 0x6800_4200, 0x0200_6140, 0x0100_9140]),
                (0x8000_0019, 0, [0xf040_f040, 0xf040_0000, 0, 0]),
            ]));
            let expected = [
                one((1, KIB_4, 64)),
                one((1, MIB_2, 64)),
                one((2, KIB_4, 2048)),
                one((2, MIB_2, 3072)),
                one((1, GIB_1, 64)),
                one((2, GIB_1, 64)),
            ];
            assert_eq!(levels, expected);
        }

        #[test]
        fn an_intel_processor_with_leaf_24() {
            let levels = of(answers(&[
                (0, 0, [0x20, INTEL[0], INTEL[1], INTEL[2]]),
                (0x18, 0, [2, 0, 0, 0]),
                // Instructions, 4 KiB: left out.
                (0x18, 1, [0, 0x0008_0001, 16, 0x0000_4022]),
                // Data, second level, 4 KiB and 2 MiB, 16 ways of 128 sets.
                (0x18, 2, [0, 0x0010_0003, 128, 0x0000_4043]),
            ]));
            assert_eq!(levels, [one((2, KIB_4, 2048)), one((2, MIB_2, 2048))]);
        }

        #[test]
        fn an_intel_processor_with_descriptors() {
            let levels = of(answers(&[
                (0, 0, [0x16, INTEL[0], INTEL[1], INTEL[2]]),
                (2, 0, [0x7603_6301, 0x00f0_b5ff, 0, 0x00c3_0000]),
            ]));
            let expected = [
                one((1, MIB_2, 32)),
                one((1, GIB_1, 4)),
                one((1, KIB_4, 64)),
                one((2, KIB_4, 1536)),
            ];
            for level in expected {
                assert!(levels.contains(&level), "{level:?} in {levels:?}");
            }
        }

        #[test]
        fn a_processor_that_says_nothing() {
            assert!(of(answers(&[])).is_empty());
        }
    }
}
