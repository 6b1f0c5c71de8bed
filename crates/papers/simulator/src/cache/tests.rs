//! Caches compared with lists, and by hand.

use proptest::prelude::*;

use super::*;
use crate::geometry::Sizes;

fn cache(bytes: u64, ways: u32, replacement: Replacement) -> Cache {
    Cache::new(Geometry::of(Sizes { bytes, ways, line: 64 }).unwrap(), replacement)
}

fn access(cache: &mut Cache, line: u64) -> bool {
    let hit = cache.touch(line) != State::Invalid;
    if !hit {
        cache.insert(line, State::Shared, ());
    }
    hit
}

/// Two sets of two ways: lines 0, 2, 4 share a set, 1 and 3 the other.
#[test]
fn the_least_recently_used_leaves() {
    let mut cache = cache(256, 2, Replacement::Lru);
    let hits: Vec<bool> =
        [0, 2, 0, 4, 0, 2, 1, 3, 1, 3].iter().map(|line| access(&mut cache, *line)).collect();
    //            0      2      0     4      0     2 (4 came)
    let expected = [false, false, true, false, true, false, false, false, true, true];
    assert_eq!(hits, expected);
}

/// Four ways, lines 0 to 3 in order: the tree points to the left half, and there to way 0. After 0
/// is used again it points right, to way 2: not the least recently used, which is 1.
#[test]
fn a_tree_evicts_from_the_half_not_used_last() {
    let mut cache = cache(256, 4, Replacement::TreePlru);
    for line in 0..4 {
        access(&mut cache, line);
    }
    access(&mut cache, 0);
    let victim = cache.insert(9, State::Shared, ()).unwrap();
    assert_eq!(victim.line, 2);
}

#[test]
fn a_tree_of_three_ways_gives_up_each() {
    assert_eq!(tree_victim(0, 3), 2);
    let mut tree = 0;
    let mut given = Vec::new();
    for _ in 0..6 {
        let way = tree_victim(tree, 3);
        tree = tree_used(tree, 3, way);
        given.push(way);
    }
    for way in 0..3 {
        assert!(given.contains(&way), "{given:?}");
    }
}

#[test]
fn a_victim_keeps_its_state_and_data() {
    let geometry = Geometry::of(Sizes { bytes: 64, ways: 1, line: 64 }).unwrap();
    let mut cache: Cache<u32> = Cache::new(geometry, Replacement::Lru);
    cache.insert(5, State::Exclusive, 50);
    assert!(cache.set_state(5, State::Modified) && cache.set_data(5, 51));
    let victim = cache.insert(6, State::Shared, 60);
    assert_eq!(victim, Some(Victim { line: 5, state: State::Modified, data: 51 }));
    assert_eq!(cache.drop_line(6).map(|victim| victim.data), Some(60));
    assert_eq!((cache.lines().count(), cache.drop_line(6)), (0, None));
    assert!(!cache.set_state(6, State::Shared));
}

proptest! {
    /// Any geometry under LRU equals a list per set.
    #[test]
    fn is_a_list_a_set(
        lines in proptest::collection::vec(0_u64..64, 0..500), ways in 1_u32..9, sets in 1_u64..7,
    ) {
        let mut cache = cache(sets * u64::from(ways) * 64, ways, Replacement::Lru);
        let mut lists: Vec<Vec<u64>> = vec![Vec::new(); sets as usize];
        for line in lines {
            let list = &mut lists[(line % sets) as usize];
            let at = list.iter().position(|held| *held == line);
            prop_assert_eq!(access(&mut cache, line), at.is_some());
            at.map(|at| list.remove(at));
            list.insert(0, line);
            list.truncate(ways as usize);
        }
    }

    /// Whichever victim the tree chooses, the line used last is still there.
    #[test]
    fn a_tree_keeps_the_last_used(
        lines in proptest::collection::vec(0_u64..64, 2..300), ways in 2_u32..17,
    ) {
        let mut cache = cache(u64::from(ways) * 64, ways, Replacement::TreePlru);
        for pair in lines.windows(2) {
            access(&mut cache, pair[0]);
            access(&mut cache, pair[1]);
            prop_assert!(cache.peek(pair[0]) != State::Invalid);
            prop_assert!(cache.peek(pair[1]) != State::Invalid);
            prop_assert!(cache.lines().count() <= ways as usize);
        }
    }
}
