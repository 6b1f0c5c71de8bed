//! The rules again, literally from the paper's text and over integers that don't wrap: the oracle
//! for the header. Slow and wordy on purpose; shares no code with it. Bounded waiting is one rule
//! before the paper's: a candidate for which B can't wait isn't there.

use crate::{Choice, Count, GroupRole, Pick, Publish, Reading, Role, UNHURRIED};

/// The state before a decision. Vruntimes as mathematical integers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct State {
    pub(crate) role: Role,
    pub(crate) reading: Reading,
    /// B on an alone core or a master, F on a slave.
    pub(crate) b: Option<i128>,
    /// C, or G on a slave.
    pub(crate) c: Option<i128>,
    /// H.
    pub(crate) h: Option<i128>,
    pub(crate) overdue: bool,
    pub(crate) count: u32,
    pub(crate) limit: u32,
    pub(crate) bonus: i128,
    /// H's.
    pub(crate) companion_bonus: i128,
    /// How long B can wait.
    pub(crate) slack: i128,
    /// How long C and H will run.
    pub(crate) turn: i128,
}

impl State {
    /// Without the candidates for which B can't wait.
    fn within_slack(self) -> Self {
        let waits = self.slack > 0 && self.turn <= self.slack;
        Self { c: self.c.filter(|_| waits), h: self.h.filter(|_| waits), ..self }
    }
}

/// The decision, and the rules that led to it in the paper's numbering.
pub(crate) fn decide(state: &State) -> (Choice, &'static str) {
    let state = &state.within_slack();
    let (mut choice, path) = match state.role {
        Role::Alone => tas(state),
        Role::Master => master(state),
        Role::Slave => slave(state),
    };
    if matches!(choice.pick, Pick::Member | Pick::Companion) {
        choice.turn_ns = u64::try_from(state.slack).expect("it can wait");
    }
    (choice, path)
}

/// A choice before which nobody waits.
fn chosen(pick: Pick, count: Count) -> Choice {
    let (whose, publish) = (GroupRole::Current, Publish::Leave);
    Choice { pick, count, whose, publish, turn_ns: UNHURRIED }
}

/// "Vrun_rival > Vrun_candidate − agg_bonus", false if either doesn't exist.
fn equation(rival: Option<i128>, candidate: Option<i128>, bonus: i128) -> bool {
    match (rival, candidate) {
        (Some(rival), Some(candidate)) => rival > candidate - bonus,
        _ => false,
    }
}

fn eq1(state: &State) -> bool {
    state.count < state.limit
}

/// The one rule not in the paper: an overdue head has no rival.
fn passes_head(state: &State, candidate: Option<i128>, bonus: i128) -> bool {
    !state.overdue && equation(state.b, candidate, bonus)
}

fn head_of(state: &State) -> Pick {
    if state.b.is_some() { Pick::Head } else { Pick::Nobody }
}

fn tas(state: &State) -> (Choice, &'static str) {
    if !eq1(state) {
        return (chosen(head_of(state), Count::Reset), "TP1 false");
    }
    if !passes_head(state, state.c, state.bonus) {
        return (chosen(head_of(state), Count::Reset), "TP1 TP2 false");
    }
    (chosen(Pick::Member, Count::Increment), "TP1 TP2 TP3")
}

fn master(state: &State) -> (Choice, &'static str) {
    let whose = match state.reading {
        Reading::Corrected => GroupRole::Current,
        Reading::Literal => GroupRole::Slave,
    };
    let published = |pick, count, publish| Choice { publish, whose, ..chosen(pick, count) };
    let ip5 = published(head_of(state), Count::Reset, Publish::Withdraw);
    if state.c.is_none() {
        return (ip5, "IP2 IP5");
    }
    if eq1(state) && passes_head(state, state.c, state.bonus) {
        return (published(Pick::Member, Count::Increment, Publish::Own), "IP2 IP3 IP4");
    }
    (ip5, "IP2 IP3 IP5")
}

fn slave(state: &State) -> (Choice, &'static str) {
    let (eq3, eq5) = (
        passes_head(state, state.h, state.companion_bonus),
        passes_head(state, state.c, state.bonus),
    );
    let eq4 = equation(state.c, state.h, state.companion_bonus);
    let literal = state.reading == Reading::Literal;
    match (state.c.is_some(), state.h.is_some()) {
        (true, true) if eq3 && eq4 => (chosen(Pick::Companion, Count::Reset), "IP6.1"),
        (true, both) => {
            let path = |taken| match (both, taken) {
                (true, true) => "IP6.1 IP6.2 true",
                (true, false) => "IP6.1 IP6.2 false",
                (false, true) => "IP6.2 true",
                (false, false) => "IP6.2 false",
            };
            let counted = if literal { Count::RaiseBonus } else { Count::Increment };
            match eq1(state) && eq5 {
                true => (chosen(Pick::Member, counted), path(true)),
                false => (chosen(head_of(state), Count::Reset), path(false)),
            }
        }
        (false, true) => {
            let taken = if literal { eq4 } else { eq3 };
            match taken {
                true => (chosen(Pick::Companion, Count::Reset), "IP6.3 true"),
                false => (chosen(head_of(state), Count::Reset), "IP6.3 false"),
            }
        }
        (false, false) => {
            let count = if literal { Count::Keep } else { Count::Reset };
            (chosen(head_of(state), count), "IP6 neither")
        }
    }
}
