//! Lines on their way, as many as a core has room for.

use crate::ticks::Ticks;

/// From when to when each place is taken.
#[derive(Debug, Clone)]
pub(super) struct Outstanding(Vec<(Ticks, Ticks)>);

impl Outstanding {
    pub(super) fn new(places: usize) -> Self {
        Self(vec![(0, 0); places.max(1)])
    }

    /// When a line asked for at `issued` finds a place. A place that will be taken later, by a load
    /// that waits for its address, is free for one as long before.
    #[inline(always)]
    pub(super) fn room(&self, issued: Ticks) -> Ticks {
        let free =
            |(begun, ends): &(Ticks, Ticks)| *ends <= issued || issued + (ends - begun) <= *begun;
        match self.0.iter().any(free) {
            true => issued,
            false => self.0.iter().map(|(_, ends)| *ends).min().unwrap_or(issued),
        }
    }

    /// Takes the place that is free soonest.
    #[inline(always)]
    pub(super) fn take(&mut self, issued: Ticks, ends: Ticks) {
        if let Some(place) = self.0.iter_mut().min_by_key(|(_, ends)| *ends)
            && place.1 <= issued
        {
            *place = (issued, ends);
        }
    }
}
