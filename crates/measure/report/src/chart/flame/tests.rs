//! Drawings of profiles made by hand.

use proptest::prelude::*;
use workahead_counters::profile::{Clock, Stack};

use super::*;
use crate::chart::svg::tests::is_balanced;

fn frame(name: &str, kind: Kind) -> Frame {
    Frame { name: name.into(), module: "postgres".into(), kind }
}

/// A profile of stacks of places in these frames, with as many events as samples.
fn profile(frames: Vec<Frame>, stacks: &[(&[u32], u64)]) -> Profile {
    let stack = |(frames, samples): &(&[u32], u64)| Stack {
        frames: frames.to_vec(),
        samples: *samples,
        events: *samples,
    };
    let samples = stacks.iter().map(|(_, samples)| samples).sum();
    Profile {
        clock: Clock::Cycles,
        frequency_hz: 99,
        duration_s: 1.0,
        samples,
        events: samples,
        kernel_samples: None,
        lost: 0,
        truncated: 0,
        unsampled_threads: 0,
        functions: Vec::new(),
        frames,
        stacks: stacks.iter().map(stack).collect(),
    }
}

/// The left end and the width of the rectangle that bears this title.
fn place(drawn: &str, title: &str) -> (f64, f64) {
    let shapes = drawn.split("<rect ").skip(1);
    let mut found = shapes.filter(|shape| shape.contains(&format!("<title>{title}")));
    let shape = found.next().expect("was drawn");
    let number = |name: &str| -> f64 {
        let (_, rest) = shape.split_once(&format!("{name}=\"")).expect("an attribute");
        rest.split('"').next().expect("quoted").parse().expect("a number")
    };
    (number(" x").max(0.0), number("width"))
}

fn example() -> Profile {
    let frames = vec![
        frame("main", Kind::User),
        frame("scan<T>", Kind::User),
        frame("read", Kind::Kernel),
        frame("postgres+0x12", Kind::Unresolved),
        frame("tiny", Kind::User),
    ];
    profile(frames, &[(&[0, 1], 5000), (&[0, 1, 2], 2500), (&[0, 3], 2499), (&[0, 4], 1)])
}

#[test]
fn widths_are_shares_and_callers_lie_below() {
    let drawn = flame(&example(), usize::MAX);
    assert!(is_balanced(&drawn), "{drawn}");
    assert_eq!(place(&drawn, "main: 100 %"), (0.0, 999.0));
    assert_eq!(place(&drawn, "scan&lt;T&gt;: 75.0 %").1, 749.0);
    assert_eq!(place(&drawn, "read (kernel): 25.0 %").1, 249.0);
    assert!(place(&drawn, "postgres+0x12 (no name known)").1 > 248.0);
    // A frame begins where its caller does or later.
    let (scan, read) = (place(&drawn, "scan&lt;T&gt;").0, place(&drawn, "read").0);
    assert_eq!(scan, read);
    for class in ["flame user", "flame kernel", "flame unresolved"] {
        assert!(drawn.contains(&format!("class=\"{class}\"")), "{class}");
    }
}

#[test]
fn thin_frames_are_left_out_and_counted() {
    let drawn = flame(&example(), usize::MAX);
    assert!(!drawn.contains("tiny"));
    assert!(drawn.contains("10,000 samples by cycles; 1 frames too thin to draw"), "{drawn}");
}

#[test]
fn without_samples_it_says_so() {
    let drawn = flame(&profile(Vec::new(), &[]), usize::MAX);
    assert!(is_balanced(&drawn));
    assert!(drawn.contains("no samples<"), "{drawn}");
}

#[test]
fn the_style_sheet_knows_every_class() {
    let style = include_str!("../../../templates/style.css");
    for class in [".flame.user", ".flame.kernel", ".flame.unresolved", ".flame.cut", ".flame.all"] {
        assert!(style.contains(class), "{class}");
    }
    assert!(style.contains(".flame-name"));
}

proptest! {
    #[test]
    fn any_profile_gives_a_whole_drawing_without_script(
        names in proptest::collection::vec("\\PC{1,40}", 1..6),
        stacks in proptest::collection::vec(
            (proptest::collection::vec(0u32..6, 1..9), 1u64..1000), 1..20,
        ),
    ) {
        let kinds = [Kind::User, Kind::Kernel, Kind::Unresolved, Kind::Cut];
        let frames: Vec<Frame> = (0..6)
            .map(|at| frame(&names[at % names.len()], kinds[at % kinds.len()]))
            .collect();
        let stacks: Vec<(&[u32], u64)> =
            stacks.iter().map(|(frames, samples)| (&frames[..], *samples)).collect();
        let drawn = flame(&profile(frames, &stacks), usize::MAX);
        prop_assert!(is_balanced(&drawn));
        prop_assert!(!drawn.contains("<script") && !drawn.contains("NaN"));
        for shape in drawn.split("<rect ").skip(1) {
            let (_, rest) = shape.split_once(" width=\"").expect("a width");
            let width: f64 = rest.split('"').next().expect("quoted").parse().expect("a number");
            prop_assert!((0.0..=1000.0).contains(&width));
        }
    }
}

#[test]
fn long_names_are_cut() {
    let long = "ä".repeat(60_000);
    let frames = ["1", "2"].map(|end| frame(&format!("{long}{end}"), Kind::User));
    let stacks: [(&[u32], u64); 3] = [(&[0], 5), (&[1], 5), (&[0, 1, 0, 1], 90)];
    let drawn = flame(&profile(frames.into(), &stacks), usize::MAX);
    assert!(is_balanced(&drawn) && drawn.len() < 20_000, "{}", drawn.len());
    // Four keys and all samples; frames of one begin are two.
    assert_eq!(drawn.matches("<rect ").count(), 5 + 5);
}

#[test]
fn a_drawing_keeps_to_its_bytes() {
    let frames = (0..400).map(|at| frame(&format!("function_{at}"), Kind::User)).collect();
    let stacks: Vec<[u32; 3]> = (0..398).map(|at| [at, at + 1, at + 2]).collect();
    let stacks: Vec<(&[u32], u64)> =
        stacks.iter().zip(1..).map(|(stack, samples)| (&stack[..], samples)).collect();
    let profile = profile(frames, &stacks);
    let all = flame(&profile, usize::MAX);
    for most_bytes in [100_000, 20_000] {
        let drawn = flame(&profile, most_bytes);
        assert!(all.len() > most_bytes && drawn.len() <= most_bytes, "{}", drawn.len());
        assert!(is_balanced(&drawn) && drawn.contains("frames too thin to draw"));
    }
}
