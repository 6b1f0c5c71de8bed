//! The hash join's probe itself: the walk of the operators, modelled or really done.

use std::sync::atomic::AtomicBool;

use workahead_machine::pages::{PageBuffer, Pages};
use workahead_simulator::preset::Preset;
use workahead_simulator::walks::{
    BatchLayout, BatchSink, CoRunners, Main, WalkThread, WalksResult, run_walks,
};
use workahead_walks::chained::{Chains, HashJoin};
use workahead_walks::memory::{Direct, Memory};
use workahead_walks::random::Random;
use workahead_walks::record::{Record, Unclustered, drawn_table};
use workahead_walks::technique::{self, Technique};
use workahead_walks::walk::{Row, Rows, Sink};

/// Rows of either side: 4 MB each of records, a modelled L2 several times over.
const ROWS: u32 = 1 << 16;

/// Both sides, the table, and the rows that probe it.
pub(crate) struct Join {
    build: PageBuffer<Record>,
    probe: PageBuffer<Record>,
    chains: Chains,
    rids: PageBuffer<u32>,
}

/// How many hits there were: what they are is proved elsewhere.
#[derive(Debug, Clone, Copy, Default)]
struct Hits(u64);

impl Sink<(&Record, &Record)> for Hits {
    fn emit(&mut self, _: Row, _: (&Record, &Record)) {
        self.0 += 1;
    }
}

impl Join {
    /// A join with `probes` probes in random order.
    pub(crate) fn new(probes: u32) -> Self {
        let mut random = Random::of(1);
        let mut side =
            || drawn_table(ROWS, ROWS, &mut random, Pages::Small).expect("memory for a side");
        let (build, probe) = (side(), side());
        let keys = build.iter().map(|record| record.key);
        let chains = Chains::build(keys, Pages::Small).expect("memory for the table");
        let rids: Vec<u32> = (0..probes).map(|_| random.below(ROWS)).collect();
        let rids = PageBuffer::copied(&rids, Pages::Small).expect("memory for row ids");
        Self { build, probe, chains, rids }
    }

    fn run<M: Memory, S>(&self, rows: &mut Rows, memory: &mut M, sink: &mut S)
    where
        S: for<'a> Sink<(&'a Record, &'a Record)>,
    {
        let probes = Unclustered { records: &self.probe, rids: &self.rids, row_stage: true };
        let mut walk = HashJoin::new(&self.chains, &self.build, probes);
        technique::run_over(Technique::Sequential, &mut walk, rows, memory, sink);
    }

    /// On a modelled machine, with one thread per CPU and rows dealt out in turn.
    pub(crate) fn modelled(&self, preset: &Preset, threads: usize) -> WalksResult {
        let mains: Vec<Main> = (0..threads).map(|cpu| Main { cpu, helper: None }).collect();
        let stop = AtomicBool::new(false);
        let walked = run_walks(preset, &mains, CoRunners::None, &stop, &|part, mut recorder| {
            let (WalkThread::Main(main) | WalkThread::DirectHelper(main)) = part;
            let rows = &mut Rows::strided(main as u32, self.rids.len() as u32, threads as u32);
            let address = 0x10_0000 * (main + 1);
            let output = BatchLayout { address, row_bytes: 128, rows: 1024 };
            let mut sink = BatchSink::new(Hits::default(), recorder.clone(), output);
            self.run(rows, &mut recorder, &mut sink);
        });
        walked.expect("a machine with these CPUs")
    }

    /// On this machine; returns the hits.
    pub(crate) fn really(&self) -> u64 {
        let mut hits = Hits::default();
        self.run(&mut Rows::range(0..self.rids.len() as u32), &mut Direct, &mut hits);
        hits.0
    }
}
