//! Several programs at once, each a process with an address space of its own.

use std::process::{Child, Output, Stdio};
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
        if !self.has_ended {
            // Its waiting thread takes its status. It has its guard until then.
            let _ = kill_process(self.pid, Signal::KILL);
        }
        self.guard.dismiss();
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
    std::thread::scope(|scope| {
        let (ended, ends) = mpsc::channel();
        let mut running = Vec::new();
        for at in 0..programs {
            let mut child = waiting(command)?;
            let (pid, ended) = (Pid::from_child(&child), ended.clone());
            let guard = Guard::over(&mut child, Signal::KILL).map_err(EngineError::failed)?;
            running.push(Program { pid, guard, has_ended: false });
            scope.spawn(move || ended.send((at, child.wait_with_output(), Instant::now())));
        }
        let start = Instant::now();
        running.iter_mut().for_each(|program| program.guard.begin(&input));
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

fn waiting(command: &Command) -> Result<Child, EngineError> {
    let mut start = Guard::waiting(&command.program);
    start.args(&command.arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    start.spawn().map_err(EngineError::failed)
}
