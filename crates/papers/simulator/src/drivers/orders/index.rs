//! Tree access: latched, or lock-free (S1.19, A52).
//!
//! ```text
//!   latched     shared latches from group to group, the parent's kept until the child's is there;
//!               who changes has the leaf's alone, and its parents' where a split may reach them
//!   lock-free   no latch: the parent's version is read again after the child's; who changes
//!               swaps the version that was read for "being written", or begins again
//! ```
//!
//! Leis, Scheibner, Kemper, Neumann, "The ART of Practical Synchronization", DaMoN 2016 (optimistic
//! lock coupling). Readers without latches write nothing: no line moves between CPUs.

use super::footprint::{INSERT, NODE, SPLIT};
use super::latch::{LatchId, Mode};
use super::options::Index;
use super::session::Session;
use super::space::{follow, read, write, writes};
use super::tree::{NODE_BYTES, NODES, Path, Place};

impl Session {
    /// The RID of a key.
    pub(super) async fn find(&self, tree: usize, key: u32) -> Option<u32> {
        let found = self.first(tree, key).await;
        found.filter(|(found, _)| *found == key).map(|(_, rid)| rid)
    }

    /// The first pair with a key not less than `key`.
    pub(super) async fn first(&self, tree: usize, key: u32) -> Option<(u32, u32)> {
        match self.index {
            Index::Latched => self.first_latched(tree, key).await,
            Index::LockFree => loop {
                if let Ok(found) = self.first_free(tree, key).await {
                    return found;
                }
            },
        }
    }

    /// Inserts a pair, replacing one with the same key.
    pub(super) async fn put(&self, tree: usize, pair: (u32, u32)) {
        loop {
            let (path, held) = self.reach(tree, pair.0).await;
            let Some(mut path) = path else { continue };
            self.call(INSERT, &[read(self.engine().trees[tree].node_address(path[0]))]);
            let (moved, leaf, group) = {
                let mut engine = self.engine();
                let tree = &mut engine.trees[tree];
                let moved = tree.insert(&mut path, pair).min(NODES);
                (moved, tree.node_address(path[0]), tree.node_address((path[0].0, 0)))
            };
            if moved > 0 {
                let moved: Vec<_> = writes(group, moved as u64 * NODE_BYTES).collect();
                self.call(SPLIT, &moved);
            }
            self.push_all(writes(leaf, NODE_BYTES));
            return self.leave(tree, held).await;
        }
    }

    /// Removes a key.
    pub(super) async fn take_out(&self, tree: usize, key: u32) {
        loop {
            let (path, held) = self.reach(tree, key).await;
            let Some(path) = path else { continue };
            let leaf = self.engine().trees[tree].node_address(path[0]);
            self.call(INSERT, &[read(leaf), write(leaf)]);
            self.engine().trees[tree].remove(path[0], key);
            return self.leave(tree, held).await;
        }
    }

    async fn leave(&self, tree: usize, held: Vec<u32>) {
        for group in held {
            self.unlatch(LatchId::Group(tree, group), Mode::Exclusive).await;
        }
    }

    /// Reads a node during a search for a key.
    fn search(&self, tree: usize, place: Place) {
        let address = self.engine().trees[tree].node_address(place);
        self.call(NODE, &[follow(address), read(address + NODE_BYTES / 2)]);
    }

    /// The root, where a search begins.
    fn root(&self, tree: usize) -> Place {
        (self.engine().trees[tree].root(), 0)
    }

    async fn first_latched(&self, tree: usize, key: u32) -> Option<(u32, u32)> {
        let mut place = self.latched_root(tree, Mode::Shared).await;
        let height = self.engine().trees[tree].height;
        for _ in 0..height {
            self.search(tree, place);
            let child = self.engine().trees[tree].child(place, key);
            place = self.step_to(tree, place, child).await;
        }
        loop {
            self.search(tree, place);
            let (found, right) = self.look(tree, place, key);
            match right.filter(|_| found.is_none()) {
                Some(right) if right.0 == place.0 => place = right,
                Some(right) => place = self.step_to(tree, place, right).await,
                None => {
                    self.unlatch(LatchId::Group(tree, place.0), Mode::Shared).await;
                    return found;
                }
            }
        }
    }

    /// Searches a leaf: its result, and the leaf to its right.
    fn look(&self, tree: usize, place: Place, key: u32) -> (Option<(u32, u32)>, Option<Place>) {
        let engine = self.engine();
        let tree = &engine.trees[tree];
        (tree.at_least(place, key), tree.right_of(place))
    }

    /// Moves from one latched group to another.
    async fn step_to(&self, tree: usize, from: Place, to: Place) -> Place {
        self.latch(LatchId::Group(tree, to.0), Mode::Shared).await;
        self.unlatch(LatchId::Group(tree, from.0), Mode::Shared).await;
        to
    }

    /// Latches the root; repeated if the tree grew meanwhile.
    async fn latched_root(&self, tree: usize, mode: Mode) -> Place {
        loop {
            let place = self.root(tree);
            self.latch(LatchId::Group(tree, place.0), mode).await;
            if self.root(tree) == place {
                return place;
            }
            self.unlatch(LatchId::Group(tree, place.0), mode).await;
        }
    }

    async fn first_free(&self, tree: usize, key: u32) -> Result<Option<(u32, u32)>, Restart> {
        let (mut place, mut version) = self.descend_free(tree, key, None).await?;
        loop {
            self.search(tree, place);
            let (found, right) = self.look(tree, place, key);
            let next = right.filter(|_| found.is_none());
            let Some(next) = next else {
                self.same(tree, place, version).await?;
                return Ok(found);
            };
            let seen = match next.0 == place.0 {
                true => version,
                false => self.version(LatchId::Group(tree, next.0)).await,
            };
            self.same(tree, place, version).await?;
            (place, version) = (next, seen);
        }
    }

    async fn same(&self, tree: usize, place: Place, version: u64) -> Result<(), Restart> {
        match self.is_version(LatchId::Group(tree, place.0), version).await {
            true => Ok(()),
            false => Err(Restart),
        }
    }

    /// The leaf of a key and its version; records the nodes above it with theirs.
    async fn descend_free(
        &self,
        tree: usize,
        key: u32,
        mut above: Option<&mut Vec<(Place, u64)>>,
    ) -> Result<(Place, u64), Restart> {
        let mut place = self.root(tree);
        let mut version = self.version(LatchId::Group(tree, place.0)).await;
        if self.root(tree) != place {
            return Err(Restart);
        }
        let height = self.engine().trees[tree].height;
        for _ in 0..height {
            self.search(tree, place);
            let child = self.engine().trees[tree].child(place, key);
            let seen = self.version(LatchId::Group(tree, child.0)).await;
            self.same(tree, place, version).await?;
            if let Some(above) = &mut above {
                above.push((place, version));
            }
            (place, version) = (child, seen);
        }
        Ok((place, version))
    }

    /// The nodes from a key's leaf up to the root, and the exclusively latched groups: all that a
    /// change may affect. `None` if it has to restart.
    async fn reach(&self, tree: usize, key: u32) -> (Option<Path>, Vec<u32>) {
        match self.index {
            Index::Latched => self.reach_latched(tree, key).await,
            Index::LockFree => self.reach_free(tree, key).await,
        }
    }

    /// First with shared latches above the leaf; if the leaf is full, with exclusive latches,
    /// released from above where a split can't propagate.
    async fn reach_latched(&self, tree: usize, key: u32) -> (Option<Path>, Vec<u32>) {
        let mut place = self.latched_root(tree, Mode::Shared).await;
        let height = self.engine().trees[tree].height;
        let mut path = vec![place];
        for level in 0..height {
            self.search(tree, place);
            let child = self.engine().trees[tree].child(place, key);
            let mode = if level + 1 == height { Mode::Exclusive } else { Mode::Shared };
            self.latch(LatchId::Group(tree, child.0), mode).await;
            self.unlatch(LatchId::Group(tree, place.0), Mode::Shared).await;
            place = child;
            path.push(place);
        }
        path.reverse();
        self.search(tree, place);
        if self.engine().trees[tree].leaf_has_room(place) {
            return (Some(path), vec![place.0]);
        }
        self.unlatch(LatchId::Group(tree, place.0), Mode::Exclusive).await;
        self.reach_alone(tree, key).await
    }

    async fn reach_alone(&self, tree: usize, key: u32) -> (Option<Path>, Vec<u32>) {
        let mut place = self.latched_root(tree, Mode::Exclusive).await;
        let height = self.engine().trees[tree].height;
        let (mut path, mut held) = (vec![place], vec![place.0]);
        for _ in 0..height {
            self.search(tree, place);
            place = self.engine().trees[tree].child(place, key);
            self.latch(LatchId::Group(tree, place.0), Mode::Exclusive).await;
            path.push(place);
            held.push(place.0);
            if self.engine().trees[tree].has_room(place.0) {
                // A split ends here, with a separator in the node above.
                let above: Vec<u32> = held.drain(..held.len() - 2).collect();
                self.leave(tree, above).await;
            }
        }
        path.reverse();
        self.search(tree, place);
        (Some(path), held)
    }

    async fn reach_free(&self, tree: usize, key: u32) -> (Option<Path>, Vec<u32>) {
        let mut way = Vec::new();
        let Ok(leaf) = self.descend_free(tree, key, Some(&mut way)).await else {
            return (None, Vec::new());
        };
        way.push(leaf);
        way.reverse();
        self.search(tree, leaf.0);
        let path: Path = way.iter().map(|(place, _)| *place).collect();
        let count = self.reached(tree, &path);
        let mut held = Vec::new();
        // From above, in the order of latched access.
        for (place, version) in way[..count].iter().rev() {
            if !self.swap(LatchId::Group(tree, place.0), *version).await {
                self.engine().events.restarts += 1;
                self.leave(tree, held).await;
                return (None, Vec::new());
            }
            held.push(place.0);
        }
        (Some(path), held)
    }

    /// Number of nodes of a path whose groups an insertion changes.
    fn reached(&self, tree: usize, path: &Path) -> usize {
        let engine = self.engine();
        let tree = &engine.trees[tree];
        if tree.leaf_has_room(path[0]) {
            return 1;
        }
        let full = path.iter().take_while(|place| !tree.has_room(place.0)).count();
        // The root is a group of one: it is never full, but its only node may be.
        (full + 2).min(path.len())
    }
}

/// A concurrent change was detected: start from the root.
struct Restart;
