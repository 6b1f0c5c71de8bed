//! Types that may go to another thread, or be shared by several: as the standard library's maps.
//!
//! Each is decided by the compiler: where the bound holds, a method of the type's own comes before
//! the trait's.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::MutexGuard;

use workahead_lookup::{FoldedState, HashIndex, OrderedIndex};

/// Those whose name says it are `Send`, or `Sync`, or both, or neither.
type Kind<T> = (u32, PhantomData<T>);
type Both = Kind<()>;
type OnlySend = Kind<Cell<()>>;
type OnlySync = Kind<MutexGuard<'static, ()>>;
type Neither = Kind<*const ()>;

struct IsSend<'a, T>(&'a T);
struct IsSync<'a, T>(&'a T);

impl<T: Send> IsSend<'_, T> {
    fn holds(&self) -> bool {
        let _: &T = self.0;
        true
    }
}

impl<T: Sync> IsSync<'_, T> {
    fn holds(&self) -> bool {
        let _: &T = self.0;
        true
    }
}

trait Otherwise {
    fn holds(&self) -> bool;
}

impl<T> Otherwise for &IsSend<'_, T> {
    fn holds(&self) -> bool {
        false
    }
}

impl<T> Otherwise for &IsSync<'_, T> {
    fn holds(&self) -> bool {
        false
    }
}

/// Whether a value's type is `Send`, and whether `Sync`.
macro_rules! auto_traits {
    ($value:expr) => {{
        let value = $value;
        ((&IsSend(&value)).holds(), (&IsSync(&value)).holds())
    }};
}

/// Compares the auto traits of an index's types, where keys and values are of kinds.
macro_rules! check {
    ($($key:ty, $value:ty => $owned:expr, $shared:expr;)*) => {$({
        let kinds = concat!(stringify!($key), ", ", stringify!($value));
        let mut index = HashIndex::<$key, $value>::with_hasher(FoldedState::with_seed(1));
        assert_eq!(auto_traits!(index.iter()), $shared, "iter of {kinds}");
        assert_eq!(auto_traits!(index.keys()), $shared, "keys of {kinds}");
        assert_eq!(auto_traits!(index.values()), $shared, "values of {kinds}");
        assert_eq!(auto_traits!(&index), $shared, "a borrow of {kinds}");
        assert_eq!(auto_traits!(index.iter_mut()), $owned, "iter_mut of {kinds}");
        assert_eq!(auto_traits!(&mut index), $owned, "a unique borrow of {kinds}");
        assert_eq!(auto_traits!(index.into_iter()), $owned, "into_iter of {kinds}");
        let index = HashIndex::<$key, $value>::with_hasher(FoldedState::with_seed(1));
        assert_eq!(auto_traits!(index), $owned, "a hash index of {kinds}");
        let mut index = OrderedIndex::<$key, $value>::new();
        assert_eq!(auto_traits!(index.iter_mut()), $owned, "iter_mut, in order, of {kinds}");
        assert_eq!(auto_traits!(index.into_iter()), $owned, "into_iter, in order, of {kinds}");
        let index = OrderedIndex::<$key, $value>::new();
        assert_eq!(auto_traits!(&index), $shared, "a borrow of {kinds}");
        assert_eq!(auto_traits!(index.iter()), $shared, "iter, in order, of {kinds}");
        let from = <$key>::default();
        assert_eq!(auto_traits!(index.range(&from..)), $shared, "range of {kinds}");
        assert_eq!(auto_traits!(index), $owned, "an ordered index of {kinds}");
    })*};
}

#[test]
fn indexes_and_their_iterators_are_send_and_sync_as_their_entries_are() {
    assert_eq!(auto_traits!(Both::default()), (true, true));
    assert_eq!(auto_traits!(OnlySend::default()), (true, false));
    check! {
        Both, Both => (true, true), (true, true);
        Both, OnlySend => (true, false), (false, false);
        Both, OnlySync => (false, true), (true, true);
        Both, Neither => (false, false), (false, false);
        OnlySend, Both => (true, false), (false, false);
        OnlySync, Both => (false, true), (true, true);
        OnlySend, OnlySync => (false, false), (false, false);
        Neither, Both => (false, false), (false, false);
    }
}

#[cfg(feature = "hashbrown")]
#[test]
fn look_ups_in_a_table_are_shared_as_its_entries_are() {
    macro_rules! check {
        ($($entry:ty => $is_shared:expr;)*) => {$({
            let table = hashbrown::HashTable::<$entry>::new();
            let lookup = workahead_lookup::TableLookup::new(&table);
            assert_eq!(auto_traits!(lookup), ($is_shared, $is_shared), stringify!($entry));
        })*};
    }
    check! {
        Both => true;
        OnlySend => false;
        OnlySync => true;
        Neither => false;
    }
}
