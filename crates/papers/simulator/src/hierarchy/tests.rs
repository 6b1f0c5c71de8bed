//! Paths by hand, and invariants of every line under random accesses.

use proptest::prelude::*;

use super::*;
use crate::preset::{Preset, Sharing};

/// Four CPUs with 512 bytes of L1D, 256 of L1I and 2 KiB of L2 each; lines of 64 bytes.
fn small(edit: impl FnOnce(&mut Preset)) -> Preset {
    let mut preset = crate::preset::tests::small();
    edit(&mut preset);
    preset
}

fn hierarchy(preset: &Preset) -> Hierarchy<u32> {
    Hierarchy::new(preset).unwrap()
}

#[test]
fn a_line_comes_once_from_memory_and_then_from_cache() {
    let mut caches = hierarchy(&small(|_| {}));
    let cycles = |access: Access| (access.ready / 60, access.depth);
    assert_eq!(cycles(caches.access(0, AccessKind::Load, 0, 0)), (100, 2));
    // It is outstanding: further accesses wait for the same fill.
    assert_eq!(cycles(caches.access(0, AccessKind::Load, 8, 60)), (100, 0));
    assert_eq!(cycles(caches.access(0, AccessKind::Load, 8, 200 * 60)), (202, 0));
    // Eight lines of another set's number push it out of L1 (2 ways of 4 sets), not out of L2.
    for line in 1..=2 {
        caches.access(0, AccessKind::Load, line * 256, 1000 * 60);
    }
    assert_eq!(cycles(caches.access(0, AccessKind::Load, 0, 2000 * 60)), (2010, 1));
}

#[test]
fn a_neighbours_modified_line_is_snooped() {
    let mut caches = hierarchy(&small(|_| {}));
    caches.access(0, AccessKind::Store, 64, 0);
    caches.set_value(0, 64, 7);
    let access = caches.access(1, AccessKind::Load, 64, 6000);
    assert_eq!((access.ready / 60, access.depth, access.dirty), (250, 2, true));
    assert_eq!(caches.value(1, 64), Some(7));
    assert_eq!((caches.bus.counts.dirty, caches.found[1].dirty[AccessKind::Load as usize]), (1, 1));
    // Both share it now; the next store invalidates the neighbour's, by a message.
    caches.access(1, AccessKind::Store, 64, 60_000);
    assert_eq!((caches.bus.counts.upgrades, caches.bus.counts.upgrades_alone), (1, 0));
    // From its L1 and its L2.
    assert_eq!(caches.found[1].invalidated, 2);
    assert_eq!(caches.access(0, AccessKind::Load, 64, 120_000).depth, 2);
}

/// A store to a line that no other CPU has: free under MESI, a message under MSI (S2.18).
#[test]
fn msi_asks_where_mesi_knows() {
    let messages = |protocol| {
        let mut caches = hierarchy(&small(|preset| preset.memory.protocol = protocol));
        for line in 0..5 {
            caches.access(2, AccessKind::Load, line * 64, 0);
            caches.access(2, AccessKind::Store, line * 64, 6000);
        }
        (caches.bus.counts.upgrades, caches.bus.counts.upgrades_alone)
    };
    assert_eq!(messages(Protocol::Mesi), (0, 0));
    assert_eq!(messages(Protocol::Msi), (5, 5));
}

/// Two cores under one L2 settle their lines there, without the bus.
#[test]
fn a_shared_cache_settles_lines_of_its_cores() {
    let mut caches = hierarchy(&small(|preset| preset.cache[2].cores = 2));
    caches.access(0, AccessKind::Store, 0, 0);
    caches.set_value(0, 0, 9);
    let access = caches.access(1, AccessKind::Load, 0, 60_000);
    assert_eq!((access.depth, access.dirty, caches.value(1, 0)), (1, true, Some(9)));
    assert_eq!(caches.bus.counts.reads, 1);
    caches.access(1, AccessKind::Store, 0, 120_000);
    assert_eq!((caches.bus.counts.upgrades, caches.found[1].invalidated), (0, 1));
    // A core under the other L2 needs the bus.
    let access = caches.access(2, AccessKind::Load, 0, 180_000);
    assert_eq!((access.depth, access.dirty), (2, true));
}

/// A line evicted from an inclusive L2 is recalled from the L1 above it, modified or not.
#[test]
fn inclusion_calls_lines_back() {
    for inclusive in [false, true] {
        let mut caches = hierarchy(&small(|preset| preset.cache[2].inclusive = inclusive));
        caches.access(0, AccessKind::Store, 0, 0);
        caches.set_value(0, 0, 3);
        // L2 has 8 sets of 4 ways: lines 8, 16, … share line 0's set. L1 has 4 sets of 2.
        for line in 1..=4 {
            caches.access(0, AccessKind::Fetch, line * 512, 6000 * line);
        }
        let depth = caches.access(0, AccessKind::Load, 0, 600_000).depth;
        assert_eq!(depth, if inclusive { 2 } else { 0 });
        assert_eq!(caches.value(0, 0), Some(3));
    }
}

/// By hand: a stored line is in L2 at once, modified, and in L1 only if it was there. Pushed out
/// of L1 it is dropped, and out of L2 it is clean in L1.
#[test]
fn stores_go_through() {
    let mut caches = hierarchy(&small(|preset| preset.cache[0].write_through = true));
    let states = |caches: &Hierarchy<u32>, address| {
        let unit = |at: u16| &caches.units[at as usize].cache;
        [0, 1].map(|step| {
            let cache = unit(caches.data[0].steps[step]);
            cache.peek(cache.line_of(address))
        })
    };
    use State::{Exclusive, Invalid, Modified};
    caches.access(0, AccessKind::Store, 0, 0);
    caches.set_value(0, 0, 5);
    assert_eq!(states(&caches, 0), [Invalid, Modified]);
    // Again it misses L1, and takes L2's ten cycles; a load brings the line.
    let access = caches.access(0, AccessKind::Store, 8, 60_000);
    assert_eq!((access.ready, access.depth), (60_600, 1));
    assert_eq!(caches.access(0, AccessKind::Load, 0, 120_000).depth, 1);
    assert_eq!(caches.value(0, 0), Some(5));
    caches.access(0, AccessKind::Store, 0, 180_000);
    assert_eq!(states(&caches, 0), [Modified, Modified]);
    // L1 has 4 sets of 2 lines, L2 8 sets of 4: two loads push it out of the first, without a
    // write to the second.
    for line in 1..=2 {
        caches.access(0, AccessKind::Load, line * 256, 240_000);
    }
    assert_eq!((states(&caches, 0), caches.bus.counts.writes), ([Invalid, Modified], 0));
    caches.access(0, AccessKind::Load, 0, 300_000);
    caches.access(0, AccessKind::Store, 0, 300_000);
    // Instructions push it out of L2.
    for line in 1..=4 {
        caches.access(0, AccessKind::Fetch, line * 512, 360_000);
    }
    assert_eq!((states(&caches, 0), caches.bus.counts.writes), ([Exclusive, Invalid], 1));
    // A store then gets the line into L2 before.
    assert_eq!(caches.access(0, AccessKind::Store, 0, 420_000).depth, 2);
    assert_eq!(states(&caches, 0), [Modified, Modified]);
}

/// Threads with an L1 each (A47) don't find each other's lines there; with a shared one they do.
#[test]
fn threads_share_a_cache_or_not() {
    let depth = |sharing| {
        let mut caches = hierarchy(&small(|preset| {
            (preset.cores, preset.threads, preset.cache[0].threads) = (1, 2, sharing);
        }));
        caches.access(0, AccessKind::Load, 0, 0);
        caches.access(1, AccessKind::Load, 0, 60_000).depth
    };
    assert_eq!(depth(Sharing::Shared), 0);
    assert_eq!(depth(Sharing::Duplicated), 1);
    assert_eq!(depth(Sharing::Split), 1);
}

/// One thread's line survives 512 bytes of other lines in a cache of its own, and half of that in
/// a split one.
#[test]
fn a_split_cache_is_half_as_large() {
    let survives = |sharing, lines: u64| {
        let mut caches = hierarchy(&small(|preset| {
            (preset.cores, preset.threads, preset.cache[0].threads) = (1, 2, sharing);
        }));
        for line in 0..lines {
            caches.access(0, AccessKind::Load, line * 64, 0);
        }
        caches.access(0, AccessKind::Load, 0, 60_000).depth == 0
    };
    assert!(survives(Sharing::Duplicated, 8) && survives(Sharing::Split, 4));
    assert!(!survives(Sharing::Split, 8) && !survives(Sharing::Duplicated, 16));
}

/// Arrangements of caches.
fn arrangements() -> impl Strategy<Value = Preset> {
    let sharing =
        prop_oneof![Just(Sharing::Shared), Just(Sharing::Duplicated), Just(Sharing::Split)];
    let protocol = prop_oneof![Just(Protocol::Mesi), Just(Protocol::Msi)];
    (sharing, protocol, any::<[bool; 2]>(), 0_usize..4).prop_map(
        |(sharing, protocol, [inclusive, through], kind)| {
            small(|preset| {
                preset.memory.protocol = protocol;
                preset.cache[0].write_through = through;
                preset.cache[2].inclusive = inclusive;
                match kind {
                    0 => {}
                    1 => preset.cache[2].cores = 2,
                    2 => preset.cache[2].cores = 4,
                    _ => {
                        (preset.cores, preset.threads) = (2, 2);
                        preset.cache[0].threads = sharing;
                    }
                }
            })
        },
    )
}

/// Allowed states at the same time (Papamarcos and Patel 1984): on a bus, one owner and no other
/// copy.
fn check(caches: &Hierarchy<u32>, address: u64) {
    let paths = caches.data.len();
    let state = |at: u16| {
        let cache = &caches.units[at as usize].cache;
        cache.peek(cache.line_of(address))
    };
    for cpu in 0..paths {
        let path = &caches.data[cpu];
        for (depth, at) in path.steps.iter().enumerate() {
            if !state(*at).is_owned() {
                continue;
            }
            // An owner serves those under it; no cache outside may have the line.
            let inside = &path.under[depth];
            let outside =
                path.under[path.steps.len()].iter().filter(|other| !inside.contains(other));
            for other in outside {
                assert_eq!(state(*other), State::Invalid, "{address:#x} is owned by {at}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Every read sees the last write of any CPU, under both protocols and any arrangement; and no
    /// line ever has two owners, or an owner and a sharer.
    #[test]
    fn reads_see_the_last_write(
        preset in arrangements(),
        accesses in proptest::collection::vec((0_usize..4, 0_u8..8, 0_u64..80), 1..600),
    ) {
        let mut caches = hierarchy(&preset);
        let mut memory = std::collections::HashMap::new();
        for (at, (cpu, kind, line)) in accesses.into_iter().enumerate() {
            let (address, now) = (line * 64, at as u64 * 600);
            match kind {
                0..=2 => {
                    caches.access(cpu, AccessKind::Store, address, now);
                    caches.set_value(cpu, address, at as u32 + 1);
                    memory.insert(line, at as u32 + 1);
                }
                3 => {
                    caches.access(cpu, AccessKind::Fetch, address + (1 << 20), now);
                }
                4 => caches.prefetch(cpu, address, now),
                _ => {
                    caches.access(cpu, AccessKind::Load, address, now);
                    let expected = memory.get(&line).copied().unwrap_or_default();
                    prop_assert_eq!(caches.value(cpu, address), Some(expected));
                }
            }
            check(&caches, address);
        }
        for line in 0..80 {
            check(&caches, line * 64);
        }
    }
}
