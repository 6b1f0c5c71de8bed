//! A table needs what its layout demands, says so, and makes the process grow by no more than a
//! tenth above it, while it is built and afterwards.

mod resident;

use std::fmt::Debug;

use resident::weighed;
use workahead_machine::pages::{HUGE_PAGE_BYTES, Pages};
use workahead_walks::bucket::{self, Load};
use workahead_walks::chained::Chains;
use workahead_walks::columnar;
use workahead_walks::join_index::{Draft, Order, Pairs, UnmatchedRows};
use workahead_walks::random::Random;
use workahead_walks::record::drawn_table;
use workahead_walks::tree::{Fill, Node, Node64, Node128, Tree, TreeError};

/// Counters are kept per thread and lag behind (proc(5)); the allocator keeps a little at hand.
const LAG_BYTES: usize = 1 << 20;

/// The memory of a table.
#[derive(Debug, Clone, Copy)]
struct Layout {
    /// By arithmetic.
    bytes: usize,
    /// Each is rounded up to whole huge pages.
    buffers: usize,
}

impl Layout {
    fn limit_bytes(self) -> usize {
        self.bytes / 10 * 11 + self.buffers * HUGE_PAGE_BYTES + LAG_BYTES
    }
}

fn check<T, E: Debug>(
    name: &str,
    layout: Layout,
    bytes_of: impl Fn(&T) -> usize,
    build: impl FnOnce() -> Result<T, E>,
) {
    let (table, growth) = weighed(|| build().expect("memory for the table"));
    assert_eq!(bytes_of(&table), layout.bytes, "{name} does not say what its layout demands");
    // Every page of these tables was written: a smaller growth means that nothing was seen.
    assert!(growth.stays_bytes >= layout.bytes / 10 * 9, "{name}: {layout:?} {growth:?}");
    assert!(growth.stays_bytes <= layout.limit_bytes(), "{name}: {layout:?} {growth:?}");
    if let Some(peak_bytes) = growth.peak_bytes {
        assert!(peak_bytes <= layout.limit_bytes(), "{name}: {layout:?} {growth:?}");
    }
}

/// One test: in a process of its own, one table after the other.
#[test]
fn tables_are_as_large_as_their_layouts() {
    for pages in [Pages::Huge, Pages::Small] {
        bucket_table(pages);
        chains(pages);
        // Leaves, then inner nodes up to the root, at three quarters: 10 of 14 pairs to a leaf and
        // 23 children to a node of 128 bytes, 5 of 7 and 11 to one of 64.
        tree::<Node128>(pages, 128 * (500_000 + 21_740 + 946 + 42 + 2 + 1));
        tree::<Node64>(pages, 64 * (1_000_000 + 90_910 + 8265 + 752 + 69 + 7 + 1));
        drawn_pairs(pages, Order::Random);
        drawn_pairs(pages, Order::Left);
        found_pairs(pages);
        columns(pages);
    }
}

/// Four entries to 64 bytes at half load, and two reaches of 256 buckets.
fn bucket_table(pages: Pages) {
    let keys: Vec<u64> = (1..=1 << 21).collect();
    let layout = Layout { bytes: ((1 << 20) + 2 * 256) * 64, buffers: 1 };
    assert_eq!(bucket::Table::bytes_for(keys.len(), Load::HALF), Some(layout.bytes));
    check("bucket", layout, bucket::Table::bytes, || {
        bucket::Table::of(&keys, &keys, Load::HALF, pages)
    });
}

/// Four bytes for each of the next power of two from twice the rows, and sixteen a row.
fn chains(pages: Pages) {
    let layout = Layout { bytes: (1 << 23) * 4 + 2_500_000 * 16, buffers: 2 };
    let build = || Chains::build(0..2_500_000, pages);
    check("chained", layout, Chains::bytes, build);
}

fn tree<N: Node>(pages: Pages, bytes: usize) {
    let pairs: Vec<(f32, u32)> = (0..5_000_000).map(|rid| (rid as f32, rid)).collect();
    let load = || -> Result<Tree<N>, TreeError> { Tree::bulk_load(&pairs, Fill::PAPER, pages) };
    check("tree", Layout { bytes, buffers: 1 }, Tree::bytes, load);
}

/// Eight bytes a pair.
fn drawn_pairs(pages: Pages, order: Order) {
    let draft = Draft { pairs: 8_000_000, order, ..Draft::PAPER_OUTER };
    let layout = Layout { bytes: 8 * draft.pairs, buffers: 1 };
    let draw = || draft.draw(&mut Random::of(3), pages);
    check("drawn join index", layout, Pairs::bytes, draw);
}

/// As many, and the two buffers of a hash table to find them by.
fn found_pairs(pages: Pages) {
    let mut random = Random::of(5);
    let left = drawn_table(1_000_000, 1000, &mut random, pages).unwrap();
    let right = drawn_table(8000, 1000, &mut random, pages).unwrap();
    let mut partners = [0_usize; 1001];
    right.iter().for_each(|record| partners[record.key as usize] += 1);
    let count: usize = left.iter().map(|record| partners[record.key as usize]).sum();
    assert!(count > 7_000_000, "{count}");
    let layout = Layout { bytes: 8 * count, buffers: 3 };
    check("found join index", layout, Pairs::bytes, || {
        Pairs::of_tables(&left, &right, UnmatchedRows::Dropped, pages)
    });
}

/// Three columns of four bytes.
fn columns(pages: Pages) {
    let keys: Vec<u32> = (0..5_500_000).collect();
    let layout = Layout { bytes: 12 * keys.len(), buffers: 3 };
    check("columnar", layout, columnar::Table::bytes, || columnar::Table::of_keys(&keys, pages));
}
