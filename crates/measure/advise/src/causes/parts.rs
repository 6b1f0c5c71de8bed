//! Where the time of a transaction goes: a sum of measured parts.
//!
//! ```text
//! sessions at work ÷ transactions/s  =  time of a transaction in the server      (Little 1961)
//!   working, as sessions say         =  CPU time + waiting for a CPU + rest      (proc, schedstat)
//!   waiting, by what for             =  locks, log, latches, files, …        (looks at sessions)
//! ```
//!
//! Where the kernel counts more CPU time and waiting for it than sessions say that they were at
//! work, the kernel's account counts. Waiting for a CPU is shared among those who had the CPUs at
//! that time, by how much they had: the server itself, other programs, the host of a virtual
//! machine, and the quota, which has those that it lets stand still. A session that waits for a
//! lock waits for whatever the lock's holder waits for: where looks show that the holder waited for
//! the log, the time is the log's.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};
use workahead_study::capture::{Capture, WORKING, Window};
use workahead_study::statistics::UnpairedComparison;

/// A part of the time of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The server's CPU time, with as much waiting for it as both captures have for each second.
    Cpu,
    /// Waiting for a CPU because more was to be done at once.
    Load,
    /// Waiting for a CPU that another program had.
    Neighbours,
    /// Waiting for a CPU that the quota of the control group withheld.
    Quota,
    /// Waiting for a CPU that the host of a virtual machine had.
    Host,
    /// Waiting for locks of rows and tables.
    Locks,
    /// Waiting for the log.
    Log,
    /// Waiting for short locks on the server's own data.
    Latches,
    /// Waiting for files other than the log.
    Disk,
    /// Waiting for the client to send or to take.
    Client,
    /// Waiting for other processes of the same query.
    Processes,
    /// Waiting for something else that the server names.
    Other,
    /// At work by the server's account, and neither on a CPU nor waiting for one.
    Rest,
    /// At work or waiting for a CPU, where the kernel's account is not visible.
    Working,
}

impl Part {
    /// All of them.
    pub(super) const ALL: [Part; 14] = [
        Part::Cpu,
        Part::Load,
        Part::Neighbours,
        Part::Quota,
        Part::Host,
        Part::Locks,
        Part::Log,
        Part::Latches,
        Part::Disk,
        Part::Client,
        Part::Processes,
        Part::Other,
        Part::Rest,
        Part::Working,
    ];

    /// As a row of a table has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Part::Cpu => "the server's CPU time, with the usual queue for the CPUs",
            Part::Load => "waiting longer for a CPU, as more was to be done at once",
            Part::Neighbours => "waiting longer for a CPU, which other programs had",
            Part::Quota => "waiting longer for a CPU, which the quota withheld",
            Part::Host => "waiting longer for a CPU, which the host of the virtual machine had",
            Part::Locks => "waiting for locks of rows and tables",
            Part::Log => "waiting for the log",
            Part::Latches => "waiting for latches",
            Part::Disk => "waiting for data files",
            Part::Client => "waiting for the client",
            Part::Processes => "waiting for processes of the same query",
            Part::Other => "waiting for something else",
            Part::Rest => "at work, but neither on a CPU nor waiting for one",
            Part::Working => "at work or waiting for a CPU",
        }
    }

    /// The part of a wait for a lock: that of its holder's own wait, or the locks.
    fn of_holder(kind: &str) -> Part {
        match kind {
            "log" | "latches" | "disk" | "processes" => Part::of_wait(kind),
            _ => Part::Locks,
        }
    }

    fn of_wait(kind: &str) -> Part {
        match kind {
            "log" => Part::Log,
            "latches" => Part::Latches,
            "disk" => Part::Disk,
            "client" => Part::Client,
            "processes" => Part::Processes,
            "other" => Part::Other,
            _ => Part::Locks,
        }
    }
}

/// The work of one window: transactions, and seconds of sessions by part.
#[derive(Debug, Clone, Copy, Default)]
struct WindowTimes {
    ended: f64,
    total_s: f64,
    by_part: [f64; Part::ALL.len()],
    /// The server's CPU time alone.
    cpu_s: f64,
    /// The queue behind it.
    queue_s: f64,
    /// Waiting for a CPU that each of [`OTHERS`] had.
    others_s: [f64; OTHERS.len()],
}

/// Those who have the CPUs beside the server.
const OTHERS: [Part; 3] = [Part::Neighbours, Part::Quota, Part::Host];

impl WindowTimes {
    fn add(&mut self, part: Part, seconds: f64) {
        self.by_part[part as usize] += seconds;
    }

    fn of(window: &Window) -> WindowTimes {
        let seconds = |sessions: &f64| sessions * window.seconds;
        let mut spent = WindowTimes { ended: window.ended, ..WindowTimes::default() };
        let working_s = window.sessions.get(WORKING).map_or(0.0, seconds);
        spent.total_s = working_s;
        let queue = Queue::of(window);
        if let Some(queue) = &queue {
            spent.cpu_s = queue.cpu_s;
            spent.queue_s = queue.server_s;
            spent.add(Part::Cpu, queue.cpu_s + queue.server_s);
            spent.others_s = queue.others_s;
            for (part, delay_s) in OTHERS.into_iter().zip(spent.others_s) {
                spent.add(part, delay_s);
            }
            spent.add(Part::Rest, working_s - queue.cpu_s - queue.delay_s);
        } else {
            spent.add(Part::Working, working_s);
        }
        for (kind, sessions) in &window.sessions {
            if kind == WORKING || kind == "idle_in_transaction" {
                continue;
            }
            let waited_s = seconds(sessions);
            spent.total_s += waited_s;
            match (kind.strip_prefix("locks:"), &queue) {
                (Some("working"), Some(queue)) => spent.behind_work(queue, waited_s),
                (Some(holder), _) => spent.add(Part::of_holder(holder), waited_s),
                (None, _) => spent.add(Part::of_wait(kind), waited_s),
            }
        }
        spent
    }

    /// Waiting for one who works: of that time a part was spent waiting for a CPU of others.
    fn behind_work(&mut self, queue: &Queue, waited_s: f64) {
        let whole_s = queue.cpu_s + queue.delay_s;
        let mut left_s = waited_s;
        for (part, delay_s) in OTHERS.into_iter().zip(queue.others_s) {
            let share_s = if whole_s > 0.0 { waited_s * delay_s / whole_s } else { 0.0 };
            self.add(part, share_s);
            left_s -= share_s;
        }
        self.add(Part::Locks, left_s);
    }
}

/// CPU time of a window, and waiting for it by who had the CPUs.
struct Queue {
    cpu_s: f64,
    delay_s: f64,
    server_s: f64,
    /// Of each of [`OTHERS`].
    others_s: [f64; OTHERS.len()],
}

impl Queue {
    fn of(window: &Window) -> Option<Queue> {
        let count = |name: &str| window.counts.get(name).copied();
        let (cpu_s, delay_s) = (count("server_cpu_s")?, count("run_delay_s")?);
        let steal_s = count("steal_s").unwrap_or(0.0);
        let busy_s = count("machine_cpu_s").zip(count("machine_idle_s"));
        let busy_s = busy_s.map_or(cpu_s, |(all_s, idle_s)| (all_s - idle_s - steal_s).max(0.0));
        let neighbours_s = (busy_s - cpu_s).max(0.0);
        // Run queues that stand still have tasks in them.
        let quota_s = count("throttled_s").unwrap_or(0.0);
        let occupied_s = cpu_s + neighbours_s + quota_s + steal_s;
        let share =
            |part_s: f64| if occupied_s > 0.0 { delay_s * part_s / occupied_s } else { 0.0 };
        Some(Queue {
            cpu_s,
            delay_s,
            server_s: share(cpu_s),
            others_s: [neighbours_s, quota_s, steal_s].map(share),
        })
    }
}

/// A figure for each transaction, before and after, and its change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Change {
    /// Before, in seconds.
    pub before_s: f64,
    /// After.
    pub after_s: f64,
    /// Standard error of the difference.
    pub error_s: f64,
    /// Degrees of freedom of that error.
    pub degrees: f64,
}

impl Change {
    /// After less before.
    #[must_use]
    pub fn difference_s(&self) -> f64 {
        self.after_s - self.before_s
    }

    /// Whether the difference is more than chance would give once in `1 / p` pairs.
    fn is_shown(&self, p: f64) -> bool {
        self.difference_s().abs() > half(self.error_s, self.degrees, p)
    }
}

/// Whether the values of one side are above those of the other more often than chance would have
/// it once in `1 / p` pairs (Wilcoxon 1945): a window that was disturbed counts no more than
/// another.
fn ranks_differ(before: &[f64], after: &[f64], p: f64) -> bool {
    let pairs = before.iter().flat_map(|one| after.iter().map(move |other| (one, other)));
    let above: f64 = pairs
        .map(|(one, other)| match one.total_cmp(other) {
            std::cmp::Ordering::Less => 1.0,
            std::cmp::Ordering::Equal => 0.5,
            std::cmp::Ordering::Greater => 0.0,
        })
        .sum();
    let (n, m) = (before.len() as f64, after.len() as f64);
    let deviation = (n * m * (n + m + 1.0) / 12.0).sqrt();
    let z = (above - n * m / 2.0).abs() / deviation;
    2.0 * Normal::standard().sf(z) < p
}

/// Half of an interval that misses with probability `p`.
pub(super) fn half(error: f64, degrees: f64, p: f64) -> f64 {
    // Beyond a million it is the normal distribution, and not a number makes its series endless.
    let degrees = degrees.clamp(1.0, 1e6);
    let degrees = if degrees.is_nan() { 1.0 } else { degrees };
    let quantile = StudentsT::new(0.0, 1.0, degrees).map(|t| t.inverse_cdf(1.0 - p / 2.0));
    quantile.unwrap_or(f64::INFINITY) * error
}

/// A ratio of sums, and the square of its standard error: of windows as they are, long and short
/// (Cochran 1977, section 6.3).
fn rate(pairs: &[(f64, f64)]) -> (f64, f64) {
    let n = pairs.len() as f64;
    let (sum, ended) = pairs.iter().fold((0.0, 0.0), |sums, one| (sums.0 + one.0, sums.1 + one.1));
    let rate = sum / ended;
    let squares: f64 = pairs.iter().map(|(spent, ended)| (spent - rate * ended).powi(2)).sum();
    (rate, squares * n / (n - 1.0).max(1.0) / ended.powi(2))
}

/// The change of a rate between two lists of (amount, transactions), by Welch's degrees of freedom.
pub(super) fn change(before: &[(f64, f64)], after: &[(f64, f64)]) -> Change {
    let ((before_s, one), (after_s, other)) = (rate(before), rate(after));
    let free = |n: usize| (n as f64 - 1.0).max(1.0);
    let spread = one.powi(2) / free(before.len()) + other.powi(2) / free(after.len());
    let degrees = if spread > 0.0 { (one + other).powi(2) / spread } else { 1.0 };
    Change { before_s, after_s, error_s: (one + other).sqrt(), degrees }
}

/// Both captures as parts.
#[derive(Debug)]
pub(super) struct Parts {
    before: Vec<WindowTimes>,
    after: Vec<WindowTimes>,
    /// The time of a transaction.
    pub(super) total: Change,
    /// By part: those that neither has are left out.
    pub(super) changes: Vec<(Part, Change)>,
}

impl Parts {
    pub(super) fn of(before: &Capture, after: &Capture) -> Parts {
        let spent = |capture: &Capture| -> Vec<WindowTimes> {
            capture.windows.iter().map(WindowTimes::of).collect()
        };
        let (mut before, mut after) = (spent(before), spent(after));
        count_all(&mut before);
        count_all(&mut after);
        settle(&mut before, &mut after);
        let of = |take: &dyn Fn(&WindowTimes) -> f64| {
            let pairs = |side: &[WindowTimes]| -> Vec<(f64, f64)> {
                side.iter().map(|spent| (take(spent), spent.ended)).collect()
            };
            change(&pairs(&before), &pairs(&after))
        };
        let total = of(&|spent| spent.total_s);
        let of_part = |part: Part| (part, of(&|spent| spent.by_part[part as usize]));
        let is_there =
            |(_, change): &(Part, Change)| change.before_s != 0.0 || change.after_s != 0.0;
        let changes = Part::ALL.map(of_part).into_iter().filter(is_there).collect();
        Parts { before, after, total, changes }
    }

    /// The time of a transaction after over before, of windows as equals: of logarithms, so that
    /// one window in which the machine stood still does not hide what all others show.
    pub(super) fn ratio(&self) -> Option<UnpairedComparison> {
        let times = |side: &[WindowTimes]| -> Vec<f64> {
            let has_time = |spent: &&WindowTimes| spent.ended > 0.0 && spent.total_s > 0.0;
            side.iter().filter(has_time).map(|spent| spent.total_s / spent.ended).collect()
        };
        UnpairedComparison::of(&times(&self.before), &times(&self.after))
    }

    /// Whether a part changed by more than chance.
    pub(super) fn is_shown(&self, part: Part, change: &Change, p: f64) -> bool {
        let times = |side: &[WindowTimes]| -> Vec<f64> {
            let ended = side.iter().filter(|spent| spent.ended > 0.0);
            ended.map(|spent| spent.by_part[part as usize] / spent.ended).collect()
        };
        change.is_shown(p) || ranks_differ(&times(&self.before), &times(&self.after), p)
    }

    /// The share of some parts in the change of the whole, and its standard error: the error of
    /// what the parts change beyond that share of the whole (Fieller 1954).
    pub(super) fn share(&self, parts: &[Part]) -> (f64, f64) {
        let sum = |spent: &WindowTimes| -> f64 {
            parts.iter().map(|part| spent.by_part[*part as usize]).sum()
        };
        let pairs = |side: &[WindowTimes], of: &dyn Fn(&WindowTimes) -> f64| -> Vec<(f64, f64)> {
            side.iter().map(|spent| (of(spent), spent.ended)).collect()
        };
        let whole_s = self.total.difference_s();
        let part = change(&pairs(&self.before, &sum), &pairs(&self.after, &sum));
        let share = part.difference_s() / whole_s;
        let beyond = |spent: &WindowTimes| sum(spent) - share * spent.total_s;
        let beyond = change(&pairs(&self.before, &beyond), &pairs(&self.after, &beyond));
        (share, beyond.error_s / whole_s.abs())
    }
}

/// CPU time of a transaction that is this much more explains a longer queue behind it.
const NEEDS_MORE: f64 = 1.1;

/// Settles for what the queue behind the server's own work is longer on one side. For each second
/// of CPU time it is longer because others have the CPUs, because a transaction needs more of them,
/// or because more transactions come; what it is longer by goes to that part, so that the parts
/// stay a sum.
fn settle(before: &mut [WindowTimes], after: &mut [WindowTimes]) {
    if Sums::of(before).is_none() || Sums::of(after).is_none() {
        return;
    }
    share_contention(before, after);
    let (Some(one), Some(other)) = (Sums::of(before), Sums::of(after)) else { return };
    match one.queue_per_cpu() < other.queue_per_cpu() {
        true => move_queue(&one, &other, after),
        false => move_queue(&other, &one, before),
    }
}

/// The kernel counts more than sessions say where they wait for a CPU before they are at work: to
/// take the next statement. Then its account is the whole.
fn count_all(side: &mut [WindowTimes]) {
    let rest = Part::Rest as usize;
    if side.iter().map(|spent| spent.by_part[rest]).sum::<f64>() >= 0.0 {
        return;
    }
    for spent in side {
        spent.total_s -= spent.by_part[rest];
        spent.by_part[rest] = 0.0;
    }
}

/// For each second of CPU time others keep the server waiting on both sides: as long as on the side
/// with less of it, that is a part of what CPU time costs here, and grows with it.
fn share_contention(before: &mut [WindowTimes], after: &mut [WindowTimes]) {
    for (other, part) in OTHERS.into_iter().enumerate() {
        let per_cpu = |side: &[WindowTimes]| {
            let sum = |of: &dyn Fn(&WindowTimes) -> f64| side.iter().map(of).sum::<f64>();
            sum(&|spent| spent.others_s[other]) / sum(&|spent| spent.cpu_s)
        };
        let both = per_cpu(before).min(per_cpu(after));
        for spent in before.iter_mut().chain(after.iter_mut()) {
            let usual_s = both * spent.cpu_s;
            spent.add(part, -usual_s);
            spent.add(Part::Cpu, usual_s);
        }
    }
}

/// Moves what the queue of the `long` side has more than the `short` one, for each second of CPU.
fn move_queue(short: &Sums, long: &Sums, side: &mut [WindowTimes]) {
    let grown = OTHERS.map(|part| (long.per(part) - short.per(part)).max(0.0));
    let of_others: f64 = grown.iter().sum();
    let own = (long.queue_s / long.ended - short.queue_s / short.ended).max(0.0);
    let moved: Vec<(Part, f64)> = if of_others > own / 2.0 {
        let shares = grown.map(|grown| grown / of_others);
        OTHERS.into_iter().zip(shares).collect()
    } else if long.cpu_s / long.ended > NEEDS_MORE * short.cpu_s / short.ended {
        return;
    } else {
        vec![(Part::Load, 1.0)]
    };
    let longer = long.queue_per_cpu() - short.queue_per_cpu();
    for spent in side {
        let longer_s = (longer * spent.cpu_s).min(spent.queue_s);
        spent.add(Part::Cpu, -longer_s);
        for (part, share) in &moved {
            spent.add(*part, share * longer_s);
        }
    }
}

/// One side.
struct Sums {
    ended: f64,
    cpu_s: f64,
    queue_s: f64,
    by_part: [f64; Part::ALL.len()],
}

impl Sums {
    /// None where nothing ended, or no CPU time was seen.
    fn of(side: &[WindowTimes]) -> Option<Sums> {
        let sum = |of: &dyn Fn(&WindowTimes) -> f64| side.iter().map(of).sum::<f64>();
        let sums = Sums {
            ended: sum(&|spent| spent.ended),
            cpu_s: sum(&|spent| spent.cpu_s),
            queue_s: sum(&|spent| spent.queue_s),
            by_part: std::array::from_fn(|part| sum(&|spent| spent.by_part[part])),
        };
        (sums.ended > 0.0 && sums.cpu_s > 0.0).then_some(sums)
    }

    fn queue_per_cpu(&self) -> f64 {
        self.queue_s / self.cpu_s
    }

    fn per(&self, part: Part) -> f64 {
        self.by_part[part as usize] / self.ended
    }
}
