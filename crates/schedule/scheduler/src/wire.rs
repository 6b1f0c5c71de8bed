//! The entries of the maps, as `bpf/wire.h` lays them out.

use bytemuck::{Pod, Zeroable};

pub(crate) const GROUPS_MAX: u32 = 256;
pub(crate) const BUCKETS: usize = 256;
pub(crate) const SCAN_BUCKETS: usize = 129;

/// `struct settings`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub(crate) struct RawSettings {
    pub(crate) bonus_ns: u64,
    pub(crate) slice_ns: u64,
    pub(crate) max_delay_ns: u64,
    pub(crate) patience_ns: u64,
    pub(crate) preempt_ns: u64,
    pub(crate) balance_ns: u64,
    pub(crate) limit: u32,
    pub(crate) key: u32,
    pub(crate) scan_max: u32,
    pub(crate) survey: u32,
    pub(crate) cpus: u32,
    pub(crate) stop: u32,
    pub(crate) fault: u32,
    pub(crate) tags: u32,
}

/// `struct role`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub(crate) struct RawRole {
    pub(crate) role: u32,
    pub(crate) group: u32,
}

/// `struct stats`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(crate) struct RawStats {
    pub(crate) decisions: u64,
    pub(crate) chances: u64,
    pub(crate) taken: u64,
    pub(crate) picked_head: u64,
    pub(crate) picked_member: u64,
    pub(crate) picked_companion: u64,
    pub(crate) kept: u64,
    pub(crate) at_limit: u64,
    pub(crate) overdue: u64,
    pub(crate) lost: u64,
    pub(crate) direct: u64,
    pub(crate) stolen: u64,
    pub(crate) balanced: u64,
    pub(crate) preempted: u64,
    pub(crate) parked: u64,
    pub(crate) scanned: u64,
    pub(crate) decide_ns: u64,
    pub(crate) wait_max_ns: u64,
    pub(crate) switches: u64,
    pub(crate) user_switches: u64,
    pub(crate) same_switches: u64,
    pub(crate) pair_ns: u64,
    pub(crate) same_pair_ns: u64,
    pub(crate) set_pair_ns: u64,
    pub(crate) same_set_pair_ns: u64,
    pub(crate) migrations: u64,
    pub(crate) latency: [u64; BUCKETS],
    pub(crate) scans: [u64; SCAN_BUCKETS],
    pub(crate) latency_ns: u64,
}

/// `struct ended`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(crate) struct RawExitInfo {
    pub(crate) code: i64,
    pub(crate) kind: u32,
    pub(crate) reserved: u32,
    pub(crate) reason: [u8; 64],
    pub(crate) message: [u8; 256],
}

const _: () = {
    assert!(size_of::<RawSettings>() == 80, "as in wire.h");
    assert!(size_of::<RawRole>() == 8, "as in wire.h");
    assert!(size_of::<RawStats>() == 8 * (26 + BUCKETS + SCAN_BUCKETS + 1), "as in wire.h");
    assert!(size_of::<RawExitInfo>() == 336, "as in wire.h");
};
