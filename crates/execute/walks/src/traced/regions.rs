//! Names for runs of memory, so that a trace says the same in every process.

use std::fmt;

use super::{Access, Kind};
use crate::place::Intent;

/// Named runs of memory that do not overlap, in address order.
#[derive(Debug, Clone, Default)]
pub struct Regions {
    regions: Vec<Region>,
}

#[derive(Debug, Clone, Copy)]
struct Region {
    name: &'static str,
    address: usize,
    bytes: usize,
}

/// A region over bytes that have a name already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the regions {first} and {second} overlap: name each run of memory once")]
pub struct Overlap {
    /// The one at the lower address.
    pub first: &'static str,
    /// The other.
    pub second: &'static str,
}

/// An access that no region holds whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "access {sequence} of thread {thread}, {bytes} bytes at {address:#x}, is in no region: \
     name all memory that the walk reads"
)]
pub struct UnnamedAccess {
    /// Who.
    pub thread: u16,
    /// When.
    pub sequence: u64,
    /// Where.
    pub address: usize,
    /// How much.
    pub bytes: u32,
}

impl Regions {
    /// No region.
    #[must_use]
    pub const fn none() -> Self {
        Self { regions: Vec::new() }
    }

    /// These, and `values` as one more.
    ///
    /// # Errors
    /// When it overlaps one of them.
    pub fn with<T>(mut self, name: &'static str, values: &[T]) -> Result<Self, Overlap> {
        let region = Region { name, address: values.as_ptr().addr(), bytes: size_of_val(values) };
        let at = self.regions.partition_point(|other| other.address < region.address);
        self.regions.insert(at, region);
        for pair in self.regions.windows(2) {
            if pair[0].address + pair[0].bytes > pair[1].address {
                return Err(Overlap { first: pair[0].name, second: pair[1].name });
            }
        }
        Ok(self)
    }

    /// Where an access is.
    pub(super) fn spot(&self, access: &Access) -> Result<Spot, UnnamedAccess> {
        let Access { address, sequence, bytes, thread, kind } = *access;
        let after = self.regions.partition_point(|region| region.address <= address);
        self.regions[..after]
            .iter()
            // Regions of no bytes may share an address with the one that has them.
            .rfind(|region| address + bytes as usize <= region.address + region.bytes)
            .map(|region| Spot {
                region: region.name,
                offset: address - region.address,
                sequence,
                bytes,
                thread,
                kind,
            })
            .ok_or(UnnamedAccess { thread, sequence, address, bytes })
    }
}

/// An access without its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spot {
    /// Name of the region.
    pub region: &'static str,
    /// First byte, from the region's start.
    pub offset: usize,
    /// Position in its thread's trace.
    pub sequence: u64,
    /// Length.
    pub bytes: u32,
    /// Who.
    pub thread: u16,
    /// Its kind.
    pub kind: Kind,
}

/// `read cells+32 16`: kind, place, bytes.
impl fmt::Display for Spot {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Read => "read",
            Kind::HotRead => "hot",
            Kind::Write => "write",
            Kind::Fetch(Intent::Read) => "fetch",
            Kind::Fetch(Intent::Write) => "fetch-to-write",
        };
        write!(out, "{kind} {}+{} {}", self.region, self.offset, self.bytes)
    }
}
