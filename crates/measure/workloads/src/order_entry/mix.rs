//! Which transaction is next, and the pauses around it (clause 5.2).
//!
//! Weights 45/43/4/4/4 draw each independently; a deck of 23 cards (10 New-Orders, 10 Payments, one
//! of each other), shuffled when it is used up, keeps the shares exactly. The mix can't be changed:
//! with other shares Delivery drains the open orders, and figures mean something else.
//!
//! The pauses bound what a warehouse with ten terminals can do: with weights a cycle takes 20.99 s
//! on average, which is 12.86 New-Orders a minute; with the deck 20.70 s and 12.61.

use super::input::Kind;
use super::population::DISTRICTS;
use crate::client::Next;
use crate::random::Random;

/// How the next transaction is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mix {
    /// 45, 43, 4, 4, 4 in a hundred.
    Weights,
    /// 10, 10, 1, 1, 1 of 23 cards.
    Deck,
}

/// Whether terminals key and think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pauses {
    /// As the specification has people do.
    AsPeople,
    /// None: what a few clients do then says nothing about warehouses.
    None,
}

/// Seconds of keying, mean seconds of thinking (clause 5.2.5.7).
fn pauses_s(kind: Kind) -> (f64, f64) {
    match kind {
        Kind::NewOrder => (18.0, 12.0),
        Kind::Payment => (3.0, 12.0),
        Kind::OrderStatus => (2.0, 10.0),
        Kind::Delivery | Kind::StockLevel => (2.0, 5.0),
    }
}

/// Seconds in which nine of ten must be answered (clause 5.2.5.3).
#[must_use]
pub fn response_limit_s(kind: Kind) -> f64 {
    if kind == Kind::StockLevel { 20.0 } else { 5.0 }
}

impl Mix {
    /// This number in `of`.
    #[must_use]
    pub fn share(self, kind: Kind) -> f64 {
        let shares = match self {
            Self::Weights => [45.0, 43.0, 4.0, 4.0, 4.0],
            Self::Deck => [10.0, 10.0, 1.0, 1.0, 1.0],
        };
        shares[kind.position()] / shares.iter().sum::<f64>()
    }

    /// New-Orders a minute that a warehouse can't exceed while its terminals pause.
    #[must_use]
    pub fn bound_per_warehouse(self) -> f64 {
        let cycle_s = |kind| {
            let (keying_s, thinking_s) = pauses_s(kind);
            self.share(kind) * (keying_s + thinking_s)
        };
        let cycle_s: f64 = Kind::ALL.into_iter().map(cycle_s).sum();
        f64::from(DISTRICTS) * 60.0 / cycle_s * self.share(Kind::NewOrder)
    }
}

/// Chooses what a terminal does next.
#[derive(Debug, Clone)]
pub(super) struct Chooser {
    pub(super) mix: Mix,
    pub(super) pauses: Pauses,
    pub(super) random: Random,
    deck: Vec<Kind>,
}

impl Chooser {
    pub(super) fn new(mix: Mix, pauses: Pauses, random: Random) -> Self {
        Self { mix, pauses, random, deck: Vec::new() }
    }

    pub(super) fn next(&mut self) -> (Kind, Next) {
        let kind = match self.mix {
            Mix::Weights => self.weighed(),
            Mix::Deck => self.dealt(),
        };
        let next = Next::at_once(kind.position());
        match self.pauses {
            Pauses::None => (kind, next),
            Pauses::AsPeople => {
                let (keying_s, mean_s) = pauses_s(kind);
                // One minus what is below one is never zero, whose logarithm there is not.
                let thinking_s = (-(1.0 - self.random.unit()).ln() * mean_s).min(10.0 * mean_s);
                (kind, Next { keying_s, thinking_s, ..next })
            }
        }
    }

    fn weighed(&mut self) -> Kind {
        match self.random.within(1, 100) {
            1..=45 => Kind::NewOrder,
            46..=88 => Kind::Payment,
            89..=92 => Kind::OrderStatus,
            93..=96 => Kind::Delivery,
            _ => Kind::StockLevel,
        }
    }

    fn dealt(&mut self) -> Kind {
        if self.deck.is_empty() {
            self.deck.extend([Kind::NewOrder; 10]);
            self.deck.extend([Kind::Payment; 10]);
            self.deck.extend([Kind::OrderStatus, Kind::Delivery, Kind::StockLevel]);
            self.random.shuffle(&mut self.deck);
        }
        self.deck.pop().expect("it was filled")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(mix: Mix, pauses: Pauses, count: usize) -> Vec<(Kind, Next)> {
        let mut chooser = Chooser::new(mix, pauses, Random::new(11, 0, 0));
        (0..count).map(|_| chooser.next()).collect()
    }

    #[test]
    fn the_bounds_are_those_of_the_literature() {
        assert!((Mix::Weights.bound_per_warehouse() - 12.863).abs() < 0.001);
        assert!((Mix::Deck.bound_per_warehouse() - 12.605).abs() < 0.001);
    }

    #[test]
    fn every_deck_has_the_cards_it_must_in_another_order() {
        let kinds: Vec<Kind> =
            chosen(Mix::Deck, Pauses::None, 23 * 50).into_iter().map(|(kind, _)| kind).collect();
        for deck in kinds.chunks(23) {
            let counts = Kind::ALL.map(|kind| deck.iter().filter(|card| **card == kind).count());
            assert_eq!(counts, [10, 10, 1, 1, 1]);
        }
        assert_ne!(kinds[..23], kinds[23..46]);
    }

    #[test]
    fn weights_give_their_shares() {
        let all = chosen(Mix::Weights, Pauses::None, 100_000);
        for kind in Kind::ALL {
            let share = all.iter().filter(|(of, _)| *of == kind).count() as f64 / 1e5;
            assert!((share - Mix::Weights.share(kind)).abs() < 0.006, "{kind:?} {share}");
        }
        assert!(all.iter().all(|(kind, next)| *next == Next::at_once(kind.position())));
    }

    #[test]
    fn thinking_has_its_mean_and_is_cut_off() {
        let all = chosen(Mix::Weights, Pauses::AsPeople, 100_000);
        let payments: Vec<Next> = all
            .into_iter()
            .filter(|(kind, _)| *kind == Kind::Payment)
            .map(|(_, next)| next)
            .collect();
        assert!(payments.iter().all(|next| next.keying_s == 3.0 && next.thinking_s <= 120.0));
        let mean = payments.iter().map(|next| next.thinking_s).sum::<f64>() / payments.len() as f64;
        assert!((mean - 12.0).abs() < 0.3, "{mean}");
    }
}
