//! One client's thread: connects, warms up, works, leaves.

use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use workahead_machine::clock::thread_cpu_s;
use workahead_machine::pin;
use workahead_workloads::client::{AttemptResult, Client, Next};
use workahead_workloads::session::{Session, SessionError};

use super::gate::{Gate, Phase};
use super::tally::Tally;
use super::{End, Load, LoadError, Until};

/// An input that the server aborts this often will never succeed.
const ATTEMPTS_MAX: u32 = 100_000;

pub(super) struct Runner<'a> {
    load: &'a Load<'a>,
    number: u32,
    gate: &'a Gate,
}

/// Reports that a client leaves, also when it panics: the others would wait for it.
struct LeaveGuard<'a> {
    number: u32,
    gate: &'a Gate,
}

impl Drop for LeaveGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let says = "it panicked".to_owned();
            self.gate.fail(LoadError::Thread { client: self.number, says });
        }
        self.gate.leave(self.number);
    }
}

/// An early end of a phase; its reason is at the gate.
struct EarlyEnd;

/// When transactions begin and how many there are.
struct Pace {
    until: Until,
    deadline: Option<Instant>,
    /// The next intended start and the time between two, when there is a rate.
    pacing: Option<(Instant, Duration)>,
    left: u64,
}

impl<'a> Runner<'a> {
    pub(super) fn new(load: &'a Load<'a>, number: u32, gate: &'a Gate) -> Runner<'a> {
        Runner { load, number, gate }
    }

    /// Runs all phases. Returns the counts, also of an early end.
    pub(super) fn run(self) -> Tally {
        let mut tally = Tally::new(&self.load.workload.kinds());
        let _leaving = LeaveGuard { number: self.number, gate: self.gate };
        // The reason of an early end is at the gate.
        let _ = self.parts(&mut tally);
        tally
    }

    fn parts(&self, tally: &mut Tally) -> Result<(), EarlyEnd> {
        self.settle()?;
        let mut client = self.load.workload.client(self.number);
        let mut session = self.enter(client.as_mut())?;
        if let Phase::Warming(end) = self.gate.next_phase() {
            let begun = Instant::now();
            let left = end.saturating_duration_since(begun);
            // Without a warm-up the first input is not drawn for nothing.
            if !left.is_zero() {
                let mut uncounted = Tally::new(&self.load.workload.kinds());
                let pace = self.pace(begun, Until::Time(left));
                self.work(client.as_mut(), session.as_mut(), pace, &mut uncounted)?;
            }
        }
        if let Phase::Measuring(begun) = self.gate.next_phase() {
            let pace = self.pace(begun, self.load.until);
            let cpu_s = thread_cpu_s();
            tally.began = Some(Instant::now());
            let worked = self.work(client.as_mut(), session.as_mut(), pace, tally);
            tally.cpu_s = thread_cpu_s() - cpu_s;
            tally.span = Some((begun, Instant::now()));
            worked?;
            self.gate.next_phase();
        }
        Ok(())
    }

    /// Onto the clients' CPUs; and awake on time, which the system may otherwise round up by a
    /// twentieth of a millisecond (prctl(2), PR_SET_TIMERSLACK).
    fn settle(&self) -> Result<(), EarlyEnd> {
        // Where it is refused, pauses are that much longer.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let Some(cpus) = &self.load.cpus else { return Ok(()) };
        pin::stay_on(cpus).map_err(|error| {
            self.gate.fail(LoadError::Thread { client: self.number, says: error.to_string() });
            EarlyEnd
        })
    }

    fn enter(&self, client: &mut dyn Client) -> Result<Box<dyn Session>, EarlyEnd> {
        let opened = self.load.connector.open().and_then(|mut connection| {
            self.gate.entered(self.number, connection.cancel());
            client.connected(connection.session())?;
            let session: Box<dyn Session> = connection;
            Ok(session)
        });
        opened.map_err(|source| {
            self.gate.fail(LoadError::Begin { client: self.number, source });
            EarlyEnd
        })
    }

    /// The measured part and the warm-up are paced alike.
    fn pace(&self, begun: Instant, until: Until) -> Pace {
        let clients = self.load.clients;
        let (deadline, left) = match until {
            Until::Time(time) => (begun.checked_add(time), u64::MAX),
            Until::Count(count) => {
                let extra = u64::from(u64::from(self.number) < count % u64::from(clients));
                (None, count / u64::from(clients) + extra)
            }
        };
        let pacing = self.load.rate.map(|rate| {
            let apart = Duration::from_secs_f64((f64::from(clients) / rate).min(MONTH_S));
            (begun + apart.mul_f64(f64::from(self.number) / f64::from(clients)), apart)
        });
        Pace { until, deadline, pacing, left }
    }

    /// Transactions, one after the other, until the pace ends or all is over.
    fn work(
        &self,
        client: &mut dyn Client,
        session: &mut dyn Session,
        mut pace: Pace,
        tally: &mut Tally,
    ) -> Result<(), EarlyEnd> {
        while pace.left > 0 && !self.gate.over() {
            let next = client.next();
            let Some(start) = self.wait_to_begin(&mut pace, &next) else { break };
            let before = session.overhead();
            let done = self.try_through(client, session, &next, tally)?;
            let latency = start.elapsed().saturating_sub(session.overhead() - before);
            tally.done(next.kind, done, u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
            pace.left -= 1;
            if pace.pacing.is_none() && next.thinking_s > 0.0 {
                self.gate.pause_until(Instant::now() + seconds(next.thinking_s));
            }
        }
        tally.unserved += pace.unserved();
        if self.gate.over() { Err(EarlyEnd) } else { Ok(()) }
    }

    /// The moment from which latency counts; none when the end comes before.
    fn wait_to_begin(&self, pace: &mut Pace, next: &Next) -> Option<Instant> {
        let mut now = Instant::now();
        let start = match &mut pace.pacing {
            Some((intended, apart)) => {
                let start = *intended;
                if pace.deadline.is_some_and(|deadline| start >= deadline) {
                    return None;
                }
                if start > now {
                    self.gate.pause_until(start);
                    now = Instant::now();
                }
                *intended += *apart;
                start
            }
            None if next.keying_s > 0.0 => {
                self.gate.pause_until(now + seconds(next.keying_s));
                now = Instant::now();
                now
            }
            None => now,
        };
        let late = pace.deadline.is_some_and(|deadline| now >= deadline);
        if late {
            // The intended start passed with no client free.
            pace.miss();
        }
        (!late && !self.gate.over()).then_some(start)
    }

    fn try_through(
        &self,
        client: &mut dyn Client,
        session: &mut dyn Session,
        next: &Next,
        tally: &mut Tally,
    ) -> Result<AttemptResult, EarlyEnd> {
        for _ in 0..ATTEMPTS_MAX {
            match client.attempt(session) {
                Ok(done) => return Ok(done),
                // Errors after the end are cancellations.
                Err(_) if self.gate.over() => return Err(EarlyEnd),
                Err(SessionError::Retry(_)) => tally.retry(next.kind),
                Err(SessionError::Gone(says)) => {
                    self.gate.finish(Ok(End::Gone { client: self.number, says }));
                    return Err(EarlyEnd);
                }
                Err(source @ (SessionError::Failed(_) | SessionError::Duplicate(_))) => {
                    self.fail(next.kind, source);
                    return Err(EarlyEnd);
                }
            }
        }
        let says = format!("aborted by the server {ATTEMPTS_MAX} times");
        self.fail(next.kind, SessionError::Failed(says));
        Err(EarlyEnd)
    }

    fn fail(&self, kind: usize, source: SessionError) {
        let kinds = self.load.workload.kinds();
        let kind = kinds.get(kind).map_or("unknown kind", String::as_str).to_owned();
        self.gate.fail(LoadError::Failed { client: self.number, kind, source });
    }
}

/// Longer than any load; `Duration` panics on more than it can hold.
const MONTH_S: f64 = 30.0 * 86_400.0;

fn seconds(s: f64) -> Duration {
    Duration::from_secs_f64(s.clamp(0.0, MONTH_S))
}

impl Pace {
    /// The start just taken was not used.
    fn miss(&mut self) {
        if let Some((intended, apart)) = &mut self.pacing {
            *intended -= *apart;
        }
    }

    /// Intended starts before the end that are still to come.
    fn unserved(&self) -> u64 {
        match (self.until, self.deadline, self.pacing) {
            (Until::Time(_), Some(deadline), Some((next, apart))) if next < deadline => {
                (deadline - next).as_nanos().div_ceil(apart.as_nanos().max(1)) as u64
            }
            _ => 0,
        }
    }
}
