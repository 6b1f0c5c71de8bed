//! A server at work for others over some minutes, with all that a later comparison may want to
//! know: [`Capture`]. Nothing is run for it but `EXPLAIN`, after the last window, and nothing is
//! written.
//!
//! ```text
//! settings, tables, … ── window ── window ── … ── window ── tables, …, plans of texts as seen
//!                        └ looks at sessions, ten a second; counters and /proc at both edges
//! ```
//!
//! A window is one read-only transaction, so that what a server counts of ours is known.

mod answers;
mod machine;
mod mariadb;
mod postgres;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use workahead_study::capture::{Capture, FORMAT, Figures, Index, Statement, Window};
use workahead_workloads::session::{Session, SessionError};

use super::{MachineObserver, ObserverError, STOP_EVERY};
use crate::attach::{Software, Target};
use crate::connector::Connection;
use crate::server::Explain;
use machine::{Machine, MachineEdge};

/// Looks at sessions: twelve windows of ten seconds have 1200, of which a wait of a hundredth of
/// one session's time has twelve.
const LOOKS_PER_S: f64 = 10.0;

/// Different events and holders of locks that are kept.
const NAMES_MAX: usize = 500;

/// Texts of statements that are explained.
const PLANS_MAX: usize = 24;

/// Statements that are kept: those that took most time.
const STATEMENTS_MAX: usize = 100;

/// Longest text that is kept of one statement, setting or holder.
const TEXT_CHARS_MAX: usize = 2_000;

/// Sessions at a moment.
#[derive(Debug, Default)]
struct Sessions {
    /// How many, by what they do.
    by_kind: Figures,
    /// How many waited, by event.
    events: Figures,
    /// Who held locks that others waited for.
    holders: Vec<Holder>,
    /// Those whose state is hidden.
    hidden: f64,
}

/// A session that holds a lock that others wait for.
#[derive(Debug)]
struct Holder {
    /// Its activity.
    kind: String,
    /// Its program and its user.
    who: String,
    /// Its statement, or its last one.
    text: String,
}

/// A statement that a session ran.
#[derive(Debug)]
struct ExecutedStatement {
    user: String,
    /// The user could do as much harm without us.
    is_trusted: bool,
    text: String,
}

impl Sessions {
    /// Those that wait for locks by what the holders do: `locks:log` waits for one who waits for
    /// the log. Which of several holders one waits for is not known: they have equal parts.
    fn by_what_holders_do(&mut self) {
        let waiting = self.by_kind.remove("locks").unwrap_or(0.0);
        for holder in &self.holders {
            let kind = format!("locks:{}", holder.kind);
            *self.by_kind.entry(kind).or_default() += waiting / self.holders.len() as f64;
        }
        if self.holders.is_empty() {
            self.by_kind.insert("locks".to_owned(), waiting);
        }
    }
}

/// Counters at a moment.
#[derive(Debug, Clone, Default)]
struct Counters {
    /// Transactions or statements that ended since the server started.
    ended: f64,
    /// When it started, in its own seconds.
    started_s: f64,
    /// Whatever else it counts.
    counts: Figures,
}

/// The inventory of a server: tables, indexes, statements.
#[derive(Debug, Default)]
struct Inventory {
    tables: BTreeMap<String, Figures>,
    indexes: BTreeMap<String, Index>,
    statements: BTreeMap<String, Statement>,
}

/// Figures of tables and statements that grow; all others are sizes.
type Grows = fn(&str) -> bool;

/// A product's statements.
trait Source {
    /// Sessions, now.
    fn look(&mut self, session: &mut dyn Session) -> Result<Sessions, SessionError>;
    /// Counters, now.
    fn counters(&mut self, session: &mut dyn Session) -> Result<Counters, SessionError>;
    /// Our own transactions among those of the last window.
    fn own(&self) -> f64;
    /// Tables, indexes, statements. What can't be read is added to `missing`.
    fn inventory(&mut self, session: &mut dyn Session, missing: &mut Vec<String>) -> Inventory;
    /// The server's version and its settings.
    fn settings(&mut self, session: &mut dyn Session) -> Result<Settings, SessionError>;
    /// Statements that sessions ran.
    fn texts(&mut self, session: &mut dyn Session) -> Result<Vec<ExecutedStatement>, SessionError>;
    /// The right to grant for a look at others' sessions.
    fn remedy(&self, user: &str) -> String;
    /// The columns of tables and statements that are counters.
    fn grows(&self) -> Grows;
    /// Settings of a session that asks for plans, which must not wait for locks.
    fn patience(&self) -> [(&'static str, &'static str); 2];
    /// Where such a session looks for names: in no schema in which a stranger can put others of the
    /// same name, which a trusted user's statement would then reach.
    fn path(
        &self,
        session: &mut dyn Session,
        target: &Target,
    ) -> Result<Option<(String, String)>, SessionError>;
}

/// Facts and settings, by name.
#[derive(Debug, Default)]
struct Settings {
    facts: BTreeMap<String, String>,
    settings: BTreeMap<String, String>,
}

impl Settings {
    /// The answers of two texts.
    fn read(session: &mut dyn Session, facts: &str, settings: &str) -> Result<Self, SessionError> {
        let (facts, settings) = (session.prepare(facts)?, session.prepare(settings)?);
        let mut settings = answers::texts(session, settings)?;
        for (name, value) in &mut settings {
            words::hide_secret(name, value);
        }
        Ok(Self { facts: answers::texts(session, facts)?, settings })
    }
}

/// A capture in progress.
pub struct Recorder {
    target: Target,
    connection: Box<dyn Connection>,
    source: Box<dyn Source>,
    machine: Option<Machine>,
    edge: Edge,
    capture: Capture,
    before: Inventory,
    /// Users whose statements are explained because the caller trusts them.
    trusted: Vec<String>,
    texts: BTreeMap<String, String>,
    /// Users whose statements are not.
    strangers: BTreeSet<String>,
    looks: f64,
    hidden: f64,
}

/// Where a window begins.
struct Edge {
    at: Instant,
    counters: Counters,
    machine: Option<MachineEdge>,
}

impl Recorder {
    /// Connects, and reads all that is read once. The user's rights are examined before, by
    /// [`Target::examine`]. Statements of `trusted` users are explained too: a server that plans a
    /// statement runs functions that it reaches, with the rights of this session, and everybody can
    /// have run one. In PostgreSQL those of superusers, of the database's owner and of the target's
    /// user are anyway.
    ///
    /// # Errors
    /// When nothing answers, the server rejects the user, or has no such counters.
    pub fn begin(target: &Target, trusted: &[String]) -> Result<Recorder, SessionError> {
        let mut connection = target.connect_to_observe()?;
        let (mut source, software, counted): (Box<dyn Source>, _, _) = match target.software {
            Software::Postgres => {
                let source = postgres::Statements::prepare(connection.as_mut())?;
                (Box::new(source), "postgres", "transactions")
            }
            Software::MariaDb => {
                let source = mariadb::Statements::prepare(connection.as_mut())?;
                (Box::new(source), "mariadb", "statements")
            }
        };
        let mut missing = Vec::new();
        let Settings { mut facts, settings } = source.settings(connection.session())?;
        let before = source.inventory(connection.session(), &mut missing);
        let observer = MachineObserver::of(target);
        missing.extend(MachineObserver::unseen(observer.as_ref()).map(|unseen| unseen.says));
        let mut machine = observer.map(Machine::of);
        facts.extend(machine.as_ref().map(Machine::tuning).unwrap_or_default());
        let begun = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let capture = Capture {
            format: FORMAT,
            command_version: env!("CARGO_PKG_VERSION").to_owned(),
            begun_unix_ms: begun.as_millis() as u64,
            software: software.to_owned(),
            counted: counted.to_owned(),
            facts,
            settings,
            missing,
            ..Capture::default()
        };
        connection.limit_answers();
        let counters = source.counters(connection.session())?;
        let machine_edge = machine.as_mut().map(Machine::edge);
        let edge = Edge { at: Instant::now(), counters, machine: machine_edge };
        let (texts, strangers, trusted) = (BTreeMap::new(), BTreeSet::new(), trusted.to_vec());
        let (looks, hidden) = (0.0, 0.0);
        let target = target.clone();
        Ok(Recorder {
            target,
            connection,
            source,
            machine,
            edge,
            capture,
            before,
            trusted,
            texts,
            strangers,
            looks,
            hidden,
        })
    }

    /// Watches for a while; false when it was interrupted in the middle.
    ///
    /// # Errors
    /// When the connection is lost, or counters from before and after don't belong together. What
    /// was captured by then stays.
    pub fn window(
        &mut self,
        length: Duration,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<bool, ObserverError> {
        let looks = (length.as_secs_f64() * LOOKS_PER_S).ceil().max(1.0) as u32;
        let (mut by_kind, dialect) = (Figures::new(), self.target.software.dialect());
        self.connection.limit_answers();
        self.connection.session().begin()?;
        for number in 1..=looks {
            let until = self.edge.at + length * number / looks;
            while Instant::now() < until {
                if is_stopped() {
                    return Ok(false);
                }
                let left = until.saturating_duration_since(Instant::now());
                std::thread::sleep(left.min(STOP_EVERY));
            }
            self.connection.limit_answers();
            let mut seen = self.source.look(self.connection.session())?;
            seen.by_what_holders_do();
            add(&mut by_kind, &seen.by_kind);
            add(&mut self.capture.events, &seen.events);
            for Holder { kind, who, text } in seen.holders {
                let text = words::without_values(&text, dialect);
                let says = bounded(&format!("{who}, {}: {text}", kind.replace('_', " ")));
                add(&mut self.capture.holders, &Figures::from([(says, 1.0)]));
            }
            self.hidden = self.hidden.max(seen.hidden);
            self.looks += 1.0;
        }
        let counters = self.source.counters(self.connection.session())?;
        let at = Instant::now();
        let machine = self.machine.as_mut().map(Machine::edge);
        for ExecutedStatement { user, is_trusted, text } in
            self.source.texts(self.connection.session())?
        {
            if !is_trusted && !self.trusted.contains(&user) {
                if self.strangers.len() < NAMES_MAX {
                    self.strangers.insert(user);
                }
            } else if self.texts.len() < PLANS_MAX {
                self.texts.entry(words::without_values(&text, dialect)).or_insert(text);
            }
        }
        self.connection.session().rollback()?;
        let before = std::mem::replace(&mut self.edge, Edge { at, counters, machine });
        let window = self.since(&before, by_kind, looks as usize)?;
        self.capture.windows.push(window);
        Ok(true)
    }

    /// A window that ends at this edge.
    fn since(
        &self,
        before: &Edge,
        mut sessions: Figures,
        looks: usize,
    ) -> Result<Window, ObserverError> {
        const CLOCK_CORRECTED_S: f64 = 3.0;
        let (now, then) = (&self.edge.counters, &before.counters);
        if (now.started_s - then.started_s).abs() > CLOCK_CORRECTED_S {
            return Err(ObserverError::Restarted);
        }
        if now.ended < then.ended {
            return Err(ObserverError::Reset);
        }
        let seconds = self.edge.at.duration_since(before.at).as_secs_f64();
        let grown = |(name, count): (&String, &f64)| {
            let was = then.counts.get(name)?;
            Some((name.clone(), (count - was).max(0.0)))
        };
        let mut counts: Figures = now.counts.iter().filter_map(grown).collect();
        let machine = self.edge.machine.as_ref().zip(before.machine.as_ref());
        counts.extend(machine.map(|(now, then)| now.since(then)).unwrap_or_default());
        sessions.values_mut().for_each(|sum| *sum /= looks as f64);
        let ended = (now.ended - then.ended - self.source.own()).max(0.0);
        Ok(Window { seconds, ended, sessions, counts })
    }

    /// Ends it: what grew meanwhile, and plans of the statements that were seen.
    #[must_use]
    pub fn end(mut self, lost: Option<String>, is_stopped: &dyn Fn() -> bool) -> Capture {
        let is_there = lost.is_none();
        self.capture.lost = lost;
        self.capture.events.values_mut().for_each(|sum| *sum /= self.looks.max(1.0));
        if self.hidden > 0.0 {
            let remedy = self.source.remedy(&self.target.address.user);
            self.capture.missing.push(format!("the activity of other users' sessions ({remedy})"));
        }
        if let Some(machine) = &mut self.machine {
            self.capture.neighbours = machine.neighbours();
        }
        if is_there {
            self.take_inventory();
            self.take_plans(is_stopped);
            self.name_strangers();
        }
        self.capture
    }

    fn take_inventory(&mut self) {
        // An interruption leaves a transaction open.
        self.connection.limit_answers();
        let _ = self.connection.session().rollback();
        let after = self.source.inventory(self.connection.session(), &mut Vec::new());
        let grows = self.source.grows();
        let before = &self.before;
        let figures = |now: Figures, then: Option<&Figures>| -> Figures {
            let since = |(name, value): (String, f64)| match grows(&name) {
                true => {
                    let was = then.and_then(|then| then.get(&name)).copied().unwrap_or(0.0);
                    // One that was set back meanwhile began at nothing.
                    let grown = if value >= was { value - was } else { value };
                    (name, grown)
                }
                false => (name, value),
            };
            now.into_iter().map(since).collect()
        };
        let table = |(name, now): (String, Figures)| {
            let grown = figures(now, before.tables.get(&name));
            (name, grown)
        };
        self.capture.tables = after.tables.into_iter().map(table).collect();
        let index = |(name, now): (String, Index)| {
            let was = before.indexes.get(&name).and_then(|index| index.scans).unwrap_or(0.0);
            let scans = now.scans.map(|scans| if scans >= was { scans - was } else { scans });
            (name, Index { scans, ..now })
        };
        self.capture.indexes = after.indexes.into_iter().map(index).collect();
        let statement = |(id, now): (String, Statement)| {
            let was = before.statements.get(&id).map(|statement| &statement.figures);
            (id, Statement { figures: figures(now.figures, was), text: bounded(&now.text) })
        };
        let seconds = |statement: &Statement| statement.figures.get("seconds").copied();
        let mut statements: Vec<(String, Statement)> = after
            .statements
            .into_iter()
            .map(statement)
            .filter(|(_, statement)| seconds(statement).is_some_and(|seconds| seconds > 0.0))
            .collect();
        statements.sort_by(|one, other| {
            seconds(&other.1).unwrap_or(0.0).total_cmp(&seconds(&one.1).unwrap_or(0.0))
        });
        statements.truncate(STATEMENTS_MAX);
        self.capture.statements = statements.into_iter().collect();
    }

    /// Plans as the clients' sessions would have them, but for their own settings.
    fn take_plans(&mut self, is_stopped: &dyn Fn() -> bool) {
        if self.texts.is_empty() {
            return;
        }
        let mut target = self.target.clone();
        let patience = self.source.patience();
        let patience = patience.map(|(name, value)| (name.to_owned(), value.to_owned()));
        target.address.settings = patience.to_vec();
        let path = self.source.path(self.connection.session(), &target);
        let connection = path.and_then(|path| {
            target.address.settings.extend(path);
            target.connect()
        });
        let mut connection = match connection {
            Ok(connection) => connection,
            Err(error) => {
                self.capture.missing.push(format!("plans ({error})"));
                return;
            }
        };
        let mut without = 0_usize;
        for (name, text) in &self.texts {
            if is_stopped() {
                break;
            }
            connection.limit_answers();
            match connection.plan(text, Explain::Planned) {
                Ok(plan) => {
                    self.capture.plans.insert(bounded(name), plan);
                }
                Err(SessionError::Gone(_)) => return,
                Err(_) => without += 1,
            }
        }
        if without > 0 {
            self.capture.missing.push(format!(
                "plans of {without} of {} statements (texts with parameters, changes, tables that \
                 this user may not read, and names in schemas in which others create have none)",
                self.texts.len()
            ));
        }
    }

    /// Those whose statements have no plan, for want of trust.
    fn name_strangers(&mut self) {
        const NAMED_MAX: usize = 3;
        if self.strangers.is_empty() {
            return;
        }
        let mut names: Vec<&str> =
            self.strangers.iter().take(NAMED_MAX).map(String::as_str).collect();
        if self.strangers.len() > NAMED_MAX {
            names.push("…");
        }
        self.capture.missing.push(format!(
            "plans of statements of {} (to plan them could run functions of theirs with your \
             rights: --plans-of USER, for users that you trust)",
            names.join(", ")
        ));
    }
}

/// Adds counts by name, of as many names as are kept.
fn add(sums: &mut Figures, counts: &Figures) {
    for (name, count) in counts {
        if let Some(sum) = sums.get_mut(name) {
            *sum += count.max(0.0);
        } else if sums.len() < NAMES_MAX {
            sums.insert(name.clone(), count.max(0.0));
        }
    }
}

fn bounded(text: &str) -> String {
    text.chars().take(TEXT_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_names_are_kept_than_there_is_room_for() {
        let mut sums = Figures::new();
        for number in 0..2 * NAMES_MAX {
            add(&mut sums, &Figures::from([(format!("event {}", number % 700), 1.0)]));
        }
        assert_eq!(sums.len(), NAMES_MAX);
        assert_eq!(sums["event 1"], 2.0);
        assert_eq!(bounded(&"é".repeat(5_000)).chars().count(), TEXT_CHARS_MAX);
    }
}
