//! Buffers and pools: sizes, alignment, zeros, bounds, pages as the kernel counts them.

use super::*;

#[test]
fn a_buffer_is_zeroed_aligned_and_writable() {
    for pages in [Pages::Huge, Pages::Small] {
        for len in [0, 1, 511, (HUGE_PAGE_BYTES / 8) + 1] {
            let mut buffer = PageBuffer::<u64>::zeroed(len, pages).unwrap();
            assert_eq!((buffer.len(), buffer.bytes()), (len, len * 8));
            assert_eq!(buffer.as_ptr().addr() % HUGE_PAGE_BYTES, 0);
            assert!(buffer.iter().all(|&value| value == 0));
            buffer.fill(7);
            assert_eq!(buffer.iter().sum::<u64>(), 7 * len as u64);
        }
    }
}

#[test]
fn values_of_no_size_are_values_too() {
    let buffer = PageBuffer::<()>::zeroed(5, Pages::Small).unwrap();
    assert_eq!((buffer.len(), buffer.bytes()), (5, 0));
}

#[test]
fn a_copy_holds_the_same() {
    let values: Vec<u32> = (0..5000).collect();
    let copy = PageBuffer::copied(&values, Pages::Huge).unwrap();
    assert_eq!(&*copy, &values[..]);
    assert!(format!("{copy:?}").starts_with("[0, 1, 2"));
}

#[test]
fn impossible_requests_are_refused_in_one_line() {
    for len in [usize::MAX, usize::MAX / 8, 1 << 60, (1 << 46) / 8] {
        let message = PageBuffer::<u64>::zeroed(len, Pages::Huge).unwrap_err().to_string();
        assert!(message.contains("choose a smaller size") && !message.contains('\n'), "{message}");
    }
}

#[test]
fn small_pages_are_never_huge_and_huge_ones_are_where_the_machine_gives_them() {
    let bytes = 8 * HUGE_PAGE_BYTES;
    let mut small = PageBuffer::<u8>::zeroed(bytes, Pages::Small).unwrap();
    let mut huge = PageBuffer::<u8>::zeroed(bytes, Pages::Huge).unwrap();
    if let Some(untouched) = huge.huge_bytes() {
        assert_eq!(untouched, 0);
    }
    small.fill(1);
    huge.fill(1);
    let (Some(of_small), Some(of_huge)) = (small.huge_bytes(), huge.huge_bytes()) else {
        return; // this kernel does not count
    };
    assert_eq!(of_small, 0);
    assert!(of_huge <= bytes && of_huge % HUGE_PAGE_BYTES == 0, "{of_huge}");
    // Without memory to compact, a machine may give none, but never in ordinary circumstances.
    let given = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    if given.is_ok_and(|setting| !setting.contains("[never]")) {
        assert!(of_huge > 0, "no huge pages on a machine that has them");
    }
}

#[test]
fn neighbours_are_counted_apart() {
    let mut buffers: Vec<_> = (0..4)
        .map(|_| PageBuffer::<u8>::zeroed(2 * HUGE_PAGE_BYTES, Pages::Huge).unwrap())
        .collect();
    buffers[1].fill(1);
    for i in [0, 2, 3] {
        assert!(buffers[i].huge_bytes().is_none_or(|bytes| bytes == 0), "buffer {i}");
    }
}

#[test]
fn a_pool_lends_the_same_memory_again() {
    let pool = Pool::new(64 << 20);
    let mut first = pool.take::<u64>(1 << 20, Pages::Huge).unwrap();
    assert!(first.iter().all(|&value| value == 0), "new memory is zeroed");
    first.fill(5);
    let address = first.as_ptr();
    assert_eq!((pool.lent_bytes(), pool.idle_bytes()), (8 << 20, 0));
    drop(first);
    assert_eq!((pool.lent_bytes(), pool.idle_bytes()), (0, 8 << 20));
    let second = pool.take::<u64>((1 << 20) - 9, Pages::Huge).unwrap();
    assert_eq!(second.as_ptr(), address);
    assert_eq!(second[17], 5, "as its last user left it");
    drop(second);
    let third = pool.take_zeroed::<u32>(2 << 20, Pages::Huge).unwrap();
    assert_eq!(third.as_ptr().cast(), address);
    assert!(third.iter().all(|&value| value == 0));
}

#[test]
fn a_pool_does_not_mix_page_sizes_or_waste_large_mappings() {
    let pool = Pool::new(128 << 20);
    let large = pool.take::<u8>(32 << 20, Pages::Huge).unwrap();
    let address = large.as_ptr();
    drop(large);
    assert_ne!(pool.take::<u8>(32 << 20, Pages::Small).unwrap().as_ptr(), address);
    assert_ne!(pool.take::<u8>(4 << 20, Pages::Huge).unwrap().as_ptr(), address);
    assert_eq!(pool.take::<u8>(20 << 20, Pages::Huge).unwrap().as_ptr(), address);
    pool.clear();
    assert_eq!(pool.idle_bytes(), 0);
}

#[test]
fn a_pool_keeps_its_bound() {
    let pool = Pool::new(8 << 20);
    let held = pool.take::<u8>(6 << 20, Pages::Small).unwrap();
    let message = pool.take::<u8>(3 << 20, Pages::Small).unwrap_err().to_string();
    assert_eq!(
        message,
        "no room for 4194304 bytes in a pool of 8388608 bytes, 6291456 of them in use: \
         choose a smaller size or a larger pool"
    );
    drop(held);
    // Idle buffers make room.
    let other = pool.take::<u8>(8 << 20, Pages::Huge).unwrap();
    assert_eq!((pool.lent_bytes(), pool.idle_bytes()), (8 << 20, 0));
    drop(other);
    assert!(pool.take::<u8>(9 << 20, Pages::Huge).is_err());
}

#[test]
fn a_pool_keeps_no_more_than_its_limit() {
    let pool = Pool::keeping(8 << 20);
    let buffers: Vec<_> =
        [4, 6, 2].map(|mib| pool.take::<u8>(mib << 20, Pages::Small).unwrap()).into();
    assert_eq!((pool.lent_bytes(), pool.idle_bytes()), (12 << 20, 0));
    drop(buffers);
    // The oldest went when the next came.
    assert_eq!((pool.lent_bytes(), pool.idle_bytes()), (0, 8 << 20));
    drop(pool.take::<u8>(16 << 20, Pages::Small).unwrap());
    assert_eq!(pool.idle_bytes(), 8 << 20, "what is too large to be kept makes none go");
}

#[test]
fn a_buffer_may_outlive_its_pool_and_change_threads() {
    let pool = Pool::new(64 << 20);
    let buffers: Vec<_> = (0..4).map(|_| pool.take::<u64>(1000, Pages::Small).unwrap()).collect();
    let copy = pool.clone();
    drop(pool);
    std::thread::scope(|scope| {
        for mut buffer in buffers {
            scope.spawn(move || buffer.fill(3));
        }
    });
    assert_eq!((copy.lent_bytes(), copy.idle_bytes()), (0, 4 * HUGE_PAGE_BYTES));
}
