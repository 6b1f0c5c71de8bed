//! Builds the recordings below `recordings/`: machines that are not available here, counted by the
//! path that counts a real one, over a source that answers from rates written by hand.
//!
//! `cargo run -p workahead-counters --example construct` writes them anew; a test builds them
//! again and compares.

use std::collections::BTreeMap;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use workahead_counters::counter::{Choice, Counter};
use workahead_counters::event::{Event, Privilege};
use workahead_counters::mock::{Mock, Virtual};
use workahead_counters::rotation::{Pace, Rotation};
use workahead_counters::source::{CountError, Counting, Reading, Source, Target};
use workahead_counters::stream::{Header, Slot, Stream};
use workahead_counters::table::Table;
use workahead_counters::target;
use workahead_machine::Machine;

use super::events::{self, Events};
use super::sides::{Side, normal};

const CONSTRUCTED: &str = "built by hand from the documentation of the events and from rates like \
    those that Keeton et al. (1998) and others print; no such machine was counted";

/// A machine to construct.
pub(crate) struct Model {
    /// The file's name, less `.jsonl`.
    pub(crate) file: &'static str,
    pub(crate) table: &'static str,
    machine: &'static str,
    pub(crate) cores: &'static [&'static [u32]],
    /// The clock while running.
    hz: f64,
    /// Cycles for each instruction, beside those of the list.
    pub(crate) slower: f64,
    rounds: usize,
    /// Events that its kernel does not know.
    pub(crate) lacks: &'static [&'static str],
    /// Seed of the order and of the noise.
    pub(crate) seed: u64,
}

pub(crate) const MODELS: [Model; 3] = [
    Model {
        file: "intel-skylake-sp",
        table: "intel/skylake-sp",
        machine: "a Skylake-SP, constructed",
        cores: &[&[0, 32], &[1, 33]],
        hz: 2.7e9,
        slower: 1.10,
        rounds: 5,
        lacks: &["LONGEST_LAT_CACHE.MISS", "LONGEST_LAT_CACHE.REFERENCE"],
        seed: 1,
    },
    Model {
        file: "intel-sapphire-rapids",
        table: "intel/sapphire-rapids",
        machine: "a Sapphire Rapids, constructed",
        cores: &[&[0], &[1], &[2], &[3]],
        hz: 3.0e9,
        slower: 1.0,
        rounds: 6,
        lacks: &[],
        seed: 2,
    },
    Model {
        file: "amd-zen4",
        table: "amd/zen4",
        machine: "a Zen 4, constructed",
        cores: &[&[0, 1], &[2, 3]],
        hz: 3.5e9,
        slower: 0.92,
        rounds: 6,
        lacks: &[],
        seed: 3,
    },
];

/// Of the time on a CPU, what is the database's (Keeton et al., section 3.1: 76 to 80 %).
pub(crate) const USER_TIME: f64 = 0.78;

/// How much of the time somebody runs.
const BUSY: f64 = 0.97;

/// Every nth opening loses its counters to another program for a while.
const DISTURBED: usize = 157;

const SLOT_S: f64 = 1.0;

impl Model {
    pub(crate) fn cpus(&self) -> Vec<u32> {
        self.cores.iter().flat_map(|core| core.iter().copied()).collect()
    }

    /// How often its events happen, per instruction.
    pub(crate) fn events(&self, side: &Side) -> Events {
        match self.table {
            "amd/zen4" => events::zen4(side),
            _ => events::intel(side, 6.0),
        }
    }

    /// How many slots it takes for whole rounds.
    fn window_s(&self, groups: usize) -> f64 {
        SLOT_S * (groups * self.rounds) as f64
    }

    fn header(&self) -> Header {
        let table = Table::named(self.table).expect("one of the tables");
        let knows = |event: &&Event| !self.lacks.contains(&event.name.as_str());
        let known: Vec<(&str, f64)> =
            table.events().filter(knows).map(|event| (event.name.as_str(), 1.0)).collect();
        let choice = Choice {
            metrics: vec!["all".to_owned()],
            privileges: vec![Privilege::User, Privilege::Kernel],
            slot_s: SLOT_S,
            seed: self.seed,
            spare: 0,
        };
        let mut mock = Mock::new(&known, &Virtual::until(1.0));
        let counter = Counter::prepare(&choice, Some(table), &mut mock, &Machine::here());
        let mut left_out = counter.header().left_out.clone();
        for left in left_out.iter_mut().filter(|left| self.lacks.contains(&left.event.as_str())) {
            left.why = "the kernel of this machine does not know the event".to_owned();
        }
        Header {
            machine: self.machine.to_owned(),
            cores: self.cores.iter().map(|core| core.to_vec()).collect(),
            target: "a database server under on-line transactions".to_owned(),
            constructed: Some(CONSTRUCTED.to_owned()),
            left_out,
            ..counter.header().clone()
        }
    }

    /// The recording.
    pub(crate) fn recording(&self) -> Stream {
        let header = self.header();
        let groups = header.groups.clone();
        let mut clock = Virtual::until(self.window_s(groups.len()));
        let rotation = Rotation { groups, slot_s: SLOT_S, seed: self.seed };
        let mut source = ModelSource { model: self, clock: clock.clone(), opened: 0 };
        let mut targets = target::Machine { cpus: self.cpus() };
        let mut slots: Vec<Slot> = Vec::new();
        let mut keep = |slot| slots.push(slot);
        let ended = rotation.run(0, &mut source, &mut targets, &mut clock, &mut keep);
        assert_eq!(ended, None);
        Stream { header, slots }
    }

    /// As it stands in the file.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.recording().write(&mut bytes).expect("memory takes everything");
        bytes
    }
}

/// Answers what the model's machine would.
struct ModelSource<'a> {
    model: &'a Model,
    clock: Virtual,
    opened: usize,
}

impl Source for ModelSource<'_> {
    fn open(
        &mut self,
        group: &[Event],
        privilege: Privilege,
        target: &Target,
    ) -> Result<Box<dyn Counting>, CountError> {
        let mut random = ChaCha8Rng::seed_from_u64(self.model.seed);
        random.set_stream(self.opened as u64);
        self.opened += 1;
        let cpu = target.cpu().unwrap_or(0);
        let per_s = match privilege {
            Privilege::Both => system(&mut random),
            _ => self.model.per_s(privilege == Privilege::Kernel, cpu, &mut random),
        };
        let of = |event: &Event| {
            *per_s.get(&event.name).unwrap_or_else(|| panic!("{} has no rate", event.name))
        };
        let per_s = group.iter().map(of).collect();
        let running = if self.opened.is_multiple_of(DISTURBED) { 0.6 } else { 1.0 };
        let clock = self.clock.clone();
        Ok(Box::new(ModelCounting { per_s, running, clock, begun_s: 0.0 }))
    }
}

impl Model {
    /// Counts in a second of one side on one CPU.
    fn per_s(&self, kernel: bool, cpu: u32, random: &mut ChaCha8Rng) -> BTreeMap<String, f64> {
        let mut side = Side::scattered(kernel, random);
        side.scale("cpi", self.slower);
        // The first CPU of a core takes the interrupts: a little more of one, less of the other.
        let first = self.cores.iter().position(|core| core[0] == cpu).is_some_and(|at| at % 2 == 0);
        side.scale("l1d", if first { 1.02 } else { 0.98 });
        let share = if kernel { 1.0 - USER_TIME } else { USER_TIME };
        let cycles = BUSY * share * self.hz * (1.0 + 0.02 * normal(random));
        let instructions = cycles / side.of("cpi");
        let per_s = |(name, rate): (String, f64)| (name, rate * instructions);
        self.events(&side).into_iter().map(per_s).collect()
    }
}

/// The counts that the kernel keeps itself.
fn system(random: &mut ChaCha8Rng) -> BTreeMap<String, f64> {
    let per_s = [
        ("task_clock", BUSY * 1e9),
        ("cpu_clock", 1e9),
        ("page_faults", 210.0),
        ("minor_faults", 208.0),
        ("major_faults", 2.0),
        ("context_switches", 5200.0),
        ("cpu_migrations", 31.0),
    ];
    per_s.map(|(name, rate)| (name.to_owned(), rate * (1.0 + 0.03 * normal(random)))).into()
}

struct ModelCounting {
    per_s: Vec<f64>,
    running: f64,
    clock: Virtual,
    begun_s: f64,
}

impl Counting for ModelCounting {
    fn begin(&mut self) -> Result<(), CountError> {
        self.begun_s = self.clock.now_s();
        Ok(())
    }

    fn end(&mut self) -> Result<Reading, CountError> {
        let seconds = self.clock.now_s() - self.begun_s;
        let count = |per_s: &f64| (per_s * seconds * self.running).round() as u64;
        Ok(Reading {
            enabled_ns: (seconds * 1e9).round() as u64,
            running_ns: (seconds * self.running * 1e9).round() as u64,
            values: self.per_s.iter().map(count).collect(),
        })
    }
}
