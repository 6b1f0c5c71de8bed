//! The seeds' row store: records of 64 bytes, one cache line each (Zhou et al., §6.2).

use bytemuck::{Pod, Zeroable};

use crate::memory::Memory;
use crate::place::Place;
use crate::walk::Row;

/// A row of a table: a join key, the row's own position, and payload up to one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(64))]
pub struct Record {
    /// Join key.
    pub key: u32,
    /// Position in its table: what a checker needs to know a record again after it was copied.
    pub row: u32,
    /// Everything else the query carries along.
    pub payload: [u32; 14],
}

const _: () = assert!(size_of::<Record>() == 64);

/// A joined row: 128 bytes, as in Zhou et al., §6.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(64))]
pub struct Joined {
    /// From the probe (outer, left) side.
    pub probe: Record,
    /// From the build (inner, right) side.
    pub build: Record,
}

const _: () = assert!(size_of::<Joined>() == 128);

/// The rows that probe, and in what order (Zhou et al., §5).
#[derive(Debug, Clone, Copy)]
pub enum Probes<'a> {
    /// The records in memory order: the hardware prefetcher's friend.
    Clustered(&'a [Record]),
    /// Row ids in random order, each dereferenced.
    Unclustered(&'a [Record], &'a [u32]),
}

impl<'a> Probes<'a> {
    /// How many rows probe.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Probes::Clustered(records) => records.len(),
            Probes::Unclustered(_, rids) => rids.len(),
        }
    }

    /// Whether no row probes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Position of the record that row `row` of the stream names.
    #[inline(always)]
    pub fn position(&self, row: Row) -> usize {
        match self {
            Probes::Clustered(_) => row as usize,
            Probes::Unclustered(_, rids) => rids[row as usize] as usize,
        }
    }

    /// The record at a position.
    #[inline(always)]
    pub fn at(&self, position: usize) -> &'a Record {
        match self {
            Probes::Clustered(records) | Probes::Unclustered(records, _) => &records[position],
        }
    }

    /// The record of a row, where it must be announced before it is read.
    #[inline(always)]
    pub fn input(&self, row: Row) -> Option<Place> {
        match self {
            // The next line in memory: the hardware prefetcher is already there.
            Probes::Clustered(_) => None,
            Probes::Unclustered(records, rids) => {
                Some(Place::of(&records[rids[row as usize] as usize]))
            }
        }
    }

    /// Reads the record of a row: position and record.
    #[inline(always)]
    pub fn read<M: Memory>(&self, row: Row, memory: &mut M) -> (u32, &'a Record) {
        match self {
            Probes::Clustered(records) => (row, memory.read_hot(&records[row as usize])),
            Probes::Unclustered(records, rids) => {
                let rid = *memory.read_hot(&rids[row as usize]);
                (rid, memory.read(&records[rid as usize]))
            }
        }
    }
}
