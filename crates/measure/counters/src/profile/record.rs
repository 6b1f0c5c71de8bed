//! Records of a kernel ring as owned values with their time.

use perf_event::SampleFlag;
use perf_event::data::endian::Native;
use perf_event::data::parse::{ParseConfig, Parser};
use perf_event::data::{Comm, Exit, Fork, Lost, LostSamples, Mmap2, RecordMetadata, Visitor};

use super::unwind::{self, Registers};

/// A record and when it was written, by the kernel's own clock: rings are of CPUs or of threads,
/// and related records lie in several.
#[derive(Debug)]
pub(super) struct TimedRecord {
    pub(super) time_ns: u64,
    pub(super) record: Record,
}

/// The contents of a record.
#[derive(Debug)]
pub(super) enum Record {
    /// A sample was taken.
    Sample(Box<Sample>),
    /// A process mapped code.
    Mapped { pid: u32, start: u64, bytes: u64, offset: u64, path: String, inode: Option<u64> },
    /// A task was made: a thread where both processes are the same.
    Forked { pid: u32, parent: u32 },
    /// A process executed another program.
    Executed { pid: u32 },
    /// A task ended; a process's first thread where both are the same.
    Exited { pid: u32, tid: u32 },
    /// The ring was full, or a record could not be understood.
    Lost(u64),
}

/// A sample.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) pid: u32,
    pub(super) tid: u32,
    /// How many events of the clock it stands for.
    pub(super) events: u64,
    /// Where the CPU was.
    pub(super) address: u64,
    /// Whether that is in the kernel.
    pub(super) in_kernel: bool,
    /// Calls in the kernel, the innermost first.
    pub(super) kernel: Vec<u64>,
    /// Registers and stack of the program; `None` for threads of the kernel and 32-bit programs.
    pub(super) user: Option<(Registers, Vec<u8>)>,
}

// linux/perf_event.h
const SAMPLE: u32 = 9;
const MODE_MASK: u16 = 7;
const MODE_KERNEL: u16 = 1;
const COMM_EXEC: u16 = 1 << 13;
const ABI_NONE: u64 = 0;
const ABI_64: u64 = 2;
/// Call chains hold marks between addresses: the last page of addresses, negated.
const FIRST_MARK: u64 = u64::MAX - 4094;

/// Parses a record; `None` for kinds that are not used.
pub(super) fn read(
    record: &perf_event::Record<'_>,
    config: &ParseConfig<Native>,
) -> Option<TimedRecord> {
    let lost = || Some(TimedRecord { time_ns: 0, record: Record::Lost(1) });
    if record.ty() == SAMPLE {
        let with_chain = config.sample_type().contains(SampleFlag::CALLCHAIN);
        return sampled(&record.to_contiguous(), record.misc(), with_chain).or_else(lost);
    }
    // The parser wants the header too, which the ring's reader has taken off.
    const HEADER_BYTES: usize = 8;
    let body = record.to_contiguous();
    let bytes = u16::try_from(body.len() + HEADER_BYTES).ok()?;
    let mut whole = record.ty().to_ne_bytes().to_vec();
    whole.extend(record.misc().to_ne_bytes());
    whole.extend(bytes.to_ne_bytes());
    whole.extend_from_slice(&body);
    match Parser::new(&whole[..], config.clone()).parse_record(Reading) {
        Ok(read) => read,
        Err(_) => lost(),
    }
}

/// A sample with the requested fields, in the order of perf_event_open(2). Read here and
/// not by the library, which expects registers also of threads of the kernel, and these have none.
fn sampled(bytes: &[u8], misc: u16, with_chain: bool) -> Option<TimedRecord> {
    let (words, _) = bytes.as_chunks::<8>();
    let mut words = words.iter().map(|word| u64::from_ne_bytes(*word));
    let address = words.next()?;
    let ids = words.next()?.to_ne_bytes();
    let [pid, tid] = [ids[..4].try_into().ok()?, ids[4..].try_into().ok()?];
    let time_ns = words.next()?;
    let events = words.next()?;
    let in_kernel = misc & MODE_MASK == MODE_KERNEL;
    let mut kernel = Vec::new();
    if with_chain {
        let chain = words.next()?;
        kernel.extend((0..chain).map_while(|_| words.next()).filter(|at| *at < FIRST_MARK));
    }
    match in_kernel {
        true if kernel.is_empty() => kernel.push(address),
        true => {}
        false => kernel.clear(),
    }
    let registers = match words.next()? {
        ABI_NONE => None,
        abi => {
            let count = unwind::register_mask().count_ones() as usize;
            let values: Vec<u64> = words.by_ref().take(count).collect();
            Registers::from_sample(&values).filter(|_| abi == ABI_64)
        }
    };
    let room = words.next()?.next_multiple_of(8);
    let mut stack: Vec<u8> =
        words.by_ref().take(room as usize / 8).flat_map(u64::to_ne_bytes).collect();
    if room > 0 {
        // Not all of the room was filled; where nothing was, it holds what was there before.
        stack.truncate(words.next()? as usize);
    }
    let pid = u32::from_ne_bytes(pid);
    let tid = u32::from_ne_bytes(tid);
    let user = registers.map(|registers| (registers, stack));
    let sample = Sample { pid, tid, events, address, in_kernel, kernel, user };
    Some(TimedRecord { time_ns, record: Record::Sample(Box::new(sample)) })
}

/// A visitor that takes the needed fields of other records.
struct Reading;

fn timed(about: &RecordMetadata, record: Record) -> Option<TimedRecord> {
    Some(TimedRecord { time_ns: about.sample_id().time().unwrap_or_default(), record })
}

impl<'a> Visitor<'a> for Reading {
    type Output = Option<TimedRecord>;

    fn visit_unimplemented(self, _: RecordMetadata) -> Self::Output {
        None
    }

    fn visit_mmap2(self, map: Mmap2<'a>, about: RecordMetadata) -> Self::Output {
        let path = String::from_utf8_lossy(&map.filename).into_owned();
        let inode = map.ino().filter(|&inode| inode > 0);
        let Mmap2 { pid, addr: start, len: bytes, pgoff: offset, .. } = map;
        timed(&about, Record::Mapped { pid, start, bytes, offset, path, inode })
    }

    fn visit_fork(self, fork: Fork, about: RecordMetadata) -> Self::Output {
        timed(&about, Record::Forked { pid: fork.pid, parent: fork.ppid })
    }

    fn visit_exit(self, exit: Exit, about: RecordMetadata) -> Self::Output {
        timed(&about, Record::Exited { pid: exit.pid, tid: exit.tid })
    }

    fn visit_comm(self, comm: Comm<'a>, about: RecordMetadata) -> Self::Output {
        let executed = about.misc() & COMM_EXEC != 0;
        executed.then(|| timed(&about, Record::Executed { pid: comm.pid })).flatten()
    }

    fn visit_lost(self, lost: Lost, about: RecordMetadata) -> Self::Output {
        timed(&about, Record::Lost(lost.lost))
    }

    fn visit_lost_samples(self, lost: LostSamples, about: RecordMetadata) -> Self::Output {
        timed(&about, Record::Lost(lost.lost))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sample as the kernel writes it.
    fn written(chain: &[u64], registers: &[u64], stack: &[u8], filled: u64) -> Vec<u8> {
        let mut words = vec![0x4000, u64::from_ne_bytes([7, 0, 0, 0, 9, 0, 0, 0]), 123, 55];
        words.push(chain.len() as u64);
        words.extend(chain);
        words.push(if registers.is_empty() { ABI_NONE } else { ABI_64 });
        words.extend(registers);
        words.push(stack.len() as u64);
        let mut bytes: Vec<u8> = words.into_iter().flat_map(u64::to_ne_bytes).collect();
        bytes.extend(stack);
        if !stack.is_empty() {
            bytes.extend(filled.to_ne_bytes());
        }
        bytes
    }

    fn read_back(bytes: &[u8], misc: u16) -> Option<Sample> {
        let timed = sampled(bytes, misc, true)?;
        assert_eq!(timed.time_ns, 123);
        match timed.record {
            Record::Sample(sample) => Some(*sample),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_sample_of_a_program_in_the_kernel_has_both_stacks() {
        let registers = vec![1; unwind::register_mask().count_ones() as usize];
        let bytes = written(&[FIRST_MARK, 0x10, 0x20], &registers, &[5; 16], 8);
        let sample = read_back(&bytes, MODE_KERNEL).expect("whole");
        assert_eq!((sample.pid, sample.tid, sample.events), (7, 9, 55));
        assert_eq!(sample.kernel, [0x10, 0x20]);
        assert_eq!(sample.user.expect("registers").1, [5; 8]);
        for length in 0..bytes.len() {
            assert!(read_back(&bytes[..length], MODE_KERNEL).is_none());
        }
    }

    #[test]
    fn a_thread_of_the_kernel_has_no_registers() {
        let sample = read_back(&written(&[], &[], &[], 0), MODE_KERNEL).expect("whole");
        assert!(sample.in_kernel && sample.user.is_none());
        assert_eq!(sample.kernel, [0x4000]);
    }
}
