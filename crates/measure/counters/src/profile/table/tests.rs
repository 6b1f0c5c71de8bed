//! Tables from stacks that chance has made, against sums taken stack by stack.

use proptest::prelude::*;

use super::*;

/// A profile of stacks written as in [`Profile::folded`]; a name in capitals is of the kernel, one
/// with a plus is unresolved. Each sample stands for ten events.
pub(crate) fn profile(folded: &[(&str, u64)]) -> Profile {
    let mut frames = Vec::new();
    let stack = |(names, samples): &(&str, u64)| {
        let numbers = names.split(';').map(|name| {
            let kernel = name.chars().all(char::is_uppercase);
            let kind = match name {
                "[truncated]" => Kind::Cut,
                _ if name.contains('+') => Kind::Unresolved,
                _ if kernel => Kind::Kernel,
                _ => Kind::User,
            };
            frames.push(Frame::new(name, "m", kind));
            (frames.len() - 1) as u32
        });
        Stack { frames: numbers.collect(), samples: *samples, events: samples * 10 }
    };
    let stacks = folded.iter().map(stack).collect();
    Profile::of(Clock::CpuClock, frames, stacks)
}

fn function<'a>(profile: &'a Profile, name: &str) -> &'a Function {
    profile.functions.iter().find(|f| f.frame.name == name).expect("was seen")
}

#[test]
fn own_and_total_samples_are_distinguished() {
    let table = profile(&[("a;b;c", 5), ("a;b", 3), ("a;c;c", 2), ("a;b;c", 1)]);
    let counts = |name| {
        let function = function(&table, name);
        (function.self_samples, function.total_samples, function.total_events)
    };
    assert_eq!(counts("a"), (0, 11, 110));
    assert_eq!(counts("b"), (3, 9, 90));
    assert_eq!(counts("c"), (8, 8, 80));
    assert_eq!(table.functions[0].frame.name, "c");
    assert_eq!(table.folded(), "a;b 3\na;b;c 6\na;c;c 2\n");
}

#[test]
fn the_top_names_functions_and_says_what_is_left() {
    let table = profile(&[("a;b", 50), ("a;c", 20), ("a;m+0x10", 20), ("[truncated];K", 10)]);
    let top = table.top(1).expect("samples");
    assert_eq!(top.rows.len(), 1);
    assert_eq!((top.rows[0].frame.name.as_str(), top.rows[0].samples), ("b", 50));
    assert_eq!((top.rows[0].share, top.rest, top.unresolved), (0.5, 0.3, 0.2));
    assert!(table.functions.iter().all(|function| function.frame.kind != Kind::Cut));
    assert_eq!(profile(&[]).top(3), None);
    assert_eq!(profile(&[]).unresolved(), None);
}

#[test]
fn small_stacks_are_counted_with_their_callers() {
    let table = profile(&[("a;b;c", 1), ("a;b;d", 1), ("a;x", 9998), ("q", 1)]);
    assert_eq!(table.folded(), "a 2\na;x 9998\nq 1\n");
    assert_eq!(function(&table, "c").self_samples, 1);
    // Together they are large enough to stay one level down.
    let table = profile(&[("a;b;c", 3), ("a;b;d", 3), ("a;x", 9994)]);
    assert_eq!(table.folded(), "a;b 6\na;x 9994\n");
}

#[test]
fn a_comparison_begins_with_the_largest_difference() {
    let before = profile(&[("a;b", 50), ("a;c", 50)]);
    let after = profile(&[("a;b", 10), ("a;d", 10), ("a;c", 20)]);
    let deltas = before.compare(&after).expect("the same clock");
    let rows: Vec<_> = deltas.iter().map(|d| (d.frame.name.as_str(), d.before, d.after)).collect();
    assert_eq!(rows[0], ("b", 0.5, 0.25));
    assert_eq!(rows[1], ("d", 0.0, 0.25));
    assert_eq!(before.compare(&profile(&[])), None);
    let cycles = Profile { clock: Clock::Cycles, ..after };
    assert_eq!(before.compare(&cycles), None);
    assert_eq!(before.merge(&cycles), None);
}

/// The stacks of one of them may not have been kept; its samples count all the same.
#[test]
fn a_run_without_stacks_merges_with_its_functions() {
    let (one, two) = (profile(&[("a;b", 30), ("a", 10)]), profile(&[("a;b", 20), ("c", 40)]));
    let bare = Profile { stacks: Vec::new(), frames: Vec::new(), ..two.clone() };
    let (whole, merged) = (one.merge(&two).unwrap(), one.merge(&bare).unwrap());
    assert_eq!((merged.samples, merged.events), (100, whole.events));
    assert_eq!(merged.functions, whole.functions);
    assert_eq!(merged.stacks, one.stacks);
}

/// A file may say anything of each part.
#[test]
fn sums_of_parts_end_at_the_largest_number() {
    let most = profile(&[("a;b", u64::MAX / 10)]);
    let both = most.merge(&most).unwrap();
    assert_eq!((both.events, both.functions[0].total_events), (u64::MAX, u64::MAX));
}

#[test]
fn names_have_a_length_that_a_result_may_have() {
    let long = "ä".repeat(NAME_BYTES_MAX);
    let stack = format!("x{long};b");
    let table = profile(&[(stack.as_str(), 50)]);
    assert_eq!(table.check(), Ok(()), "a stranger's program may have any names");
    let frame = Frame { name: long.clone(), module: String::new(), kind: Kind::User };
    let module = Frame { name: String::new(), module: long.clone(), kind: Kind::User };
    let longer = [
        Profile { frames: vec![frame.clone()], ..table.clone() },
        Profile { frames: vec![module], ..table.clone() },
        Profile {
            functions: vec![Function { frame, ..table.functions[0].clone() }],
            ..table.clone()
        },
        Profile { clock: Clock::Event(long), ..table.clone() },
    ];
    for profile in longer.map(|one| Profile { stacks: Vec::new(), ..one }) {
        assert_eq!(profile.check(), Err("a name in it has more than 64 KiB".to_owned()));
    }
}

#[test]
fn a_profile_survives_its_file() {
    let table = profile(&[("a;b", 50), ("a;K", 20), ("a;m+0x10", 20)]);
    let text = serde_json::to_string(&table).expect("written");
    assert_eq!(serde_json::from_str::<Profile>(&text).expect("read"), table);
}

fn stacks() -> impl Strategy<Value = Vec<(String, u64)>> {
    let name = proptest::sample::select(vec!["a", "b", "c", "d", "K", "m+0x1"]);
    let names = proptest::collection::vec(name, 1..6).prop_map(|names| names.join(";"));
    let samples = prop_oneof![1u64..4, 1000u64..5000];
    proptest::collection::vec((names, samples), 1..40)
}

fn made(stacks: &[(String, u64)]) -> Profile {
    let stacks: Vec<(&str, u64)> = stacks.iter().map(|(names, n)| (names.as_str(), *n)).collect();
    profile(&stacks)
}

proptest! {
    #[test]
    fn nothing_is_lost_and_shares_make_one(stacks in stacks(), n in 0usize..8) {
        let table = made(&stacks);
        let all: u64 = stacks.iter().map(|(_, samples)| samples).sum();
        prop_assert_eq!(table.samples, all);
        prop_assert_eq!(table.stacks.iter().map(|stack| stack.samples).sum::<u64>(), all);
        prop_assert_eq!(table.functions.iter().map(|f| f.self_samples).sum::<u64>(), all);
        for function in &table.functions {
            let name = function.frame.name.as_str();
            let own = stacks.iter().filter(|(names, _)| names.rsplit(';').next() == Some(name));
            let total = stacks.iter().filter(|(names, _)| names.split(';').any(|n| n == name));
            let sum = |(_, samples): &(String, u64)| *samples;
            prop_assert_eq!(function.self_samples, own.map(sum).sum::<u64>());
            prop_assert_eq!(function.total_samples, total.map(sum).sum::<u64>());
        }
        let top = table.top(n).expect("samples");
        prop_assert!(top.rows.len() <= n);
        let shares: f64 = top.rows.iter().map(|row| row.share).sum();
        prop_assert!(shares <= 1.0 + 1e-12);
        prop_assert!((shares + top.rest + top.unresolved - 1.0).abs() < 1e-9);
        prop_assert!(top.rows.is_sorted_by(|one, next| one.share >= next.share));
    }

    #[test]
    fn remaining_stacks_are_large_or_outermost(stacks in stacks()) {
        let table = made(&stacks);
        let least = table.events as f64 * 0.0005;
        for stack in &table.stacks {
            prop_assert!(stack.frames.len() == 1 || stack.events as f64 >= least);
        }
        let used: std::collections::BTreeSet<u32> =
            table.stacks.iter().flat_map(|stack| stack.frames.clone()).collect();
        prop_assert_eq!(used.len(), table.frames.len());
    }

    #[test]
    fn two_runs_merge_to_the_functions_of_one(one in stacks(), two in stacks()) {
        let merged = made(&one).merge(&made(&two)).expect("the same clock");
        let both: Vec<_> = one.iter().chain(&two).cloned().collect();
        let whole = made(&both);
        prop_assert_eq!(&merged.functions, &whole.functions);
        prop_assert_eq!(merged.samples, whole.samples);
        prop_assert_eq!(merged.events, whole.events);
        prop_assert_eq!(merged.stacks.iter().map(|s| s.events).sum::<u64>(), whole.events);
        let deltas = merged.compare(&whole).expect("samples");
        prop_assert!(deltas.iter().all(|delta| delta.before == delta.after));
    }
}
