//! Services that may have a bonus of their own, and their numbers in the kernel.

/// A service that has a bonus of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service<'a> {
    /// The tasks of a cgroup, by its id: the inode of its folder in cgroup2.
    Cgroup(u64),
    /// The processes with a tag.
    Tag(&'a str),
}

impl Service<'_> {
    /// Its group's. Of a tag FNV-1a, in the half that no other group's numbers reach soon.
    pub(crate) fn number(self) -> u64 {
        let name = match self {
            Self::Cgroup(id) => return id,
            Self::Tag(name) => name,
        };
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3_u64)
        });
        hash | 1 << 63
    }
}
