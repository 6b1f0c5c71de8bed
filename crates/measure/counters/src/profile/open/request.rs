//! Requests for samples to the kernel, and the meaning of its errors.

use std::io;

use perf_event::events::{Hardware, Software};
use perf_event::{Builder, SampleFlag};
use rustix::io::Errno;

use crate::encoding::builder_of;
use crate::event::Code;
use crate::profile::{By, Clock, FREQUENCY_MAX_HZ, Options, STACK_BYTES_MAX, unwind};
use crate::source::CountError;

/// The clock or event to sample by, and how the kernel knows it.
pub(super) struct Request {
    pub(super) clock: Clock,
    code: Option<Code>,
}

/// Requests to try, the best first.
pub(super) fn in_turn(by: &By) -> Vec<Request> {
    match by {
        By::Time => [Clock::Cycles, Clock::CpuClock]
            .map(|clock| Request { clock, code: None })
            .into_iter()
            .collect(),
        By::Event(event) => {
            let clock = Clock::Event(event.name.clone());
            vec![Request { clock, code: Some(event.code.clone()) }]
        }
    }
}

impl Request {
    /// An event with all fields of a sample, without a target yet.
    pub(super) fn builder(
        &self,
        options: &Options,
        sees_kernel: bool,
    ) -> Result<Builder<'static>, CountError> {
        let mut builder = match (&self.clock, &self.code) {
            (clock, Some(code)) => builder_of(code, clock.unit())?,
            (Clock::Cycles, None) => Builder::new(Hardware::CPU_CYCLES),
            (_, None) => Builder::new(Software::CPU_CLOCK),
        };
        builder
            .sample_frequency(u64::from(options.frequency_hz))
            .sample(SampleFlag::IP | SampleFlag::TID | SampleFlag::TIME | SampleFlag::PERIOD)
            .sample(SampleFlag::REGS_USER | SampleFlag::STACK_USER)
            .sample_regs_user(unwind::register_mask())
            .sample_stack_user(options.stack_bytes.next_multiple_of(8))
            .exclude_kernel(!sees_kernel)
            // The timer ticks in the idle loop too; cycles do not, and some machines refuse the
            // flag for them.
            .exclude_idle(self.clock == Clock::CpuClock)
            .sample_id_all(true)
            .task(true)
            .comm(true)
            .comm_exec(true)
            .mmap(true)
            .mmap2(true);
        if sees_kernel {
            builder.sample(SampleFlag::CALLCHAIN).exclude_callchain_user(true);
        }
        Ok(builder)
    }
}

/// Whether the kernel could take these options.
pub(super) fn check(options: &Options) -> Result<(), CountError> {
    let Options { frequency_hz, stack_bytes, .. } = options;
    let limits = 1..=FREQUENCY_MAX_HZ;
    if limits.contains(frequency_hz) && *stack_bytes <= STACK_BYTES_MAX {
        return Ok(());
    }
    Err(CountError::Failed(format!(
        "can't sample {frequency_hz} times a second with {stack_bytes} bytes of stack: use 1 to \
         {FREQUENCY_MAX_HZ} and at most {STACK_BYTES_MAX}"
    )))
}

/// The size of a ring that holds the samples of `seconds`: a power of two, as the kernel wants.
pub(super) fn ring_bytes(options: &Options, seconds: f64) -> usize {
    // Registers, call chain in the kernel and the rest of a sample.
    const BESIDE_THE_STACK: u32 = 1 << 10;
    const LEAST: usize = 128 << 10;
    const MOST: usize = 8 << 20;
    let sample = f64::from(options.stack_bytes + BESIDE_THE_STACK);
    let bytes = sample * f64::from(options.frequency_hz) * seconds;
    (bytes as usize).next_power_of_two().clamp(LEAST, MOST)
}

/// The meaning of a kernel error (perf_event_open(2), section "Errors").
pub(super) fn refusal(error: &io::Error, clock: &Clock) -> CountError {
    let event = match clock {
        Clock::Cycles => "cycles".to_owned(),
        Clock::CpuClock => "cpu-clock".to_owned(),
        Clock::Event(name) => name.clone(),
    };
    match Errno::from_io_error(error) {
        Some(Errno::NOENT | Errno::OPNOTSUPP | Errno::NXIO | Errno::NODEV) => {
            CountError::NoSuchEvent { event, why: error.to_string() }
        }
        Some(Errno::ACCESS | Errno::PERM) => CountError::Forbidden { event },
        Some(Errno::MFILE | Errno::NFILE) => CountError::TooManyFiles,
        Some(Errno::BUSY) => CountError::Busy,
        Some(Errno::SRCH) => CountError::Gone("the process to sample".into()),
        _ => CountError::Failed(format!("can't sample by {event}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_are_powers_of_two_within_limits() {
        let of = |frequency_hz, stack_bytes| {
            let options = Options { frequency_hz, stack_bytes, ..Options::default() };
            ring_bytes(&options, 0.5)
        };
        assert_eq!(of(99, 16 << 10), 1 << 20);
        assert_eq!(of(1, 0), 128 << 10);
        assert_eq!(of(1000, 48 << 10), 8 << 20);
    }

    #[test]
    fn requests_too_large_for_a_record_are_refused() {
        let with = |frequency_hz, stack_bytes| {
            check(&Options { frequency_hz, stack_bytes, ..Options::default() })
        };
        assert_eq!(with(99, 16 << 10), Ok(()));
        assert!(matches!(with(0, 8), Err(CountError::Failed(_))));
        assert!(matches!(with(99, 64 << 10), Err(CountError::Failed(_))));
        assert!(matches!(with(5000, 8), Err(CountError::Failed(_))));
    }

    #[test]
    fn refusals_name_their_remedy() {
        let of = |errno: Errno| refusal(&errno.into(), &Clock::CpuClock).to_string();
        assert!(of(Errno::ACCESS).contains("perf_event_paranoid"));
        assert!(of(Errno::NOENT).contains("does not count cpu-clock"));
        assert!(of(Errno::MFILE).contains("ulimit"));
    }
}
