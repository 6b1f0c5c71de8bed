//! Programs that end with the process that started them, however early that ends.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use workahead_machine::Sysroot;
use workahead_machine::process::{Guard, Tree};

/// In the process that is killed: whether it sets a guard before.
const GUARDED: &str = "WORKAHEAD_TEST_GUARDED";
/// Much more than a shell takes.
const SOON: Duration = Duration::from_secs(20);

#[test]
fn a_program_begins_only_with_its_guard() {
    let place = tempfile::tempdir().unwrap();
    let made = place.path().join("made");
    let start = || Guard::waiting("touch").arg(&made).spawn().unwrap();
    let mut child = start();
    std::thread::sleep(Duration::from_millis(50));
    assert!(child.try_wait().unwrap().is_none(), "it waits");
    drop(child.stdin.take());
    assert!(!child.wait().unwrap().success() && !made.exists());

    let mut child = start();
    drop(Guard::over(&mut child, Signal::KILL).unwrap());
    assert!(!child.wait().unwrap().success() && !made.exists(), "it was not let");

    let mut child = start();
    let mut guard = Guard::over(&mut child, Signal::KILL).unwrap();
    guard.begin(b"");
    assert!(child.wait().unwrap().success() && made.exists());
}

#[test]
fn a_program_gets_all_of_its_input() {
    let input = "a line\nand more\n".repeat(20_000);
    let mut child = Guard::waiting("cat").stdout(Stdio::piped()).spawn().unwrap();
    let mut guard = Guard::over(&mut child, Signal::KILL).unwrap();
    let mut output = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut read = String::new();
        output.read_to_string(&mut read).unwrap();
        read
    });
    guard.begin(input.as_bytes());
    assert!(child.wait().unwrap().success());
    assert!(reader.join().unwrap() == input, "all of it, once");
}

/// Also the other half of itself: a process that starts a program, says its number and waits.
#[test]
#[expect(clippy::zombie_processes, reason = "the half that starts the program is killed")]
fn a_program_ends_with_a_killed_process() {
    if let Some(guarded) = std::env::var_os(GUARDED) {
        let mut child = Guard::waiting("sleep").arg("60").spawn().unwrap();
        let mut guard = None;
        if guarded == "yes" {
            let guard = guard.insert(Guard::over(&mut child, Signal::TERM).unwrap());
            guard.begin(b"");
        }
        println!("started {}", child.id());
        loop {
            std::thread::park();
        }
    }
    for guarded in ["yes", "no"] {
        let test = "a_program_ends_with_a_killed_process";
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(GUARDED, guarded)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let program = number_said_by(&mut process);
        let mut tree = Tree::of(program);
        assert_eq!(tree.look(&Sysroot::live()).running(), 1);
        process.kill().unwrap();
        process.wait().unwrap();
        let killed = Instant::now();
        while tree.look(&Sysroot::live()).running() > 0 {
            assert!(killed.elapsed() < SOON, "guarded: {guarded}; {program} runs on");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn number_said_by(process: &mut Child) -> u32 {
    let lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let said = lines.map_while(Result::ok);
    let number = said.filter_map(|line| line.split_once("started ")?.1.trim().parse().ok()).next();
    number.expect("the number of its program")
}
