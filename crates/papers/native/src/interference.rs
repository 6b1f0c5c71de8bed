//! Measures the speeds in the paper's model of main thread and helper, and the model's prediction
//! from them (Zhou et al., §4.3; the paper left them uncalibrated).
//!
//! A hash join over a table of a few lines: only the set's own lines are waited for.
//!
//! | speed | who runs |
//! |---|---|
//! | `m` | the main thread, posting without a helper |
//! | `h` | the helper, over unchanging slots: the main thread sleeps |
//! | `m'`, `h'` | both, over a set of one cache line: they always meet |
//! | observed | both, over the set of the cell |
//!
//! All in cache lines of the set a second, of which each has room for eight pointers.

use std::ops::Range;
use std::time::Duration;

use crate::speed_model::Speeds;
use workahead_engines::configuration::CellConfiguration;
use workahead_machine::clock::Moment;
use workahead_machine::pages::Pages;
use workahead_study::engine::{Answer, EngineError};
use workahead_walks::chained::{Chains, HashJoin};
use workahead_walks::isa::Portable;
use workahead_walks::memory::Direct;
use workahead_walks::place::LINE_BYTES;
use workahead_walks::record::{Clustered, Record};
use workahead_walks::technique::Technique;
use workahead_walks::walk::{Row, Rows, Sink, Walk};
use workahead_walks::work_ahead::{self, Direction, Options, Wait};

use crate::execution::{Execution, Threads};
use crate::operator::{Operator, Touch};
use crate::run::RunResult;
use crate::size;
use crate::worker_group::WorkerGroup;

/// Rows of the build side: 256 lines of rows, and a few of table.
const BUILD_ROWS: usize = 256;
/// Pointers in a cache line of the set.
const POINTERS_PER_LINE: usize = LINE_BYTES / size_of::<usize>();
/// Sleep of the main thread while the helper is measured.
const ALONE: Duration = Duration::from_millis(20);
/// Repetitions: on a busy machine the helper may not run during the sleep.
const TURNS: usize = 50;

/// The data of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Shape {
    probe_rows: usize,
    pages: Pages,
}

impl Shape {
    pub(crate) fn read(config: &CellConfiguration<'_>) -> Result<Self, EngineError> {
        let probe_rows = config.number("probe_rows", 1 << 20, 1 << 10..=1 << 30)?;
        Ok(Self { probe_rows, pages: size::pages(config)? })
    }

    pub(crate) fn bytes(&self) -> u64 {
        (self.probe_rows * size_of::<Record>()) as u64
    }

    pub(crate) fn make(&self) -> Result<Box<dyn Operator<WorkerGroup>>, EngineError> {
        let key = |row: u32| row % BUILD_ROWS as u32;
        let records = |rows: usize| (0..rows as u32).map(|row| record(key(row), row)).collect();
        let build: Vec<Record> = records(BUILD_ROWS);
        let chains = Chains::build(build.iter().map(|record| record.key), self.pages);
        let probe: Vec<Record> = records(self.probe_rows);
        let mut table = Table {
            shape: *self,
            build,
            probe,
            chains: chains.map_err(EngineError::failed)?,
            posts: 0,
        };
        table.posts = table.count_posts();
        Ok(Box::new(table))
    }
}

fn record(key: u32, row: u32) -> Record {
    Record::new(key, row, row)
}

/// The data of a cell.
struct Table {
    shape: Shape,
    build: Vec<Record>,
    probe: Vec<Record>,
    chains: Chains,
    /// Number of posts of the whole walk.
    posts: u64,
}

/// Counts hits; sleeps at the first one if requested.
struct Tally {
    rows: u64,
    sleep: Option<Duration>,
}

impl<H> Sink<H> for Tally {
    #[inline(always)]
    fn emit(&mut self, _: Row, _: H) {
        if let Some(sleep) = self.sleep.take() {
            std::thread::sleep(sleep);
        }
        self.rows += 1;
    }
}

/// Speeds of a run, in lines of the set per second.
struct RunSpeeds {
    main: f64,
    helper: f64,
    wall_s: f64,
    cpu_s: f64,
    rows: u64,
}

impl Table {
    fn walk(&self) -> HashJoin<'_, Clustered<'_>> {
        HashJoin::new(&self.chains, &self.build, Clustered(&self.probe))
    }

    fn count_posts(&self) -> u64 {
        let (mut walk, mut tally) = (self.walk(), Tally { rows: 0, sleep: None });
        let mut posts = 0;
        for row in 0..self.probe.len() as Row {
            let (mut cursor, _) = walk.start(row, &mut Direct);
            posts += 1;
            while walk.step(&mut cursor, &mut Direct, &mut tally).is_some() {
                posts += 1;
            }
        }
        posts
    }

    fn run_set(
        &self,
        options: Options,
        group: &WorkerGroup,
        rows: usize,
        sleep: Option<Duration>,
    ) -> Result<RunSpeeds, EngineError> {
        let (mut walk, mut tally) = (self.walk(), Tally { rows: 0, sleep });
        let mut rows = Rows::range(0..rows as Row);
        let _pinned = group.pin()?;
        let start = Moment::now();
        let (isa, placement) = (Portable, group.beside(group.second()));
        let served = work_ahead::run(isa, &mut walk, &mut rows, options, placement, &mut tally)
            .map_err(EngineError::failed)?;
        let elapsed = start.elapsed();
        let posts = self.posts as f64 * tally.rows as f64 / self.probe.len() as f64;
        let lines = |pointers: f64, seconds: f64| pointers / POINTERS_PER_LINE as f64 / seconds;
        let helper = served.map(|served| {
            (
                lines(served.report.entries_loaded as f64, served.elapsed.wall_s),
                served.elapsed.cpu_s,
            )
        });
        Ok(RunSpeeds {
            main: lines(posts, elapsed.wall_s),
            helper: helper.map_or(0.0, |helper| helper.0),
            wall_s: elapsed.wall_s,
            cpu_s: elapsed.cpu_s + helper.map_or(0.0, |helper| helper.1),
            rows: tally.rows,
        })
    }

    /// The four speeds of the model.
    fn speeds(&self, options: Options, group: &WorkerGroup) -> Result<Speeds, EngineError> {
        let rows = self.probe.len();
        // The model's helper always loads; one that waits for a change has no speed of its own.
        let helper = options.helper.map(|helper| work_ahead::Helper { wait: Wait::None, ..helper });
        let free = Options { helper, ..options };
        let one_line = Options { size: POINTERS_PER_LINE, ..free };
        let main = self.run_set(Options { helper: None, ..free }, group, rows, None)?.main;
        let mut helper = 0.0;
        for _ in 0..TURNS {
            helper = self.run_set(free, group, 1, Some(ALONE))?.helper;
            if helper > 0.0 {
                break;
            }
        }
        let meeting = self.run_set(one_line, group, rows, None)?;
        Ok(Speeds { main, main_meeting: meeting.main, helper, helper_meeting: meeting.helper })
    }
}

impl Operator<WorkerGroup> for Table {
    fn prepare(&mut self, _: &Execution, _: &WorkerGroup) -> Result<(), EngineError> {
        Ok(())
    }

    fn probes(&self) -> usize {
        self.shape.probe_rows
    }

    fn answer(&self, rows: usize) -> Answer {
        // Keys are unique: every probe finds its row.
        Answer { rows: rows as u64, checksum: 0 }
    }

    fn table_bytes(&self) -> usize {
        self.chains.bytes() + self.build.len() * size_of::<Record>()
    }

    fn touches(&self) -> Vec<Touch> {
        Vec::new()
    }

    fn pages(&self) -> Pages {
        self.shape.pages
    }

    fn run(
        &mut self,
        execution: &Execution,
        group: &WorkerGroup,
        rows: Range<usize>,
    ) -> Result<RunResult, EngineError> {
        let (Technique::WorkAhead(options), Threads::One) =
            (execution.technique, execution.threads)
        else {
            return Err(EngineError::failed(
                "interference is between a main thread and its helper: write \
                 `technique = \"work-ahead\"` and no `threads`",
            ));
        };
        let Some(helper) = options.helper else {
            return Err(EngineError::failed("interference needs a helper: leave out `helper=off`"));
        };
        let speeds = self.speeds(options, group)?;
        let seen = self.run_set(options, group, rows.end, None)?;
        let lines = options.size.div_ceil(POINTERS_PER_LINE);
        let predicted = match helper.direction {
            Direction::Forward => speeds.forward(lines),
            Direction::Backward => speeds.backward(lines),
        };
        let mut measures = vec![
            ("m_mlines_per_s", speeds.main / 1e6),
            ("m_meeting_mlines_per_s", speeds.main_meeting / 1e6),
            ("h_mlines_per_s", speeds.helper / 1e6),
            ("h_meeting_mlines_per_s", speeds.helper_meeting / 1e6),
            ("observed_mlines_per_s", seen.main / 1e6),
        ];
        // Outside of its domain, the model makes no prediction.
        if let Ok(predicted) = predicted {
            measures.push(("modelled_mlines_per_s", predicted / 1e6));
            measures.push(("observed_per_modelled", seen.main / predicted));
        }
        let answer = Answer { rows: seen.rows, checksum: 0 };
        let RunSpeeds { wall_s, cpu_s, .. } = seen;
        Ok(RunResult { wall_s, cpu_s, probed: rows.len(), answer, measures })
    }
}
