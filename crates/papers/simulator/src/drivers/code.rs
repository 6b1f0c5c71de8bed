//! A synthetic code footprint: the fetches, micro-operations, accesses and branches of an engine.
//!
//! ```text
//!   text   [function]   [function]      [function]   …     each at its place, the same in all runs
//!           block block block               a call goes through its blocks, in a loop if it is
//!             └ fetch, micro-operations,     longer than its code
//!               accesses, a branch
//! ```
//!
//! Independent of the machine. Instructions per call, bytes of code, and the shares of loads,
//! stores and branches are figures of an engine with their source; misses and their cost are the
//! model's. Loads and stores that a step doesn't name go to the thread's own few kilobytes: its
//! stack and the state of its operators.

use workahead_walks::random::Random;

use crate::op::{Dependence, Op};

/// Bytes per instruction: a default, the mean of IA-32 code is between 3 and 4.
pub const INSTRUCTION_BYTES: f64 = 3.5;

/// Address of an engine's code: far from all data.
const TEXT: u64 = 1 << 44;

/// A function.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Function {
    /// Its name, or the name of the code that it stands for.
    pub name: &'static str,
    /// Instructions per call.
    pub instructions: u32,
    /// Bytes of code executed by a call.
    pub bytes: u32,
}

/// The instruction mix of an engine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mix {
    /// Share of instructions that read memory.
    pub loads: f64,
    /// Share that write memory.
    pub stores: f64,
    /// Share that branch.
    pub branches: f64,
    /// Micro-operations per instruction.
    pub uops_per_instruction: f64,
    /// Share of branches with data-dependent, unpredictable outcomes.
    pub unpredictable: f64,
}

/// An engine's code.
#[derive(Debug, Clone, PartialEq)]
pub struct Footprint {
    /// Description and source of its figures, in a line.
    pub origin: &'static str,
    /// Its functions.
    pub functions: &'static [Function],
    /// Its instruction mix.
    pub mix: Mix,
    /// Bytes of text over which the functions are spread evenly.
    pub text_bytes: u64,
    /// Bytes of a thread's stack and operator state, reused all the time.
    pub own_bytes: u64,
}

impl Footprint {
    /// Bytes of code of all functions.
    #[must_use]
    pub fn code_bytes(&self) -> u64 {
        self.functions.iter().map(|function| u64::from(function.bytes)).sum()
    }

    /// Micro-operations of 1,024 bytes of code.
    fn density(&self) -> u16 {
        (self.mix.uops_per_instruction / INSTRUCTION_BYTES * 1024.0).round() as u16
    }

    /// Address of a function's code.
    fn place(&self, function: usize) -> u64 {
        let gap = self.text_bytes.saturating_sub(self.code_bytes()) / self.functions.len() as u64;
        let before = self.functions[..function].iter();
        let before: u64 = before.map(|function| u64::from(function.bytes) + gap).sum();
        TEXT + before / 16 * 16
    }
}

/// Basic blocks of code, of equal length.
#[derive(Debug, Clone, Copy)]
struct Blocks {
    instructions: f64,
}

impl Blocks {
    fn of(branches: f64) -> Self {
        // Code without branches has blocks of a hundred instructions.
        Self { instructions: 1.0 / branches.clamp(0.01, 1.0) }
    }

    fn before(self, slot: u32) -> f64 {
        (f64::from(slot) * self.instructions).floor()
    }

    fn length(self, slot: u32) -> u32 {
        (self.before(slot + 1) - self.before(slot)) as u32
    }

    fn bytes_before(self, slot: u32) -> u64 {
        (self.before(slot) * INSTRUCTION_BYTES) as u64
    }

    /// Blocks in `bytes` of code.
    fn within(self, bytes: u32) -> u32 {
        (f64::from(bytes) / (self.instructions * INSTRUCTION_BYTES)).round().max(1.0) as u32
    }
}

/// A thread that executes a footprint.
#[derive(Debug, Clone)]
pub struct Execution<'f> {
    footprint: &'f Footprint,
    places: Vec<u64>,
    /// Address of its own bytes.
    own: u64,
    /// Outcomes of unpredictable branches.
    random: Random,
    /// Fractions of loads, stores and micro-operations carried over, in instructions.
    left: [f64; 3],
    instructions: u64,
}

impl<'f> Execution<'f> {
    /// A thread with own bytes at `own`.
    #[must_use]
    pub fn new(footprint: &'f Footprint, own: u64, seed: u64) -> Self {
        let places = (0..footprint.functions.len()).map(|at| footprint.place(at)).collect();
        Self { footprint, places, own, random: Random::of(seed), left: [0.0; 3], instructions: 0 }
    }

    /// Instructions so far.
    #[must_use]
    pub fn instructions(&self) -> u64 {
        self.instructions
    }

    /// Calls a function and appends its operations to `ops`, with `data` spread evenly among them.
    ///
    /// # Panics
    /// If the footprint has no such function.
    pub fn call(&mut self, function: usize, data: &[Op], ops: &mut Vec<Op>) {
        let Function { instructions, bytes, .. } = self.footprint.functions[function];
        let blocks = Blocks::of(self.footprint.mix.branches);
        let around = blocks.within(bytes);
        let begin = self.places[function];
        let density = self.footprint.density();
        let (mut number, mut executed, mut done) = (0, 0, 0);
        while executed < instructions {
            let slot = number % around;
            let here = blocks.length(slot).min(instructions - executed);
            executed += here;
            let (from, until) = (blocks.bytes_before(slot), blocks.bytes_before(slot + 1));
            let at = begin + from;
            ops.push(Op::Fetch { address: at, bytes: (until - from) as u16, density });
            let due = data.len() * executed as usize / instructions as usize;
            self.block(at, here, &data[done..due], ops);
            done = due;
            let back = slot + 1 == around && executed < instructions;
            let last = begin + until - 2;
            let taken = back || self.taken(last);
            ops.push(Op::Branch { at: last, taken, back });
            number += 1;
        }
        self.instructions += u64::from(instructions);
    }

    /// The operations of a block before its branch.
    fn block(&mut self, at: u64, instructions: u32, data: &[Op], ops: &mut Vec<Op>) {
        let mix = self.footprint.mix;
        let all = f64::from(instructions);
        let named = |is: fn(&Op) -> bool| data.iter().filter(|op| is(op)).count() as f64;
        let loads = named(|op| matches!(op, Op::Load { .. }));
        let stores = named(|op| matches!(op, Op::Store { .. }));
        self.left[0] += all * mix.loads - loads;
        self.left[1] += all * mix.stores - stores;
        // A branch is one micro-operation, as an access is.
        self.left[2] += all * mix.uops_per_instruction - loads - stores - 1.0;
        let [own_loads, own_stores] =
            [0, 1].map(|kind| self.left[kind].floor().clamp(0.0, 255.0) as u32);
        self.left[0] -= f64::from(own_loads);
        self.left[1] -= f64::from(own_stores);
        self.left[2] -= f64::from(own_loads + own_stores);
        let uops = self.left[2].floor().max(0.0);
        self.left[2] -= uops;
        if uops > 0.0 {
            ops.push(Op::Compute { uops: uops as u32 });
        }
        for access in 0..own_loads + own_stores {
            let address = self.own_address(at, access);
            ops.push(match access < own_loads {
                true => Op::Load { address, bytes: 4, after: Dependence::None },
                false => Op::Store { address, bytes: 4 },
            });
        }
        ops.extend_from_slice(data);
    }

    /// The address of an access to own bytes: the same for the same code.
    fn own_address(&self, at: u64, access: u32) -> u64 {
        let mixed = mixed(at ^ u64::from(access) << 32);
        self.own + mixed % self.footprint.own_bytes.max(8) / 8 * 8
    }

    /// Outcome of a branch: always the same unless it depends on data.
    fn taken(&mut self, at: u64) -> bool {
        let mixed = mixed(at);
        // Out of 2^16, so that the same branches depend on data on every machine.
        let depends = ((mixed >> 16 & 0xffff) as f64) < self.footprint.mix.unpredictable * 65536.0;
        match depends {
            true => self.random.number() & 1 == 1,
            false => mixed & 1 == 1,
        }
    }
}

/// Mixes bits (the finaliser of splitmix64).
const fn mixed(value: u64) -> u64 {
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    const FUNCTIONS: &[Function] = &[
        Function { name: "straight", instructions: 1000, bytes: 3500 },
        Function { name: "loop", instructions: 1000, bytes: 350 },
    ];

    fn footprint() -> Footprint {
        let mix = Mix {
            loads: 0.36,
            stores: 0.21,
            branches: 0.18,
            uops_per_instruction: 1.6,
            unpredictable: 0.1,
        };
        let origin = "for a test";
        Footprint { origin, functions: FUNCTIONS, mix, text_bytes: 1 << 20, own_bytes: 4096 }
    }

    fn uops(ops: &[Op]) -> u64 {
        let one = |op: &Op| match op {
            Op::Compute { uops } => u64::from(*uops),
            Op::Fetch { .. } => 0,
            _ => 1,
        };
        ops.iter().map(one).sum()
    }

    /// The executed mix is the given one, whatever accesses a step names.
    #[test]
    fn the_mix_is_kept() {
        let footprint = footprint();
        for named in [0, 40] {
            let mut execution = Execution::new(&footprint, 1 << 30, 1);
            let data = vec![Op::Load { address: 64, bytes: 8, after: Dependence::Load }; named];
            let mut ops = Vec::new();
            for _ in 0..100 {
                execution.call(0, &data, &mut ops);
            }
            let all = execution.instructions() as f64;
            assert_eq!(all, 100_000.0);
            let of = |is: fn(&Op) -> bool| ops.iter().filter(|op| is(op)).count() as f64 / all;
            let near = |share: f64, wanted: f64| (share - wanted).abs() < 0.01;
            assert!(near(of(|op| matches!(op, Op::Load { .. })), 0.36));
            assert!(near(of(|op| matches!(op, Op::Store { .. })), 0.21));
            assert!(near(of(|op| matches!(op, Op::Branch { .. })), 0.18));
            assert!(near(uops(&ops) as f64 / all, 1.6));
            let data_done = ops
                .iter()
                .filter(|op| **op == data[..].first().copied().unwrap_or(Op::Pause { cycles: 1 }));
            assert_eq!(data_done.count(), 100 * named);
        }
    }

    /// A call executes its own bytes of code and no others; one longer than its code loops.
    #[test]
    fn code_is_where_it_was_put() {
        let footprint = footprint();
        let mut execution = Execution::new(&footprint, 1 << 30, 1);
        let [mut straight, mut round] = [Vec::new(), Vec::new()];
        execution.call(0, &[], &mut straight);
        execution.call(1, &[], &mut round);
        let lines = |ops: &[Op]| {
            let lines = ops.iter().filter_map(|op| match op {
                Op::Fetch { address, bytes, .. } => Some((*address, address + u64::from(*bytes))),
                _ => None,
            });
            let (first, last): (Vec<u64>, Vec<u64>) = lines.unzip();
            (*first.iter().min().unwrap(), *last.iter().max().unwrap())
        };
        let (first, last) = lines(&straight);
        assert!(last - first >= 3450 && last - first <= 3520);
        let (again, end) = lines(&round);
        assert!(end - again >= 330 && end - again <= 370 && again > last);
        let back = |ops: &[Op]| {
            ops.iter().filter(|op| matches!(op, Op::Branch { back: true, .. })).count()
        };
        assert_eq!(back(&straight), 0);
        assert!((9..=11).contains(&back(&round)));
    }

    /// Two threads of a footprint differ only in what depends on data.
    #[test]
    fn only_data_tells_threads_apart() {
        let footprint = footprint();
        let ops = |seed| {
            let mut execution = Execution::new(&footprint, 1 << 30, seed);
            let mut ops = Vec::new();
            (0..20).for_each(|_| execution.call(0, &[], &mut ops));
            ops
        };
        assert_eq!(ops(1), ops(1));
        let (one, two) = (ops(1), ops(2));
        let differ = one.iter().zip(&two).filter(|(one, two)| one != two).count() as f64;
        let branches = one.iter().filter(|op| matches!(op, Op::Branch { .. })).count() as f64;
        // Half of the data-dependent ones, which are a tenth of all.
        assert!((0.02..0.09).contains(&(differ / branches)), "{}", differ / branches);
    }
}
