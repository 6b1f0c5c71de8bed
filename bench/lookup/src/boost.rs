//! `boost::unordered_flat_map`, by its C++ file.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr::NonNull;

use crate::keys::{Key, Text};

unsafe extern "C" {
    fn boost_map_u64(keys: *const u64, count: usize, seed: u64) -> *mut c_void;
    fn boost_sum_u64(map: *const c_void, keys: *const u64, count: usize) -> u64;
    fn boost_free_u64(map: *mut c_void);
    fn boost_map_text(keys: *const Text, count: usize, seed: u64) -> *mut c_void;
    fn boost_sum_text(map: *const c_void, keys: *const Text, count: usize) -> u64;
    fn boost_free_text(map: *mut c_void);
}

/// Keys that the C++ file knows.
pub trait Boost: Sized {
    /// # Safety
    /// `count` keys lie at `keys`.
    unsafe fn make(keys: *const Self, count: usize, seed: u64) -> *mut c_void;
    /// # Safety
    /// As `make`, and the map is one of its.
    unsafe fn sum(map: *const c_void, keys: *const Self, count: usize) -> u64;
    /// # Safety
    /// The map is one of `make`'s, and not used any more.
    unsafe fn free(map: *mut c_void);
}

impl Boost for u64 {
    unsafe fn make(keys: *const Self, count: usize, seed: u64) -> *mut c_void {
        // SAFETY: as the caller's.
        unsafe { boost_map_u64(keys, count, seed) }
    }
    unsafe fn sum(map: *const c_void, keys: *const Self, count: usize) -> u64 {
        // SAFETY: as the caller's.
        unsafe { boost_sum_u64(map, keys, count) }
    }
    unsafe fn free(map: *mut c_void) {
        // SAFETY: as the caller's.
        unsafe { boost_free_u64(map) }
    }
}

impl Boost for Text {
    unsafe fn make(keys: *const Self, count: usize, seed: u64) -> *mut c_void {
        // SAFETY: as the caller's.
        unsafe { boost_map_text(keys, count, seed) }
    }
    unsafe fn sum(map: *const c_void, keys: *const Self, count: usize) -> u64 {
        // SAFETY: as the caller's.
        unsafe { boost_sum_text(map, keys, count) }
    }
    unsafe fn free(map: *mut c_void) {
        // SAFETY: as the caller's.
        unsafe { boost_free_text(map) }
    }
}

/// A map from each key to its position.
pub struct Map<K: Key>(NonNull<c_void>, PhantomData<K>);

impl<K: Key> Map<K> {
    pub fn of(keys: &[K], seed: u64) -> Self {
        // SAFETY: a slice and its length.
        let map = unsafe { K::make(keys.as_ptr(), keys.len(), seed) };
        Self(NonNull::new(map).expect("`new` gives no null pointer"), PhantomData)
    }

    /// The sum of the values of keys that are there, each plus one.
    pub fn sum(&self, keys: &[K]) -> u64 {
        // SAFETY: the map is alive, and the slice has its length.
        unsafe { K::sum(self.0.as_ptr(), keys.as_ptr(), keys.len()) }
    }
}

impl<K: Key> Drop for Map<K> {
    fn drop(&mut self) {
        // SAFETY: made in `of`, freed once.
        unsafe { K::free(self.0.as_ptr()) }
    }
}
