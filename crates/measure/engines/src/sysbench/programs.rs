//! Several programs at once, each a process with an address space of its own.

use std::io::Write;
use std::process::{Child, Command as Start, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use workahead_machine::process::Guard;
use workahead_study::engine::{Answer, EngineError, Stop};
use workahead_study::worker_process::{Command, Reply, Request};

/// How often a requested stop is noticed.
const LOOK: Duration = Duration::from_millis(50);

/// One program, until it has ended.
struct Program {
    pid: Pid,
    guard: Guard,
    has_ended: bool,
}

impl Program {
    /// It has ended, and another process may have its number.
    fn end(&mut self) {
        self.has_ended = true;
        self.guard.dismiss();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.guard.dismiss();
        if !self.has_ended {
            // Its waiting thread takes its status.
            let _ = kill_process(self.pid, Signal::KILL);
        }
    }
}

/// Runs the request in as many processes, and returns the sum of their answers and the seconds from
/// the start of the first to the end of the last.
pub(super) fn run(
    command: &Command,
    request: &Request,
    programs: usize,
    stop: &Stop,
) -> Result<(Answer, f64), EngineError> {
    let input = request.to_json();
    let start = Instant::now();
    std::thread::scope(|scope| {
        let (ended, ends) = mpsc::channel();
        let mut running = Vec::new();
        let mut children: Vec<Child> = Vec::new();
        for _ in 0..programs {
            match started(command, &input) {
                Ok(child) => children.push(child),
                Err(error) => {
                    for child in &mut children {
                        let _ = child.kill();
                        let _ = child.wait();
                    }
                    return Err(error);
                }
            }
        }
        for (at, child) in children.into_iter().enumerate() {
            let pid = Pid::from_child(&child);
            let guard = Guard::over(pid, Signal::KILL);
            running.push(Program { pid, guard, has_ended: false });
            let ended = ended.clone();
            scope.spawn(move || ended.send((at, child.wait_with_output(), Instant::now())));
        }
        let mut sum = || {
            let (mut sum, mut last) = (Answer::default(), start);
            for _ in 0..programs {
                let (at, output, end) = loop {
                    match ends.recv_timeout(LOOK) {
                        Ok(ended) => break ended,
                        Err(RecvTimeoutError::Timeout) if !stop.is_requested() => {}
                        Err(_) => return Err(EngineError::Stopped),
                    }
                };
                running[at].end();
                let answer = answer_of(&output.map_err(EngineError::failed)?)?;
                sum.rows += answer.rows;
                sum.checksum = sum.checksum.wrapping_add(answer.checksum);
                last = last.max(end);
            }
            Ok((sum, (last - start).as_secs_f64()))
        };
        let sum = sum();
        // Those that are left are killed, and not a process with the number of one that has ended.
        for (at, ..) in ends.try_iter() {
            running[at].end();
        }
        sum
    })
}

fn answer_of(output: &Output) -> Result<Answer, EngineError> {
    let reply = Reply::find(&String::from_utf8_lossy(&output.stdout));
    reply.and_then(|reply| reply.answer).ok_or_else(|| {
        let says = String::from_utf8_lossy(&output.stderr);
        let line = says.lines().last().unwrap_or("it printed nothing");
        EngineError::failed(format!("a program gave no answer: {line}"))
    })
}

fn started(command: &Command, input: &[u8]) -> Result<Child, EngineError> {
    let mut start = Start::new(&command.program);
    start.args(&command.arguments);
    start.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = start.spawn().map_err(EngineError::failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        // One that is gone says why by itself.
        let _ = stdin.write_all(input);
    }
    Ok(child)
}
