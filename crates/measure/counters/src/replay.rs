//! A source that replays a recording: the nth opening of a group on a CPU reads the recording's nth
//! slot of that group.

use std::collections::BTreeMap;

use crate::event::{Event, Privilege};
use crate::source::{CountError, Counting, Reading, Source, Target};
use crate::stream::Stream;

/// A recording as a source.
#[derive(Debug, Clone)]
pub struct Replay {
    stream: Stream,
    played: BTreeMap<(usize, Option<u32>), usize>,
}

impl Replay {
    /// Replays a recording from its beginning.
    #[must_use]
    pub fn new(stream: Stream) -> Self {
        Self { stream, played: BTreeMap::new() }
    }
}

impl Source for Replay {
    fn open(
        &mut self,
        group: &[Event],
        privilege: Privilege,
        target: &Target,
    ) -> Result<Box<dyn Counting>, CountError> {
        let groups = &self.stream.header.groups;
        let is_it = |one: &crate::stream::Group| one.events == group && one.privilege == privilege;
        let found = groups.iter().position(is_it).ok_or_else(|| CountError::NoSuchEvent {
            event: group.iter().map(|event| event.name.as_str()).collect::<Vec<_>>().join(", "),
            why: "the recording has no such group".to_owned(),
        })?;
        let played = self.played.entry((found, target.cpu())).or_default();
        let slot = self.stream.slots.iter().filter(|slot| slot.group == found).nth(*played);
        *played += 1;
        let on = slot.and_then(|slot| slot.cpus.iter().find(|on| on.cpu == target.cpu()));
        let reading = on.map(|on| on.reading.clone());
        let over = || CountError::Gone(format!("the recording of {target}"));
        Ok(Box::new(ReplayedReading(reading.ok_or_else(over)?)))
    }
}

struct ReplayedReading(Reading);

impl Counting for ReplayedReading {
    fn begin(&mut self) -> Result<(), CountError> {
        Ok(())
    }

    fn end(&mut self) -> Result<Reading, CountError> {
        Ok(self.0.clone())
    }
}
