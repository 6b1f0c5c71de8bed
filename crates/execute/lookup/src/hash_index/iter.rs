//! Entries of a hash index: borrowed, their values to be changed, or owned.

use core::iter::FusedIterator;

use super::HashIndex;
use super::table::Table;

pub use super::table::{Iter, IterMut};

impl<K, V, S> HashIndex<K, V, S> {
    /// All entries, in no order that means anything.
    pub fn iter(&self) -> Iter<'_, K, V> {
        self.table.iter()
    }

    /// All entries, their values to be changed.
    pub fn iter_mut(&mut self) -> IterMut<'_, K, V> {
        self.table.iter_mut()
    }

    /// All keys.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &K> + Clone {
        self.iter().map(|(key, _)| key)
    }

    /// All values.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &V> + Clone {
        self.iter().map(|(_, value)| value)
    }

    /// All values, to be changed.
    ///
    /// ```
    /// use workahead_lookup::HashIndex;
    /// let mut index: HashIndex<&str, u32> = [("apple", 3), ("pear", 4)].into_iter().collect();
    /// index.values_mut().for_each(|price| *price *= 2);
    /// assert_eq!(index.get("pear"), Some(&8));
    /// let sum: u32 = (&index).into_iter().map(|(_, price)| price).sum();
    /// assert_eq!(sum, 14);
    /// ```
    pub fn values_mut(&mut self) -> impl ExactSizeIterator<Item = &mut V> {
        self.iter_mut().map(|(_, value)| value)
    }
}

impl<K, V> ExactSizeIterator for Iter<'_, K, V> {}
impl<K, V> FusedIterator for Iter<'_, K, V> {}
impl<K, V> ExactSizeIterator for IterMut<'_, K, V> {}
impl<K, V> FusedIterator for IterMut<'_, K, V> {}

impl<'t, K, V, S> IntoIterator for &'t HashIndex<K, V, S> {
    type Item = (&'t K, &'t V);
    type IntoIter = Iter<'t, K, V>;

    fn into_iter(self) -> Iter<'t, K, V> {
        self.iter()
    }
}

impl<'t, K, V, S> IntoIterator for &'t mut HashIndex<K, V, S> {
    type Item = (&'t K, &'t mut V);
    type IntoIter = IterMut<'t, K, V>;

    fn into_iter(self) -> IterMut<'t, K, V> {
        self.iter_mut()
    }
}

impl<K, V, S> IntoIterator for HashIndex<K, V, S> {
    type Item = (K, V);
    type IntoIter = IntoIter<K, V>;

    fn into_iter(self) -> IntoIter<K, V> {
        IntoIter { table: self.table, bucket: 0 }
    }
}

/// The entries of an index that has ended, in no order that means anything.
pub struct IntoIter<K, V> {
    table: Table<K, V>,
    /// Those before have no entry left.
    bucket: usize,
}

impl<K, V> Iterator for IntoIter<K, V> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        self.table.take(&mut self.bucket)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.table.len(), Some(self.table.len()))
    }
}

impl<K, V> ExactSizeIterator for IntoIter<K, V> {}
impl<K, V> FusedIterator for IntoIter<K, V> {}
