//! Functions of stacks; equal stacks merged, small ones counted with their callers.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::{Frame, Function, Kind, Stack};

/// Stacks with a smaller share are counted as their callers: a flame graph can't show them.
const STACK_SHARE_LEAST: f64 = 0.0005;

/// Samples and events by stack.
type StackCounts = BTreeMap<Vec<u32>, (u64, u64)>;

/// Adds as far as a number goes: a file may say anything of each part.
fn add(to: &mut u64, more: u64) {
    *to = to.saturating_add(more);
}

/// A sum, as far as a number goes.
pub(super) fn sum(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}

/// Each frame and each stack once, in an order of their own.
pub(super) fn unique(frames: Vec<Frame>, stacks: Vec<Stack>) -> (Vec<Frame>, Vec<Stack>) {
    let used: HashSet<u32> = stacks.iter().flat_map(|stack| &stack.frames).copied().collect();
    let by_number = |number: &u32| &frames[*number as usize];
    let mut kept: Vec<Frame> = used.iter().map(by_number).cloned().collect();
    kept.sort_unstable();
    kept.dedup();
    let place = |number: &u32| {
        let at = kept.binary_search(by_number(number)).expect("every frame in use was kept");
        u32::try_from(at).expect("fewer than before")
    };
    let mut counted = StackCounts::new();
    for stack in &stacks {
        let weight = counted.entry(stack.frames.iter().map(place).collect()).or_default();
        add(&mut weight.0, stack.samples);
        add(&mut weight.1, stack.events);
    }
    let stack = |(frames, (samples, events))| Stack { frames, samples, events };
    let stacks = counted.into_iter().map(stack).collect();
    (kept, stacks)
}

/// Samples and events of each function, the largest first.
pub(super) fn functions(frames: &[Frame], stacks: &[Stack]) -> Vec<Function> {
    let empty = |frame: &Frame| Function {
        frame: frame.clone(),
        self_samples: 0,
        total_samples: 0,
        self_events: 0,
        total_events: 0,
    };
    let mut functions: Vec<Function> = frames.iter().map(empty).collect();
    for stack in stacks {
        if let Some(innermost) = stack.frames.last() {
            add(&mut functions[*innermost as usize].self_samples, stack.samples);
            add(&mut functions[*innermost as usize].self_events, stack.events);
        }
        // A function that calls itself has each sample once.
        let once: HashSet<u32> = stack.frames.iter().copied().collect();
        for frame in once {
            add(&mut functions[frame as usize].total_samples, stack.samples);
            add(&mut functions[frame as usize].total_events, stack.events);
        }
    }
    functions.retain(|function| function.frame.kind != Kind::Cut);
    sort(&mut functions);
    functions
}

fn sort(functions: &mut [Function]) {
    functions.sort_by(|one, other| {
        let key = |f: &Function| (Reverse(f.self_events), Reverse(f.total_events));
        key(one).cmp(&key(other)).then_with(|| one.frame.cmp(&other.frame))
    });
}

/// The functions of two profiles as one.
pub(super) fn added(one: &[Function], other: &[Function]) -> Vec<Function> {
    let mut sums: HashMap<&Frame, Function> = HashMap::new();
    for function in one.iter().chain(other) {
        match sums.get_mut(&function.frame) {
            None => drop(sums.insert(&function.frame, function.clone())),
            Some(sum) => {
                add(&mut sum.self_samples, function.self_samples);
                add(&mut sum.total_samples, function.total_samples);
                add(&mut sum.self_events, function.self_events);
                add(&mut sum.total_events, function.total_events);
            }
        }
    }
    let mut functions: Vec<Function> = sums.into_values().collect();
    sort(&mut functions);
    functions
}

/// Counts every stack below the least share as its caller's, the deepest first.
pub(super) fn prune(
    frames: Vec<Frame>,
    stacks: Vec<Stack>,
    events: u64,
) -> (Vec<Frame>, Vec<Stack>) {
    let least = events as f64 * STACK_SHARE_LEAST;
    let mut by_depth: BTreeMap<Reverse<usize>, StackCounts> = BTreeMap::new();
    for stack in stacks {
        let depth = by_depth.entry(Reverse(stack.frames.len())).or_default();
        depth.insert(stack.frames, (stack.samples, stack.events));
    }
    let mut kept = Vec::new();
    while let Some((Reverse(depth), level)) = by_depth.pop_first() {
        for (mut path, (samples, events)) in level {
            if depth <= 1 || events as f64 >= least {
                kept.push(Stack { frames: path, samples, events });
                continue;
            }
            path.pop();
            let caller = by_depth.entry(Reverse(depth - 1)).or_default();
            let weight = caller.entry(path).or_default();
            add(&mut weight.0, samples);
            add(&mut weight.1, events);
        }
    }
    unique(frames, kept)
}
