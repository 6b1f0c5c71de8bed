//! A list that a client runs through again and again.

use crate::client::Order;
use crate::random::Random;

/// Where a client is in its list.
#[derive(Debug, Clone)]
pub(crate) struct Cycle {
    order: Order,
    random: Random,
    /// The rest of this round, last first.
    ahead: Vec<usize>,
}

impl Cycle {
    pub(crate) fn new(order: Order, random: Random) -> Self {
        Self { order, random, ahead: Vec::new() }
    }

    /// The next position in a list of `len`; none in an empty one.
    pub(crate) fn next(&mut self, len: usize) -> Option<usize> {
        if self.ahead.is_empty() {
            self.ahead = (0..len).rev().collect();
            if self.order == Order::Shuffled {
                self.random.shuffle(&mut self.ahead);
            }
        }
        self.ahead.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_whole_and_in_their_order() {
        let mut written = Cycle::new(Order::AsWritten, Random::new(1, 0, 0));
        let positions: Vec<usize> = (0..7).filter_map(|_| written.next(3)).collect();
        assert_eq!(positions, [0, 1, 2, 0, 1, 2, 0]);
        let mut shuffled = Cycle::new(Order::Shuffled, Random::new(1, 0, 0));
        let mut round = || (0..50).filter_map(|_| shuffled.next(50)).collect::<Vec<_>>();
        let (first, second) = (round(), round());
        assert_ne!(first, second);
        for mut round in [first, second] {
            round.sort_unstable();
            assert_eq!(round, (0..50).collect::<Vec<_>>());
        }
        assert_eq!(shuffled.next(0), None);
    }
}
