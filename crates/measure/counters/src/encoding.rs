//! Events as perf_event_open(2) takes them, to be counted or to be sampled by.

use std::path::Path;

use perf_event::Builder;
use perf_event::events::{Raw, Software as Kernel};

use crate::core_source::{CoreSource, SOURCES};
use crate::event::{Code, Software};
use crate::source::CountError;

/// A builder of the event with this code; errors call it `name`.
pub(crate) fn builder_of<'a>(code: &Code, name: &str) -> Result<Builder<'a>, CountError> {
    let (source, config, config1) = match code {
        Code::Software(software) => return Ok(Builder::new(kernels(*software))),
        Code::Core { config, config1 } => {
            let cores = CoreSource::here();
            cores.map_or(Ok(()), |cores| cores.check(name, *config))?;
            (cores.and_then(|cores| cores.number), config, config1)
        }
        Code::Other { source, config, config1 } => {
            let number = number_of(source).ok_or_else(|| CountError::NoSuchEvent {
                event: name.to_owned(),
                why: format!("there is no event source {source}"),
            })?;
            (Some(number), config, config1)
        }
    };
    let mut builder = Builder::new(Raw::new(*config).config1(*config1));
    if let Some(number) = source {
        builder.attrs_mut().type_ = number;
    }
    Ok(builder)
}

/// The number that the kernel gave to an event source.
fn number_of(source: &str) -> Option<u32> {
    let text = std::fs::read_to_string(Path::new(SOURCES).join(source).join("type")).ok()?;
    text.trim().parse().ok()
}

fn kernels(software: Software) -> Kernel {
    match software {
        Software::TaskClock => Kernel::TASK_CLOCK,
        Software::CpuClock => Kernel::CPU_CLOCK,
        Software::PageFaults => Kernel::PAGE_FAULTS,
        Software::MinorFaults => Kernel::PAGE_FAULTS_MIN,
        Software::MajorFaults => Kernel::PAGE_FAULTS_MAJ,
        Software::ContextSwitches => Kernel::CONTEXT_SWITCHES,
        Software::CpuMigrations => Kernel::CPU_MIGRATIONS,
    }
}
