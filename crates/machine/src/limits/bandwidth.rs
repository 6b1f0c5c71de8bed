//! Bytes per second of reading and storing one line after the other.
//!
//! The cost of output: an ordinary store first reads the line it writes (McCalpin's STREAM, 1995,
//! counts that read nowhere, and neither do we), a store past the caches does not. Each thread
//! streams through its own part, again and again; all parts together are larger than any cache.
//! Every instruction set that the processor has is tried, and the best counts: wider is usually
//! faster, but not for every operation on every processor.

mod kernel;

use std::sync::Mutex;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::Moment;
use crate::cpus::CpuSet;
use crate::error::Error;

use super::field::{Field, LINE_WORDS};
use super::team;
use kernel::Kernels;

/// Sequential bytes per second of all threads together, by their own CPU time: the best pass.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BandwidthPoint {
    /// The footprint, divided among the threads.
    pub bytes: usize,
    /// Threads, each on its own CPU.
    pub threads: usize,
    /// Read.
    pub read_bytes_per_s: f64,
    /// Stored in the ordinary way, through the caches.
    pub store_bytes_per_s: f64,
    /// Stored past the caches; `None` where there is no such store that we know.
    pub non_temporal_store_bytes_per_s: Option<f64>,
}

/// The instruction sets that are tried on this processor.
pub(super) fn instruction_sets() -> Vec<String> {
    kernel::available().iter().map(|kernels| kernels.name.to_owned()).collect()
}

/// Large enough that no cache helps, small enough to be touched quickly.
pub(super) const FOOTPRINT_BYTES: usize = 512 << 20;

impl BandwidthPoint {
    /// Nothing measured yet.
    pub(super) fn new(bytes: usize, threads: usize) -> Self {
        Self {
            bytes,
            threads,
            read_bytes_per_s: 0.0,
            store_bytes_per_s: 0.0,
            non_temporal_store_bytes_per_s: None,
        }
    }

    /// One pass over every operation in every instruction set, each for so long; keeps the best.
    pub(super) fn pass(
        &mut self,
        field: &mut Field,
        cpus: &[usize],
        duration: Duration,
    ) -> Result<(), Error> {
        for kernels in kernel::available() {
            let read = streamed(field, cpus, duration, Stream::Read(kernels))?;
            self.read_bytes_per_s = self.read_bytes_per_s.max(read);
            let store = streamed(field, cpus, duration, Stream::Store(kernels.store))?;
            self.store_bytes_per_s = self.store_bytes_per_s.max(store);
            if let Some(store) = kernels.store_past {
                let past = streamed(field, cpus, duration, Stream::Store(store))?;
                let best = self.non_temporal_store_bytes_per_s.unwrap_or(0.0);
                self.non_temporal_store_bytes_per_s = Some(best.max(past));
            }
        }
        Ok(())
    }
}

/// The work on every piece.
#[derive(Clone, Copy)]
enum Stream {
    Read(Kernels),
    Store(fn(&mut [u64], u64)),
}

/// Words between two looks at the clock: a quarter of a mebibyte.
const PIECE_WORDS: usize = 1 << 15;
const _: () = assert!(PIECE_WORDS.is_multiple_of(LINE_WORDS));

/// Bytes per second of all threads together.
fn streamed(
    field: &mut Field,
    cpus: &[usize],
    duration: Duration,
    stream: Stream,
) -> Result<f64, Error> {
    let words = field.words_mut();
    let len = words.len().min(FOOTPRINT_BYTES / size_of::<u64>());
    let share = (len / cpus.len()).next_multiple_of(PIECE_WORDS);
    let parts: Vec<_> = words[..len]
        .chunks_mut(share)
        .enumerate()
        .map(|(i, part)| Mutex::new((i * share, part)))
        .collect();
    let allowed: CpuSet = cpus.iter().copied().collect();
    let rates = team::together(&cpus[..parts.len()], &allowed, |i| {
        // Nobody else locks part i: the lock only proves it.
        let Ok(mut part) = parts[i].lock() else { return 0.0 };
        let (first, words) = &mut *part;
        through(words, *first, duration, stream)
    })?;
    Ok(rates.iter().sum())
}

/// Streams through a part for so long, from its start again at its end.
fn through(words: &mut [u64], first: usize, duration: Duration, stream: Stream) -> f64 {
    let began = Moment::now();
    let (mut bytes, mut at, mut sum) = (0, 0, 0u64);
    loop {
        let piece = at..(at + PIECE_WORDS).min(words.len());
        bytes += piece.len() * size_of::<u64>();
        let place = (first + at) as u64;
        at = if piece.end == words.len() { 0 } else { piece.end };
        match stream {
            Stream::Read(kernels) => sum = sum.wrapping_add((kernels.read)(&words[piece])),
            Stream::Store(store) => store(&mut words[piece], place),
        }
        if began.wall_s() >= duration.as_secs_f64() {
            break;
        }
    }
    std::hint::black_box(sum);
    let elapsed = began.elapsed();
    if elapsed.cpu_s > 0.0 { bytes as f64 / elapsed.cpu_s } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::pages::Pages;

    #[test]
    fn a_pass_fills_the_point_and_leaves_the_field_as_it_was() {
        let machine = Machine::here();
        let cpus = machine.cpus_for(machine.allowed_cpus().len().min(3)).unwrap();
        // Not a multiple of anything but lines.
        let bytes = (3 << 20) + 64 * 7;
        let mut field = Field::new(bytes, Pages::Small).unwrap();
        field.touch(bytes, &cpus, machine.allowed_cpus()).unwrap();
        for threads in 1..=cpus.len() {
            let mut point = BandwidthPoint::new(bytes, threads);
            point.pass(&mut field, &cpus[..threads], Duration::from_millis(2)).unwrap();
            assert!(point.read_bytes_per_s > 0.0 && point.store_bytes_per_s > 0.0);
            let past = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));
            assert_eq!(point.non_temporal_store_bytes_per_s.is_some_and(|rate| rate > 0.0), past);
        }
        for (i, word) in field.words().iter().enumerate() {
            assert_eq!(*word, (i / LINE_WORDS * LINE_WORDS) as u64);
        }
    }
}
