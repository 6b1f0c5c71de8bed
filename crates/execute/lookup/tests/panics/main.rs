//! Functions of keys and values that panic: in every call of them that a history makes.
//!
//! ```text
//! history ─► counts calls of Clone, Ord, Eq, Hash and Drop ─► the 1st panics, the 2nd, … the last
//!            once, or every later call of the same function, too
//! ```
//!
//! After a panic an index has the entries from before a change, or those after it: as many as it
//! says, each of them found. In the end nothing was lost, and nothing dropped twice.

mod hash;
mod ordered;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use workahead_walks::random::Random;

/// A function that an index calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Function {
    Clone,
    Compare,
    Hash,
    Drop,
}

/// Which calls panic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// The one after `n` others.
    Once(u64),
    /// The one after `n` others, and then all of the same function.
    From(u64),
    All(Function),
}

thread_local! {
    static FAULT: Cell<Fault> = const { Cell::new(Fault::None) };
    /// Keys and values that are not dropped yet.
    static ALIVE: RefCell<BTreeSet<u64>> = const { RefCell::new(BTreeSet::new()) };
    static MADE: Cell<u64> = const { Cell::new(0) };
    /// The source of comparisons that contradict each other.
    static LIES: RefCell<Option<Random>> = const { RefCell::new(None) };
}

/// The payload of an injected panic: it was never meant for the panic hook.
struct InjectedPanic;

/// Every function of a key or a value begins so. Nothing panics while something else unwinds.
fn call(function: Function) {
    if std::thread::panicking() {
        return;
    }
    let (then, panics) = match FAULT.get() {
        Fault::None => return,
        Fault::Once(0) => (Fault::None, true),
        Fault::Once(left) => (Fault::Once(left - 1), false),
        Fault::From(0) => (Fault::All(function), true),
        Fault::From(left) => (Fault::From(left - 1), false),
        Fault::All(failing) => (FAULT.get(), failing == function),
    };
    FAULT.set(then);
    if panics {
        resume_unwind(Box::new(InjectedPanic));
    }
}

/// Whether a history ended without its injected panic; other panics are failures.
fn ends(history: impl FnOnce()) -> bool {
    match catch_unwind(AssertUnwindSafe(history)) {
        Ok(()) => true,
        Err(panic) if panic.is::<InjectedPanic>() => false,
        Err(panic) => resume_unwind(panic),
    }
}

/// Something of which there is one, dropped once.
struct Unique(u64);

impl Unique {
    fn new() -> Self {
        let number = MADE.replace(MADE.get() + 1);
        ALIVE.with_borrow_mut(|alive| alive.insert(number));
        Self(number)
    }
}

impl Drop for Unique {
    fn drop(&mut self) {
        assert!(ALIVE.with_borrow_mut(|alive| alive.remove(&self.0)), "dropped twice");
        call(Function::Drop);
    }
}

/// A key that owns something.
struct Owner(u32, #[expect(dead_code, reason = "it is dropped")] Unique);

/// A key without a destructor, all of which an ordered index compares at once.
struct Plain(u64);

struct Value(u32, #[expect(dead_code, reason = "it is dropped")] Unique);

impl Value {
    fn of(number: u32) -> Self {
        Self(number, Unique::new())
    }
}

trait Key: Hash + Ord + Clone {
    fn of(number: u32) -> Self;
    fn number(&self) -> u32;
}

impl Key for Owner {
    fn of(number: u32) -> Self {
        Self(number, Unique::new())
    }
    fn number(&self) -> u32 {
        self.0
    }
}

impl Key for Plain {
    fn of(number: u32) -> Self {
        Self(u64::from(number))
    }
    fn number(&self) -> u32 {
        self.0 as u32
    }
}

macro_rules! functions {
    ($key:ty) => {
        impl Clone for $key {
            fn clone(&self) -> Self {
                call(Function::Clone);
                Key::of(self.number())
            }
        }
        impl PartialEq for $key {
            fn eq(&self, other: &Self) -> bool {
                self.cmp(other).is_eq()
            }
        }
        impl Eq for $key {}
        impl PartialOrd for $key {
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }
        impl Ord for $key {
            fn cmp(&self, other: &Self) -> std::cmp::Ordering {
                call(Function::Compare);
                LIES.with_borrow_mut(|lies| match lies {
                    Some(lies) => lies.below(3).cmp(&1),
                    None => self.number().cmp(&other.number()),
                })
            }
        }
        impl Hash for $key {
            fn hash<H: Hasher>(&self, state: &mut H) {
                call(Function::Hash);
                state.write_u32(self.number());
            }
        }
    };
}
functions!(Owner);
functions!(Plain);

#[derive(Debug, Clone, Copy)]
enum Change {
    Insert(u32, u32),
    Remove(u32),
    /// This many entries from a number on.
    Extend(u32, u32),
    Reserve(u32),
    Clear,
    /// Looks keys from a number on up, each and all together.
    Find(u32),
}

type Entries = BTreeMap<u32, u32>;

/// An index whose keys and values call [`call`].
trait Index: Sized {
    fn load(entries: &Entries) -> Self;
    fn apply(&mut self, change: Change);
    /// All entries, once each says where it is.
    fn entries(&self) -> Entries;
}

/// All keys that may be there, and some that are not.
fn keys<K: Key>() -> Vec<K> {
    (0..KEYS + 10).map(K::of).collect()
}

/// Compares what a batch found, and what single look-ups find, with the entries.
fn compare<'a, K: Key>(
    entries: &Entries,
    keys: &[K],
    found: &[Option<&Value>],
    get: impl Fn(&K) -> Option<&'a Value>,
) {
    for (key, found) in keys.iter().zip(found) {
        let expected = entries.get(&key.number());
        assert_eq!(found.map(|value| &value.0), expected);
        assert_eq!(get(key).map(|value| &value.0), expected);
    }
}

/// The entries before a change, and after each of its steps.
fn states(entries: &Entries, change: Change) -> Vec<Entries> {
    let mut states = vec![entries.clone()];
    let mut entries = entries.clone();
    match change {
        Change::Insert(key, value) => drop(entries.insert(key, value)),
        Change::Remove(key) => drop(entries.remove(&key)),
        Change::Extend(first, count) => {
            for number in first..first + count {
                entries.insert(number, number);
                states.push(entries.clone());
            }
        }
        Change::Clear => entries.clear(),
        Change::Reserve(_) | Change::Find(_) => {}
    }
    states.push(entries);
    states
}

/// Keys of histories are below.
const KEYS: u32 = 110;

fn changes(count: usize) -> Vec<Change> {
    let mut random = Random::of(3);
    let mut key = |most| random.below(most);
    let change = |_| match key(24) {
        0..=13 => Change::Insert(key(KEYS), key(100)),
        14..=17 => Change::Remove(key(KEYS)),
        18 => Change::Extend(key(KEYS - 3), 3),
        19 => Change::Reserve(key(200)),
        _ => Change::Find(key(KEYS)),
    };
    let changes = (0..count).map(change);
    changes.chain([Change::Clear, Change::Insert(5, 5), Change::Extend(0, 30)]).collect()
}

/// Changes during which a function goes on to panic.
const PANICKING_CHANGES: usize = 6;

/// Runs a history once; whether it came to the call that was to panic.
fn run<I: Index>(loaded: &Entries, changes: &[Change], fault: Fault) -> bool {
    FAULT.set(fault);
    let mut full = None;
    let is_full = ends(|| full = Some(I::load(loaded)));
    let rest = FAULT.replace(Fault::None);
    let mut expected = if is_full { loaded.clone() } else { Entries::new() };
    let mut index = full.unwrap_or_else(|| I::load(&expected));
    FAULT.set(rest);
    let mut panicking = 0;
    for change in changes {
        let is_whole = ends(|| index.apply(*change));
        let rest = FAULT.replace(Fault::None);
        let states = states(&expected, *change);
        if is_whole {
            expected = states.last().expect("at least one").clone();
        } else {
            expected = index.entries();
            assert!(states.contains(&expected), "{fault:?}, {change:?}: {expected:?}");
        }
        panicking += usize::from(matches!(rest, Fault::All(_)));
        FAULT.set(if panicking < PANICKING_CHANGES { rest } else { Fault::None });
    }
    let rest = FAULT.replace(Fault::None);
    assert_eq!(index.entries(), expected, "{fault:?}");
    FAULT.set(rest);
    ends(|| drop(index));
    let rest = FAULT.replace(Fault::None);
    ALIVE.with_borrow(|alive| assert!(alive.is_empty(), "{fault:?}: {} were lost", alive.len()));
    !matches!(rest, Fault::Once(_) | Fault::From(_))
}

/// Runs histories of an index, each with another call that panics, until all calls had their turn.
fn histories<I: Index>() {
    let changes = changes(if cfg!(miri) { 20 } else { 80 });
    let loaded: Entries = (0..12).map(|number| (number * 9, number)).collect();
    for fault in [Fault::Once, Fault::From] {
        let calls = (0..).take_while(|calls| run::<I>(&loaded, &changes, fault(*calls))).count();
        assert!(calls > 300, "{calls} calls");
    }
}

/// Runs histories of an index whose keys are in no order, nor equal to themselves. It may refuse
/// that by a panic; it loses nothing, drops nothing twice, and has as many entries as it says.
fn contradictions<I: Index>(count_entries: impl Fn(&I) -> (usize, usize)) {
    let changes = changes(if cfg!(miri) { 20 } else { 400 });
    for seed in 0..if cfg!(miri) { 1 } else { 40 } {
        let mut index = I::load(&Entries::new());
        LIES.set(Some(Random::of(seed)));
        for change in changes.iter().filter(|change| !matches!(change, Change::Clear)) {
            drop(catch_unwind(AssertUnwindSafe(|| index.apply(*change))));
        }
        LIES.set(None);
        let (len, iterated) = count_entries(&index);
        assert_eq!(len, iterated);
        drop(index);
        ALIVE.with_borrow(|alive| assert!(alive.is_empty(), "{} were lost", alive.len()));
    }
}
