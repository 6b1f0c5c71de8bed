//! Names are read back as they are written, and wrong ones say what is right.

use super::Technique;

#[test]
fn what_is_written_is_read_back() {
    for text in [
        "sequential",
        "staged:width=7",
        "group:width=64",
        "amac:width=16,hint=l2",
        "rounds:width=1024,hint=none",
        "distance:rows=24,hint=l1",
        "coroutine:width=48",
        "direct-helper:size=256",
        "direct-helper:size=256,throttle=serialize",
        "work-ahead:size=64,guard=none,states=together,direction=forward,dedupe=none,wait=umwait",
        "work-ahead:size=128,guard=none,states=together,helper=off",
        "work-ahead:size=64,guard=mutex,states=apart,direction=forward,dedupe=helper,wait=none",
        "work-ahead:size=64,guard=none,states=together,direction=backward,dedupe=post,wait=spin,\
         pauses=9",
    ] {
        let technique: Technique = text.parse().unwrap();
        assert_eq!(technique.to_string(), text);
    }
}

#[test]
fn usual_values_are_the_papers() {
    let usual: Technique = "work-ahead".parse().unwrap();
    assert_eq!(
        usual.to_string(),
        "work-ahead:size=128,guard=none,states=together,direction=backward,dedupe=none,wait=spin,\
         pauses=1"
    );
}

#[test]
fn wrong_names_options_and_values_say_what_is_right() {
    let message = |text: &str| text.parse::<Technique>().unwrap_err().to_string();
    assert_eq!(
        message("amax"),
        "unknown technique `amax`: use one of sequential, staged, group, amac, rounds, distance, \
         coroutine, work-ahead, direct-helper"
    );
    assert_eq!(message("amac:widht=3"), "unknown option `widht` of `amac`: it takes width, hint");
    assert_eq!(message("amac:width=0"), "`width=0` of `amac` is not a number from 1 to 4096");
    assert_eq!(message("amac:hint=l3"), "`hint=l3` of `amac` is not one of l1, l2");
}
