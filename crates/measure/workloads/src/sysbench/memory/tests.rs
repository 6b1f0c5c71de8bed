//! Quotas, stops, and that memory is really touched.

use proptest::prelude::*;

use super::*;

fn options(flavour: Flavour) -> Options {
    Options {
        flavour,
        threads: 3,
        block_bytes: 1 << 12,
        total_bytes: 1 << 17,
        scope: Scope::Global,
        operation: Operation::Write,
        access: Access::Sequential,
        between: BetweenBlocks::GoOn,
        pages: Pages::Small,
        seed: 1,
    }
}

fn ran(options: Options) -> MemoryRun {
    run(&options, &AtomicBool::new(false)).unwrap()
}

#[test]
fn the_total_is_shared_in_0_4_and_divided_in_1_0() {
    let old = ran(options(Flavour::V04));
    assert_eq!((old.passes.iter().sum::<u64>(), old.bytes), (32, 1 << 17));
    let new = ran(options(Flavour::V10));
    assert_eq!(new.passes, [10, 10, 10], "32 blocks are ten for each of three");
    assert_eq!(new.cpu_s.len(), 3);
    let odd = Options { block_bytes: 24 << 10, ..options(Flavour::V04) };
    assert_eq!(ran(odd).passes.iter().sum::<u64>(), 6, "until the total is reached");
}

#[test]
fn a_pass_touches_what_it_says() {
    let block: Vec<AtomicU64> = (0..512).map(AtomicU64::new).collect();
    let sum = (0..512).fold(0, |sum, value| sum ^ value);
    assert_eq!(pass::sequential(&block, Operation::Read), sum);
    assert_eq!(pass::sequential(&block, Operation::None), 0);
    assert_eq!(block[7].get(), 7);
    pass::sequential(&block, Operation::Write);
    assert_eq!((block[0].get(), block[511].get()), (512, 1));
    // At random, every place is as likely: of 512 draws about 512 (1 - 1/e) places are written.
    let block: Vec<AtomicU64> = (0..512).map(|_| AtomicU64::new(u64::MAX)).collect();
    pass::random(&block, Operation::Write, &mut Random::new(1, 2, 3));
    let written = block.iter().filter(|element| element.get() != u64::MAX).count();
    assert!((280..370).contains(&written), "{written}");
    // 0.4 goes to one place only.
    let block: Vec<AtomicU32> = (0..512).map(|_| AtomicU32::new(0)).collect();
    pass::random(&block, Operation::Write, &mut Random::new(1, 2, 3));
    assert_eq!(block.iter().filter(|element| element.get() == 1).count(), 1);
}

#[test]
fn a_stop_ends_it() {
    let stop = AtomicBool::new(true);
    let endless = Options { total_bytes: 1 << 60, ..options(Flavour::V10) };
    let ran = run(&endless, &stop).unwrap();
    assert_eq!(ran.bytes, 0);
}

#[test]
fn working_sets_are_blocks_of_their_scope() {
    let global = options(Flavour::V04);
    assert_eq!(global.working_set_bytes(), 4096);
    assert_eq!(Options { scope: Scope::Local, ..global }.working_set_bytes(), 3 * 4096);
}

#[test]
fn what_sysbench_refuses_is_refused() {
    let new = options(Flavour::V10);
    let old = options(Flavour::V04);
    for wrong in [
        Options { block_bytes: 24 << 10, ..new },
        Options { block_bytes: 4, ..new },
        Options { block_bytes: 6, ..old },
        Options { block_bytes: 0, ..old },
        Options { threads: 0, ..new },
        Options { total_bytes: 8192, ..new },
        Options { block_bytes: 1 << 60, total_bytes: u64::MAX, ..new },
    ] {
        assert!(run(&wrong, &AtomicBool::new(true)).is_err(), "{wrong:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn every_combination_does_its_passes(
        old: bool, local: bool, random: bool, yields: bool,
        operation in prop::sample::select(vec![
            Operation::Read, Operation::Write, Operation::None,
        ]),
        threads in 1_u32..5, block in 3_u32..10, blocks in 5_u64..20,
    ) {
        let flavour = if old { Flavour::V04 } else { Flavour::V10 };
        let options = Options {
            threads,
            operation,
            block_bytes: 1 << block,
            total_bytes: blocks << block,
            scope: if local { Scope::Local } else { Scope::Global },
            access: if random { Access::Random } else { Access::Sequential },
            between: if yields { BetweenBlocks::Yield } else { BetweenBlocks::GoOn },
            ..options(flavour)
        };
        let ran = ran(options);
        prop_assert_eq!(ran.passes.iter().sum::<u64>(), options.passes_of_all());
        prop_assert_eq!(ran.bytes, options.passes_of_all() << block);
    }
}
