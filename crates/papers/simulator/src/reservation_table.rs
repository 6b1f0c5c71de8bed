//! Reservations of a resource over time, made in any order.
//!
//! ```text
//!   bus      ▓▓▓▓    ▓▓▓▓▓▓▓▓      ▓▓▓▓          one at a time: the first gap that is long enough
//!   places   ├──────────┤
//!               ├────────────┤                   `limit` at a time: the first moment with room
//! ```
//!
//! CPUs look ahead: one that follows a chain of pointers requests lines of a far later time than
//! its neighbour, which must not have to wait for them.

use crate::ticks::Ticks;

/// Intervals that are remembered; everything before them counts as reserved.
const INTERVALS: usize = 256;

/// Capacity of the ring that holds them: a power of two, so that it wraps by a mask.
const RING: usize = 2 * INTERVALS;

/// Reservations of a resource with one user at a time.
#[derive(Debug, Clone)]
pub(crate) struct ReservationTable {
    /// Reserved intervals, in order from `first` to `end`; adjacent ones are merged.
    taken: Box<[(Ticks, Ticks); RING]>,
    first: usize,
    end: usize,
    /// End of the last interval, which grows most of the time: its entry is updated lazily.
    last: Ticks,
    /// Everything before this counts as reserved.
    floor: Ticks,
}

impl Default for ReservationTable {
    fn default() -> Self {
        Self { taken: Box::new([(0, 0); RING]), first: 0, end: 0, last: Ticks::MAX, floor: 0 }
    }
}

impl ReservationTable {
    #[inline(always)]
    const fn at(&mut self, at: usize) -> &mut (Ticks, Ticks) {
        &mut self.taken[at % RING]
    }

    /// Reserves `length` ticks in the first gap from `now` on; returns where they begin.
    #[inline(always)]
    pub(crate) fn take(&mut self, now: Ticks, length: Ticks) -> Ticks {
        // Most reservations begin where the last one ended, or after it.
        if now == self.last {
            self.last += length;
            return now;
        }
        self.take_gap(now, length)
    }

    fn take_gap(&mut self, now: Ticks, length: Ticks) -> Ticks {
        if self.end > self.first {
            self.at(self.end - 1).1 = self.last;
        }
        let begun = match now.max(self.floor) {
            begun if self.last < begun && length > 0 => {
                self.insert(self.end, (begun, begun + length));
                begun
            }
            begun => self.take_gap_before_last(begun, length),
        };
        if self.end > self.first {
            self.last = self.at(self.end - 1).1;
        }
        begun
    }

    fn take_gap_before_last(&mut self, mut begun: Ticks, length: Ticks) -> Ticks {
        let mut at = self.end;
        while at > self.first && self.at(at - 1).1 > begun {
            at -= 1;
        }
        while at < self.end {
            let (from, until) = *self.at(at);
            if begun + length <= from {
                break;
            }
            begun = begun.max(until);
            at += 1;
        }
        if length > 0 {
            self.join(at, (begun, begun + length));
        }
        begun
    }

    /// Inserts an interval before another one, merged with those that it touches.
    fn join(&mut self, at: usize, (from, until): (Ticks, Ticks)) {
        let joins_next = at < self.end && self.at(at).0 == until;
        let joins_last = at > self.first && self.at(at - 1).1 == from;
        match (joins_last, joins_next) {
            (true, true) => {
                self.at(at - 1).1 = self.at(at).1;
                for next in at + 1..self.end {
                    *self.at(next - 1) = *self.at(next);
                }
                self.end -= 1;
            }
            (true, false) => self.at(at - 1).1 = until,
            (false, true) => self.at(at).0 = from,
            (false, false) => self.insert(at, (from, until)),
        }
    }

    #[inline(always)]
    fn insert(&mut self, at: usize, interval: (Ticks, Ticks)) {
        for next in (at..self.end).rev() {
            *self.at(next + 1) = *self.at(next);
        }
        *self.at(at) = interval;
        self.end += 1;
        if self.end - self.first > INTERVALS {
            self.floor = self.at(self.first).1;
            self.first += 1;
        }
    }
}

/// Reservations of a resource with `limit` users at a time.
///
/// ```text
///   now ├───── stay ─────┤
///    ▓▓▓▓▓                      over: before all others in `by_end`, and not looked at
///      ▓▓▓▓▓▓▓▓▓▓▓▓▓            meets the stay
///                 ▓▓▓▓▓▓▓▓▓▓▓   meets it
///                         ▓▓▓▓  begins after it
/// ```
#[derive(Debug, Clone)]
pub(crate) struct SlotReservations {
    /// Users at a time; 0 for no limit.
    limit: usize,
    /// Length of a reservation, at longest and without waiting.
    stay: Ticks,
    /// Reservations by their end, the latest ones, from `first` to `end`. The array has twice the
    /// room, so that they move only now and then.
    by_end: Vec<Reservation>,
    first: usize,
    end: usize,
    /// The same in the order in which they were made, once full, from `oldest` on.
    by_turn: Vec<Reservation>,
    oldest: usize,
}

/// Reservations remembered: all that the loads and stores in flight can have made. A
/// forgotten one counts as free, so that with fewer a request would find room that others had.
const HELD: usize = 128;

/// The end of a reservation, and its begin.
type Reservation = (Ticks, Ticks);

impl SlotReservations {
    pub(crate) fn new(limit: usize, stay: Ticks) -> Self {
        let (by_end, by_turn) =
            (vec![(0, 0); if limit == 0 { 0 } else { 2 * HELD.max(4 * limit) }], Vec::new());
        Self { limit, stay, by_end, first: 0, end: 0, by_turn, oldest: 0 }
    }

    /// The first moment from `now` on with room for a reservation.
    #[inline]
    pub(crate) fn free_from(&self, now: Ticks) -> Ticks {
        // Mostly fewer than `limit` have not ended.
        let is_room = self.end - self.first < self.limit
            || self.limit == 0
            || self.by_end[self.end - self.limit].0 <= now;
        if is_room { now } else { self.free_after(now) }
    }

    /// The same where `limit` or more have not ended.
    fn free_after(&self, now: Ticks) -> Ticks {
        let mut when = now;
        loop {
            let left = self.by_end[self.first..self.end]
                .iter()
                .rev()
                .take_while(|(until, _)| *until > when);
            let mut met = left.filter(|(_, from)| *from < when + self.stay);
            // All but `limit` of them have to end first.
            let Some((until, _)) = met.nth(self.limit - 1) else { return when };
            when = *until;
        }
    }

    /// Makes a reservation.
    #[inline]
    pub(crate) fn take(&mut self, from: Ticks, until: Ticks) {
        if self.limit == 0 {
            return;
        }
        let had = (until, from);
        if self.by_turn.len() < HELD.max(4 * self.limit) {
            self.by_turn.push(had);
        } else {
            let gone = std::mem::replace(&mut self.by_turn[self.oldest], had);
            self.oldest += 1;
            if self.oldest == self.by_turn.len() {
                self.oldest = 0;
            }
            self.forget(gone);
        }
        if self.end == self.by_end.len() {
            self.by_end.copy_within(self.first.., 0);
            (self.first, self.end) = (0, self.end - self.first);
        }
        // From the back: the newest reservation mostly ends last.
        let held = &mut self.by_end[self.first..=self.end];
        let mut at = held.len() - 1;
        while at > 0 && held[at - 1].0 > until {
            held[at] = held[at - 1];
            at -= 1;
        }
        held[at] = had;
        self.end += 1;
    }

    /// Removes a reservation near the front: the oldest mostly ended first.
    #[inline(always)]
    fn forget(&mut self, gone: Reservation) {
        let mut carried = self.by_end[self.first];
        for held in &mut self.by_end[self.first..self.end] {
            std::mem::swap(&mut carried, held);
            if carried == gone {
                break;
            }
        }
        self.first += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn gaps_are_used() {
        let mut bus = ReservationTable::default();
        assert_eq!(bus.take(100, 10), 100);
        // Before it there is room for ten, but not for twenty that begin at 85.
        assert_eq!((bus.take(90, 10), bus.take(65, 20), bus.take(85, 20)), (90, 65, 110));
        assert_eq!((bus.take(80, 5), bus.take(80, 5)), (85, 130));
        assert_eq!((bus.end - bus.first, bus.at(bus.first).0, bus.last), (1, 65, 135));
    }

    #[test]
    fn the_forgotten_past_counts_as_reserved() {
        let mut bus = ReservationTable::default();
        assert!((0..1000).all(|at| bus.take(10 * at, 5) == 10 * at));
        // The last 256 are remembered, and the end of the one before them.
        assert_eq!((bus.take(0, 5), bus.take(0, 5)), (10 * 743 + 5, 10 * 744 + 5));
    }

    #[test]
    fn places_are_had_for_a_while() {
        let mut places = SlotReservations::new(2, 100);
        for (from, until) in [(0, 100), (10, 110), (500, 600)] {
            assert_eq!(places.free_from(from), from);
            places.take(from, until);
        }
        // Requests for later times don't delay this one.
        let free = [5, 50, 300, 550].map(|now| places.free_from(now));
        assert_eq!(free, [100, 100, 300, 550]);
        assert_eq!(SlotReservations::new(0, 100).free_from(7), 7);
    }

    /// With one place, a stay begins neither during another one nor so that it runs into it.
    #[test]
    fn reservations_need_their_whole_time() {
        let mut place = SlotReservations::new(1, 100);
        place.take(1000, 1100);
        let free = [200, 950, 1050, 1100].map(|now| place.free_from(now));
        assert_eq!(free, [200, 1100, 1100, 1100]);
    }

    /// One place, and as many requests at one moment as a window holds: one after the other.
    #[test]
    fn requests_of_a_whole_window_are_remembered() {
        let mut place = SlotReservations::new(1, 38);
        for turn in 0..100 {
            let free = place.free_from(0);
            assert_eq!(free, 38 * turn);
            place.take(free, free + 38);
        }
    }

    /// [`SlotReservations::free_from`] by its definition: at each end of a reservation, over all
    /// reservations.
    fn free_from(had: &[(Ticks, Ticks)], limit: usize, now: Ticks) -> Ticks {
        let mut when = now;
        loop {
            let had = &had[had.len().saturating_sub(HELD.max(4 * limit))..];
            let met = had.iter().filter(|(from, until)| *from < when + 50 && *until > when);
            if met.clone().count() < limit {
                return when;
            }
            when = met.map(|(_, until)| *until).min().unwrap();
        }
    }

    proptest! {
        /// Short stays, and longer ones than usual, in any order.
        #[test]
        fn a_slot_is_free_below_the_limit(
            limit in 1_usize..5,
            requests in proptest::collection::vec((0_u64..600, 0_u64..90), 1..300),
        ) {
            let mut places = SlotReservations::new(limit, 50);
            let mut had = Vec::new();
            for (now, length) in requests {
                let free = places.free_from(now);
                prop_assert_eq!(free, free_from(&had, limit, now));
                places.take(free, free + length);
                had.push((free, free + length));
            }
        }

        /// No tick is reserved twice, and no request waits while there is a gap: against a list of
        /// ticks.
        #[test]
        fn stretches_never_overlap(
            requests in proptest::collection::vec((0_u64..300, 1_u64..9), 1..60),
        ) {
            let mut bus = ReservationTable::default();
            let mut ticks = vec![false; 1000];
            for (now, length) in requests {
                let fits = |begun: &u64| !(*begun..begun + length).any(|at| ticks[at as usize]);
                let expected = (now..).find(fits).unwrap();
                let begun = bus.take(now, length);
                prop_assert_eq!(begun, expected);
                (begun..begun + length).for_each(|at| ticks[at as usize] = true);
            }
        }
    }
}
