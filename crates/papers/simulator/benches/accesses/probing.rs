//! A stream in which every access misses: the worst case, and the same for any size of data.
//!
//! A row of the input in order; a random bucket, a random cell and a random row, each at an address
//! read from the one before; a joined row of the output in order. Nothing is cached.

use std::hint::black_box;

use workahead_simulator::op::{Dependence, Op};
use workahead_walks::random::Random;

use crate::trace::{Kind, Record};

/// Bytes of buckets, cells and rows: each far more than any cache of the models.
const PART: u64 = 16 << 20;
const INPUT: u64 = 1 << 32;
const OUTPUT: u64 = 2 << 32;
const TABLE: u64 = 3 << 32;

/// The accesses of one probe.
const OPS: usize = 7;

/// The accesses of a probe, generated on demand.
#[derive(Clone)]
pub(crate) struct Probing {
    random: Random,
    probes: u64,
    probe: u64,
    ops: [Op; OPS],
    at: usize,
    /// Interval of probes that write their row; 0 for never.
    updates: u64,
    /// Addresses of its own input and output.
    own: u64,
}

impl Probing {
    /// `probes` probes by a thread.
    pub(crate) fn new(probes: u64, thread: u64, updates: u64) -> Self {
        let ops = [Op::Compute { uops: 1 }; OPS];
        let random = Random::of(7 + thread);
        Self { random, probes, probe: 0, ops, at: OPS, updates, own: thread << 28 }
    }

    fn probe(&mut self) -> [Op; OPS] {
        let mut place = |part: u64, bytes: u64| {
            let at = self.random.below((PART / bytes) as u32);
            TABLE + part * PART + u64::from(at) * bytes
        };
        let after = Dependence::Load;
        let row = place(2, 32);
        let found = match self.updates > 0 && self.probe.is_multiple_of(self.updates) {
            true => Op::Store { address: row, bytes: 16 },
            false => Op::Load { address: row, bytes: 16, after },
        };
        [
            Op::Load {
                address: INPUT + self.own + self.probe * 16,
                bytes: 16,
                after: Dependence::None,
            },
            Op::Compute { uops: 4 },
            Op::Load { address: place(0, 8), bytes: 8, after },
            Op::Load { address: place(1, 16), bytes: 16, after },
            found,
            Op::Compute { uops: 2 },
            Op::Store { address: OUTPUT + self.own + self.probe * 24, bytes: 24 },
        ]
    }
}

impl Iterator for Probing {
    type Item = Op;

    #[inline]
    fn next(&mut self) -> Option<Op> {
        if self.at == OPS {
            if self.probe == self.probes {
                return None;
            }
            self.ops = self.probe();
            self.probe += 1;
            self.at = 0;
        }
        self.at += 1;
        Some(self.ops[self.at - 1])
    }
}

/// Records of its trace.
pub(crate) fn records(probes: u64) -> impl Iterator<Item = Record> {
    Probing::new(probes, 0, 0).filter_map(|op| {
        let (kind, address, bytes) = match op {
            Op::Load { address, bytes, .. } => (Kind::Load, address, bytes),
            Op::Store { address, bytes } => (Kind::Store, address, bytes),
            _ => return None,
        };
        Some(Record { thread: 0, kind, address, bytes, instructions: 0 })
    })
}

/// The same accesses, executed on this machine.
pub(crate) fn really(probes: usize) -> u64 {
    let part = PART as usize;
    let table = [vec![0_u64; part / 8], vec![0_u64; part / 8], vec![0_u64; part / 8]];
    let input = vec![[0_u64; 2]; probes];
    let mut output = vec![[0_u64; 3]; probes];
    let mut random = Random::of(7);
    for (row, joined) in input.iter().zip(&mut output) {
        let mut place = |words: usize| random.below((part / 8 / words) as u32) as usize * words;
        let bucket = black_box(table[0][place(1)] + row[0]) as usize;
        let cell = black_box(table[1][place(2) + bucket]) as usize;
        let found = black_box(table[2][place(4) + cell]);
        *joined = black_box([row[0], row[1], found]);
    }
    output.iter().step_by(1024).map(|joined| joined[2]).sum()
}
