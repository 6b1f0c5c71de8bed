//! `workahead scheduler` where there is nothing to schedule: wrong words, and a kernel without a
//! scheduler of ours. What it does where there is one is tried in a guest
//! (crates/schedule/scheduler).
#![cfg(feature = "scheduler")]

mod process;

use process::Place;

#[test]
fn wrong_words_are_wrong_use() {
    let place = Place::new();
    for (word, named) in [("bonus", "NAME=VALUE"), ("speed=1", "speed"), ("key=pid", "cgroup")] {
        let said = place.fails(&["scheduler", "run", word], 2);
        assert!(said.contains(named), "{said}");
    }
    place.fails(&["scheduler", "test", "bonus"], 2);
    let said = place.fails(&["scheduler", "run", "max-delay=soon"], 2);
    assert!(said.contains("10ms"), "{said}");
    place.fails(&["scheduler", "run", "--metrics", "9100"], 2);
    let said = place.fails(&["scheduler", "tune", "--delay-max", "soon"], 2);
    assert!(said.contains("50ms"), "{said}");
}

#[test]
fn nothing_runs_here() {
    let place = Place::new();
    for action in ["stats", "stop", "test"] {
        let said = place.fails(&["scheduler", action], 1);
        let whys = ["sched_ext", "isn't running", "needs root"];
        assert!(whys.iter().any(|why| said.contains(why)), "{said}");
    }
}
