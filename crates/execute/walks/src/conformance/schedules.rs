//! Laws 2 and 5 under the schedules that there are: every one at every width, paused by sinks that
//! become full, and run again when there is nothing to do.

use super::{Law, RowHits, Violation};
use crate::memory::{Memory, Prefetching, ToL1, ToL2};
use crate::schedule::{Coroutines, Distance, Groups, InTurn, Lanes, Pause, Rounds, Schedule};
use crate::walk::{Row, Rows, Sink, Walk};

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

/// Whether hits come in the order of their rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RowOrder {
    Kept,
    Free,
}

/// Runs a walk under every schedule, each with every one of the widths and room for a given number
/// of hits; `judge` gets a name for messages, the walk, and the hits by row (those of one row stay
/// in the order they came).
pub(crate) fn each<W: Walk>(
    make: impl Fn() -> W,
    rows: Rows,
    (widths, room): (&[usize], usize),
    mut judge: impl FnMut(&str, W, RowHits<W>) -> Result<(), Violation>,
) -> Result<(), Violation> {
    let mut done = |drive: Drive, order: RowOrder, (walk, mut hits): DriveResult<W>| {
        if order == RowOrder::Kept && !hits.is_sorted_by_key(|hit| hit.0) {
            return Err(drive.broke(Law::AnySchedule, "the hits are not in row order"));
        }
        hits.sort_by_key(|hit| hit.0);
        judge(&drive.name, walk, hits)
    };
    let l1 = Prefetching::<ToL1>::default;
    let l2 = Prefetching::<ToL2>::default;
    let drive = Drive { name: format!("in turn, {}", pausing(room)), room, width: 1 };
    let driven = drive.run(InTurn::new(), make(), rows, l1())?;
    done(drive, RowOrder::Kept, driven)?;
    for &width in widths {
        let drive = |name: &str| {
            let name = format!("{name} {width}, {}", pausing(room));
            Drive { name, room, width }
        };
        let lanes = drive("lanes");
        let driven = lanes.run(Lanes::new(width), make(), rows, l1())?;
        done(lanes, RowOrder::Free, driven)?;
        let coroutines = drive("coroutines");
        let driven = coroutines.run(Coroutines::new(width), make(), rows, l1())?;
        done(coroutines, RowOrder::Free, driven)?;
        let groups = drive("groups");
        let driven = groups.run(Groups::new(width), make(), rows, l2())?;
        done(groups, RowOrder::Free, driven)?;
        let rounds = drive("rounds");
        let driven = rounds.run(Rounds::new(width), make(), rows, l1())?;
        done(rounds, RowOrder::Free, driven)?;
        // A row at a time is stepped, however many are announced: the overshoot is of one.
        let distance = Drive { width: 1, ..drive("distance") };
        let driven = distance.run(Distance::new(width), make(), rows, l2())?;
        done(distance, RowOrder::Kept, driven)?;
    }
    Ok(())
}

fn pausing(room: usize) -> String {
    if room == usize::MAX { "never full".into() } else { format!("full after {room} hits") }
}

/// A walk that was driven to its end, and its hits.
type DriveResult<W> = (W, RowHits<W>);

/// A drive by a schedule.
struct Drive {
    name: String,
    room: usize,
    /// Hits of one round at most.
    width: usize,
}

impl Drive {
    fn run<W: Walk, M: Memory>(
        &self,
        mut schedule: impl Schedule<W>,
        mut walk: W,
        mut rows: Rows,
        mut memory: M,
    ) -> Result<DriveResult<W>, Violation> {
        let mut sink = Pausing { hits: Vec::new(), full_at: self.room };
        loop {
            let pause = schedule.drive(&mut walk, &mut rows, &mut memory, &mut sink);
            let over = sink.hits.len().saturating_sub(sink.full_at);
            if over >= self.width {
                let what = format!("a full sink is given {over} hits more");
                return Err(self.broke(Law::OneHitAStep, &what));
            }
            match pause {
                Pause::Drained if rows.left() > 0 => {
                    return Err(self.broke(Law::AnySchedule, "it ends with rows left"));
                }
                Pause::Drained => break,
                Pause::Full if !sink.is_full() => {
                    return Err(self.broke(Law::AnySchedule, "it pauses for a sink with room"));
                }
                Pause::Full => {}
            }
            let before = sink.hits.len();
            let again = schedule.drive(&mut walk, &mut rows, &mut memory, &mut sink);
            if again != Pause::Full || sink.hits.len() != before {
                return Err(self.broke(Law::OneHitAStep, "it goes on while the sink is full"));
            }
            sink.full_at = before.saturating_add(self.room);
        }
        let before = sink.hits.len();
        sink.full_at = usize::MAX;
        let again = schedule.drive(&mut walk, &mut rows, &mut memory, &mut sink);
        if again != Pause::Drained || sink.hits.len() != before {
            return Err(self.broke(Law::AnySchedule, "it goes on after its end"));
        }
        Ok((walk, sink.hits))
    }

    fn broke(&self, law: Law, what: &str) -> Violation {
        Violation { law, drive: self.name.clone(), what: what.to_owned() }
    }
}
