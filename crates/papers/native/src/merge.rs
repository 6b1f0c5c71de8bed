//! The cost of merging and ordering the outputs of bi-threading.
//!
//! The paper does not charge it (Zhou et al., §3: "output format changed, order lost"). Here the
//! threads write whole outputs, with each row's position in the probe stream; then the outputs are
//! copied into one (*merge*), and into one in the order of the stream (*order*), both timed, on one
//! thread as a consumer would.

use std::sync::Mutex;

use bytemuck::Pod;
use workahead_machine::clock::Moment;
use workahead_machine::pages::{PageBuffer, Pages};
use workahead_study::engine::{Answer, EngineError};
use workahead_walks::isa::Isa;
use workahead_walks::materialise::Materialise;
use workahead_walks::walk::{Row, Sink};
use workahead_walks::work_ahead::Preloadable;

use crate::operator::Task;
use crate::run::RunResult;
use crate::worker_group::{ThreadResult, WorkerGroup};

/// A result with each row's position in the probe stream.
struct PositionedSink<'a, T> {
    rows: Materialise<'a, T>,
    positions: &'a mut [u32],
}

impl<H, T> Sink<H> for PositionedSink<'_, T>
where
    for<'o> Materialise<'o, T>: Sink<H>,
{
    #[inline(always)]
    fn emit(&mut self, row: Row, hit: H) {
        self.positions[self.rows.written()] = row;
        self.rows.emit(row, hit);
    }
}

/// A thread's whole output.
struct Output<T> {
    rows: PageBuffer<T>,
    positions: PageBuffer<u32>,
    written: usize,
}

impl<T: Pod> Output<T> {
    fn of(rows: usize) -> Result<Self, EngineError> {
        Ok(Self { rows: filled(rows)?, positions: filled(rows)?, written: 0 })
    }

    fn written(&self) -> (&[T], &[u32]) {
        (&self.rows[..self.written], &self.positions[..self.written])
    }
}

/// Prefaulted memory: page faults are not the cost of a merge.
fn filled<T: Pod>(len: usize) -> Result<PageBuffer<T>, EngineError> {
    let mut buffer = PageBuffer::zeroed(len.max(1), Pages::Huge).map_err(EngineError::failed)?;
    buffer.fill(T::zeroed());
    Ok(buffer)
}

/// Runs a walk with whole outputs, `rows_out` rows altogether, then merges and orders them.
pub(crate) fn run<W, T>(
    task: &Task<'_, WorkerGroup>,
    isa: impl Isa,
    rows_out: usize,
    walk_of: impl Fn(usize) -> W + Sync,
) -> Result<RunResult, EngineError>
where
    W: Preloadable + Clone + Send,
    T: Pod + Send,
    for<'o> Materialise<'o, T>: Sink<W::Hit>,
{
    let threads = task.execution.threads;
    let outputs: Result<Vec<_>, EngineError> =
        (0..threads.mains()).map(|_| Ok(Mutex::new(Output::of(rows_out)?))).collect();
    let outputs: Vec<Mutex<Output<T>>> = outputs?;
    let mut ran = task.platform.parts(task.execution, task.rows.clone(), &|thread, shares| {
        let mut output = outputs[thread].lock().expect("one thread per output");
        let Output { rows, positions, written } = &mut *output;
        let mut sink = PositionedSink { rows: Materialise::new(rows), positions };
        let mut walk = walk_of(thread);
        let (probed, served) = task.drive(isa, thread, &mut walk, shares, &mut sink)?;
        *written = sink.rows.written();
        let answer = Answer { rows: *written as u64, checksum: sink.rows.checksum() };
        Ok(ThreadResult { answer, probed, served })
    })?;
    let outputs: Vec<Output<T>> =
        outputs.into_iter().map(|output| output.into_inner().expect("joined")).collect();
    let parts: Vec<_> = outputs.iter().map(Output::written).collect();
    let costs = charge(&parts, task.rows.end, task.platform)?;
    ran.measures.extend(costs);
    let with = |extra_s: f64| ran.probed as f64 / (ran.wall_s + extra_s) / 1e6;
    let (merged, ordered) = (with(costs[0].1), with(costs[1].1));
    ran.measures.push(("merged_mtuples_per_s", merged));
    ran.measures.push(("ordered_mtuples_per_s", ordered));
    Ok(ran)
}

/// Seconds of merging, and of merging in order.
fn charge<T: Pod>(
    parts: &[(&[T], &[u32])],
    stream: usize,
    group: &WorkerGroup,
) -> Result<[(&'static str, f64); 2], EngineError> {
    let total = parts.iter().map(|part| part.0.len()).sum();
    let mut whole = filled::<T>(total)?;
    let mut ends = filled::<u32>(stream + 1)?;
    let _pinned = group.pin()?;
    let start = Moment::now();
    merge(parts, &mut whole);
    let merge_s = start.wall_s();
    let start = Moment::now();
    order(parts, &mut ends, &mut whole);
    let order_s = start.wall_s();
    std::hint::black_box(&whole[..]);
    Ok([("merge_s", merge_s), ("order_s", order_s)])
}

/// Concatenates the outputs.
fn merge<T: Pod>(parts: &[(&[T], &[u32])], whole: &mut [T]) {
    let mut rest = whole;
    for (rows, _) in parts {
        let (here, after) = rest.split_at_mut(rows.len());
        here.copy_from_slice(rows);
        rest = after;
    }
}

/// Orders by a counting sort: `ends` has an entry for every position, and one more. Rows of one
/// probe stay in the order of their thread.
fn order<T: Pod>(parts: &[(&[T], &[u32])], ends: &mut [u32], whole: &mut [T]) {
    for (_, positions) in parts {
        for position in *positions {
            ends[*position as usize + 1] += 1;
        }
    }
    for at in 1..ends.len() {
        ends[at] += ends[at - 1];
    }
    for (rows, positions) in parts {
        for (row, position) in rows.iter().zip(*positions) {
            let next = &mut ends[*position as usize];
            whole[*next as usize] = *row;
            *next += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use workahead_walks::record::{JoinedRecord, Record};

    use super::*;

    fn row(key: u32) -> JoinedRecord {
        JoinedRecord { probe: Record::new(key, key, 0), build: Record::NULL }
    }

    #[test]
    fn ordered_rows_follow_the_stream() {
        let left = ([row(10), row(30), row(31)], [1, 3, 3]);
        let right = ([row(20), row(0)], [2, 0]);
        let parts: [(&[JoinedRecord], &[u32]); 2] = [(&left.0, &left.1), (&right.0, &right.1)];
        let mut whole = vec![JoinedRecord { probe: Record::NULL, build: Record::NULL }; 5];
        order(&parts, &mut [0; 5], &mut whole);
        assert_eq!(whole.iter().map(|row| row.probe.key).collect::<Vec<_>>(), [0, 10, 20, 30, 31]);
        merge(&parts, &mut whole);
        assert_eq!(whole.iter().map(|row| row.probe.key).collect::<Vec<_>>(), [10, 30, 31, 20, 0]);
    }
}
