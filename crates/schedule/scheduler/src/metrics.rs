//! The counts of the scheduler, for Prometheus: its text format over HTTP.
//!
//! ```text
//!   Event ─► Metrics::note ─► the last counts ◄─ GET /metrics ─ one request at a time, 4 KiB, 1 s
//! ```

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::stats::Stats;

/// The last counts, and who may ask for them.
#[derive(Debug, Default)]
pub struct Metrics {
    latest: Mutex<Latest>,
}

#[derive(Debug, Default)]
struct Latest {
    attached: bool,
    attachments: u64,
    stats: Stats,
}

/// A client has this long to send its request, and to take the answer.
const PATIENCE: Duration = Duration::from_secs(1);
/// Longest request.
const REQUEST_MAX: u64 = 4096;

impl Metrics {
    /// Answers `GET /metrics` at an address from now on, in a thread of its own, for as long as the
    /// process lives. Returns what to tell it, and where it listens (port 0 is a free one).
    ///
    /// # Errors
    ///
    /// [`Error::Metrics`] where it can't listen.
    pub fn serve(address: SocketAddr) -> Result<(Arc<Self>, SocketAddr), Error> {
        let failed = |source| Error::Metrics { address, source };
        let listener = TcpListener::bind(address).map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let metrics = Arc::new(Self::default());
        let shared = Arc::clone(&metrics);
        let serve = move || {
            for stream in listener.incoming() {
                match stream {
                    // A client that hangs up gets no answer, and no matter.
                    Ok(stream) => drop(shared.answer(stream)),
                    // Without a file left for it, the next one fails at once.
                    Err(_) => std::thread::sleep(PATIENCE),
                }
            }
        };
        std::thread::Builder::new().name("metrics".into()).spawn(serve).map_err(failed)?;
        Ok((metrics, bound))
    }

    /// The scheduler is attached or not.
    pub fn set_attached(&self, attached: bool) {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.attachments += u64::from(attached && !latest.attached);
        latest.attached = attached;
    }

    /// The counts since it was attached.
    pub fn set_stats(&self, stats: &Stats) {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.stats = stats.clone();
    }

    fn answer(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let request = head(&mut stream)?;
        let (status, body) = match request.split(' ').take(2).collect::<Vec<_>>()[..] {
            ["GET", "/metrics"] => ("200 OK", self.text()),
            ["GET", _] => ("404 Not Found", "the counts are at /metrics\n".into()),
            _ => ("405 Method Not Allowed", "GET /metrics\n".into()),
        };
        let length = body.len();
        write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
             Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )
    }

    /// All counts in the text format 0.0.4.
    fn text(&self) -> String {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::new();
        let attached = f64::from(u8::from(latest.attached));
        one(&mut text, "attached", "gauge", "Whether it schedules.", attached);
        #[expect(clippy::cast_precision_loss, reason = "nobody attaches it 2^52 times")]
        let attachments = latest.attachments as f64;
        one(&mut text, "attachments_total", "counter", "Times that it was attached.", attachments);
        for (name, help, value) in latest.stats.counters() {
            one(&mut text, &format!("{name}_total"), "counter", help, value);
        }
        let longest = latest.stats.wait_max_ns;
        let help = "Longest wait of a runnable thread since it was attached.";
        one(&mut text, "wait_max_seconds", "gauge", help, seconds(longest));
        let name = "wakeup_to_run_seconds";
        describe(&mut text, name, "histogram", "Time from wake-up to run.");
        for (bound, below) in latest.stats.latency_up_to() {
            line(&mut text, &format!("{name}_bucket{{le=\"{}\"}}", seconds(bound)), below);
        }
        let wakeups = latest.stats.wakeups();
        line(&mut text, &format!("{name}_bucket{{le=\"+Inf\"}}"), wakeups);
        line(&mut text, &format!("{name}_sum"), seconds(latest.stats.latency_ns));
        line(&mut text, &format!("{name}_count"), wakeups);
        text
    }
}

/// The first line of a request; the rest, up to its empty line, is read and says nothing.
fn head(stream: &mut TcpStream) -> std::io::Result<String> {
    let (began, mut head, mut byte) = (Instant::now(), Vec::new(), [0]);
    let mut limited = stream.take(REQUEST_MAX);
    while !head.ends_with(b"\r\n\r\n")
        && began.elapsed() < PATIENCE
        && limited.read(&mut byte)? == 1
    {
        head.push(byte[0]);
    }
    let text = String::from_utf8_lossy(&head);
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

fn describe(text: &mut String, name: &str, kind: &str, help: &str) {
    let full = format!("workahead_scheduler_{name}");
    let _ = writeln!(text, "# HELP {full} {help}\n# TYPE {full} {kind}");
}

fn line(text: &mut String, name: &str, value: impl std::fmt::Display) {
    let _ = writeln!(text, "workahead_scheduler_{name} {value}");
}

fn one(text: &mut String, name: &str, kind: &str, help: &str, value: f64) {
    describe(text, name, kind, help);
    line(text, name, value);
}

#[expect(clippy::cast_precision_loss, reason = "nanoseconds beyond 52 bits are months")]
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer to a request, as it comes.
    fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn counts_are_told_in_the_text_format() {
        let (metrics, address) = Metrics::serve("127.0.0.1:0".parse().unwrap()).unwrap();
        let get = "GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n";
        assert!(ask(address, get).contains("\nworkahead_scheduler_attached 0\n"));
        metrics.set_attached(true);
        metrics.set_stats(&Stats::with_latencies(&[900, 5_000, 3_000_000_000]));
        let answer = ask(address, get);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains("version=0.0.4"), "{head}");
        assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
        for line in [
            "# TYPE workahead_scheduler_attached gauge",
            "workahead_scheduler_attached 1",
            "workahead_scheduler_attachments_total 1",
            "# TYPE workahead_scheduler_decisions_total counter",
            "workahead_scheduler_wakeup_to_run_seconds_bucket{le=\"0.000001024\"} 1",
            "workahead_scheduler_wakeup_to_run_seconds_bucket{le=\"0.000008192\"} 2",
            "workahead_scheduler_wakeup_to_run_seconds_bucket{le=\"+Inf\"} 3",
            "workahead_scheduler_wakeup_to_run_seconds_sum 3.0000059",
            "workahead_scheduler_wakeup_to_run_seconds_count 3",
        ] {
            assert!(body.lines().any(|said| said == line), "{line} in\n{body}");
        }
        // Each line is a comment, or a name and a number.
        for line in body.lines().filter(|line| !line.starts_with('#')) {
            let (name, value) = line.rsplit_once(' ').unwrap();
            assert!(name.starts_with("workahead_scheduler_"), "{line}");
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
    }

    #[test]
    fn other_requests_are_refused_and_the_next_is_answered() {
        let (_metrics, address) = Metrics::serve("127.0.0.1:0".parse().unwrap()).unwrap();
        assert!(ask(address, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
        assert!(ask(address, "POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
        drop(TcpStream::connect(address).unwrap());
        let endless = TcpStream::connect(address).unwrap();
        let answer = ask(address, "GET /metrics HTTP/1.0\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200"), "one that says nothing holds it up: {answer}");
        drop(endless);
    }

    #[test]
    fn a_port_that_is_taken_is_named() {
        let (_metrics, address) = Metrics::serve("127.0.0.1:0".parse().unwrap()).unwrap();
        let said = Metrics::serve(address).unwrap_err().to_string();
        assert!(said.contains(&address.to_string()), "{said}");
    }
}
