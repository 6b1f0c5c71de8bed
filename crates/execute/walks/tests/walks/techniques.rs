//! Every technique that can be written, and what a walk finds under it.

use std::fmt::Debug;

use workahead_machine::cpus::CpuSet;
use workahead_machine::pin;
use workahead_walks::isa::Isa;
use workahead_walks::technique::{Driver, run};
use workahead_walks::work_ahead::{Placement, Preloadable};
use workahead_walks::{Pause, Row, Rows, Sink, Technique, Walk};

const WIDTHS: [usize; 5] = [1, 2, 7, 64, 1024];

/// Techniques of the calling thread alone, by what a width is written in place of.
const ALONE: [&str; 9] = [
    "staged:width=",
    "group:width=",
    "amac:hint=l1,width=",
    "amac:hint=l2,width=",
    "rounds:hint=none,width=",
    "rounds:hint=l1,width=",
    "distance:hint=l1,rows=",
    "distance:hint=l2,rows=",
    "coroutine:width=",
];

/// Every technique without a set and without a helper.
pub(crate) fn alone() -> Vec<String> {
    let sized = ALONE.iter().flat_map(|name| WIDTHS.map(|width| format!("{name}{width}")));
    ["sequential".to_owned()].into_iter().chain(sized).collect()
}

/// Every technique with a set or a helper: a few hundred.
pub(crate) fn ahead() -> Vec<String> {
    let mut all = Vec::new();
    for size in WIDTHS {
        all.push(format!("direct-helper:size={size}"));
        for guard in ["none", "mutex"] {
            for dedupe in ["none", "post", "helper"] {
                let set = format!("work-ahead:size={size},guard={guard},dedupe={dedupe}");
                all.push(format!("{set},helper=off"));
                for direction in ["forward", "backward"] {
                    for wait in ["none", "spin", "spin,pauses=50", "sleep"] {
                        all.push(format!("{set},direction={direction},wait={wait}"));
                    }
                }
            }
        }
    }
    all
}

/// A sink that pauses the drive after a number of hits.
struct Pausing<H> {
    hits: Vec<(Row, H)>,
    full_at: usize,
}

impl<H> Sink<H> for Pausing<H> {
    fn emit(&mut self, row: Row, hit: H) {
        self.hits.push((row, hit));
    }
    fn is_full(&self) -> bool {
        self.hits.len() >= self.full_at
    }
}

/// The expected hits of a walk, how they are compared, and under which techniques.
pub(crate) struct Trial<'t, T, V> {
    pub(crate) techniques: &'t [String],
    /// Hits between two pauses of the techniques that can be paused.
    pub(crate) room: usize,
    pub(crate) expected: Vec<(Row, T)>,
    pub(crate) value: V,
}

impl<T: Ord + Debug, V> Trial<'_, T, V> {
    /// Runs the walk under every technique, inside an instruction set.
    pub(crate) fn hold<W>(&mut self, isa: impl Isa, walk: &W, rows: usize)
    where
        W: Preloadable + Clone + Send,
        V: Fn(W::Hit) -> T,
    {
        self.expected.sort();
        let rows = Rows::range(0..rows as Row);
        for name in self.techniques {
            let technique: Technique = name.parse().unwrap();
            self.judge(name, technique, run_whole(technique, isa, walk, rows));
            if let Some(driver) = Driver::of(technique) {
                self.judge(name, technique, self.run_paused(driver, isa, (walk, rows)));
            }
        }
    }

    fn run_paused<W: Walk + Clone>(
        &self,
        mut driver: Driver<W>,
        isa: impl Isa,
        (walk, mut rows): (&W, Rows),
    ) -> Vec<(Row, W::Hit)> {
        let mut walk = walk.clone();
        let mut sink = Pausing { hits: Vec::new(), full_at: self.room };
        while driver.drive(isa, &mut walk, &mut rows, &mut sink) == Pause::Full {
            assert!(sink.is_full(), "paused with room left");
            sink.full_at = sink.hits.len() + self.room;
        }
        sink.hits
    }

    fn judge<H>(&self, name: &str, technique: Technique, hits: Vec<(Row, H)>)
    where
        V: Fn(H) -> T,
    {
        let in_order = matches!(
            technique,
            Technique::Sequential | Technique::Distance { .. } | Technique::DirectHelper { .. }
        );
        assert!(!in_order || hits.is_sorted_by_key(|hit| hit.0), "{name}: not in row order");
        let mut found: Vec<(Row, T)> =
            hits.into_iter().map(|(row, hit)| (row, (self.value)(hit))).collect();
        found.sort();
        let wrong = found.iter().zip(&self.expected).find(|(found, hit)| found != hit);
        assert!(wrong.is_none(), "{name}: {wrong:?}");
        assert_eq!(found.len(), self.expected.len(), "{name}");
    }
}

fn run_whole<W: Preloadable + Clone + Send>(
    technique: Technique,
    isa: impl Isa,
    walk: &W,
    mut rows: Rows,
) -> Vec<(Row, W::Hit)> {
    let allowed: CpuSet = pin::affinity().unwrap();
    let helper_cpu = allowed.iter().last().unwrap();
    let placement = Placement { helper_cpu, allowed: &allowed };
    let mut walk = walk.clone();
    let mut sink = Pausing { hits: Vec::new(), full_at: usize::MAX };
    let served = run(technique, isa, &mut walk, &mut rows, placement, &mut sink).unwrap();
    assert_eq!(served.is_some(), technique.has_helper(), "{technique}: what the helper did");
    assert_eq!(rows.left(), 0, "{technique}: rows left");
    sink.hits
}

#[test]
fn all_that_is_listed_can_be_read() {
    let (alone, ahead) = (alone(), ahead());
    assert_eq!((alone.len(), ahead.len()), (46, 275));
    for name in alone {
        assert!(!name.parse::<Technique>().unwrap().has_helper());
    }
    let helped = ahead.iter().filter(|name| name.parse::<Technique>().unwrap().has_helper());
    assert_eq!(helped.count(), 245);
}
