//! The look-up of a hash index as a walk: a bucket, compared; the next one while keys went further.

use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};

use workahead_walks::{Memory, Place, Row, Sink, Walk};

use super::table::{Position, Step, Table};

/// Look-ups of `keys`, by position.
pub(super) struct Probe<'i, 'k, K, V, S, Q> {
    pub(super) table: &'i Table<K, V>,
    pub(super) hasher: &'i S,
    pub(super) keys: &'k [Q],
}

/// A look-up under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor {
    pub(super) at: Position,
    pub(super) row: Row,
}

impl<'i, K, V, S, Q> Walk for Probe<'i, '_, K, V, S, Q>
where
    K: Borrow<Q>,
    Q: Hash + Eq,
    S: BuildHasher,
{
    type Cursor = Cursor;
    /// Every key comes to one: its value, or none.
    type Hit = Option<&'i V>;
    type Asks = Place;

    #[inline(always)]
    fn start<M: Memory>(&mut self, row: Row, memory: &mut M) -> (Cursor, Place) {
        let key = memory.read_hot(&self.keys[row as usize]);
        let (at, place) = self.table.start(self.hasher.hash_one(key));
        (Cursor { at, row }, place)
    }

    #[inline(always)]
    fn step<M: Memory, T: Sink<Option<&'i V>>>(
        &mut self,
        cursor: &mut Cursor,
        memory: &mut M,
        sink: &mut T,
    ) -> Option<Place> {
        let key = memory.read_hot(&self.keys[cursor.row as usize]);
        match self.table.step(&mut cursor.at, memory, |candidate| candidate.borrow() == key) {
            Step::Found(entry, _) => sink.emit(cursor.row, Some(&entry.1)),
            Step::Missing => sink.emit(cursor.row, None),
            Step::Next(place) => return Some(place),
        }
        None
    }
}

/// Puts what keys come to in their places.
pub(super) struct Places<'o, T, F>(pub(super) &'o mut [T], pub(super) F);

impl<'i, V, T, F: Fn(Option<&'i V>) -> T> Sink<Option<&'i V>> for Places<'_, T, F> {
    #[inline(always)]
    fn emit(&mut self, row: Row, value: Option<&'i V>) {
        self.0[row as usize] = self.1(value);
    }
}
