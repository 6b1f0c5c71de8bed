//! What was decided.

use crate::ffi::{self, COMPANION, HEAD, RawChoice, SIBLING};

/// Who runs next, and what follows from it. The caller keeps counts and published groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Who runs next.
    pub pick: Pick,
    /// What becomes of a count.
    pub count: Count,
    /// Whose count that is.
    pub whose: Whose,
    /// What becomes of the published group, `ia_mm`.
    pub publish: Publish,
}

/// Who runs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pick {
    /// The queue was empty.
    Nobody,
    /// B or F: the lowest vruntime.
    Head,
    /// C or G: the thread of the group that ran last. Time aggregation.
    Sibling,
    /// H: the thread of the group that the master published. Inter-core aggregation.
    Companion,
}

/// What becomes of a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Count {
    /// Nothing (literal reading only).
    Keep,
    /// It is 0 now.
    Reset,
    /// One more.
    Increment,
    /// The bonus of the group grows by one nanosecond instead (literal IP6.2).
    RaiseBonus,
}

/// Whose count it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Whose {
    /// That of the group which ran last on this core.
    Current,
    /// That of the group which runs on the slave (literal IP3 and IP5: "thread E").
    Slave,
}

/// What becomes of the published group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Publish {
    /// It stays: only masters write it.
    Leave,
    /// None is published.
    Withdraw,
    /// The group that ran last on this core is.
    Own,
}

impl Count {
    /// The count after this change.
    #[must_use]
    pub fn after(self, count: u32) -> u32 {
        let change = match self {
            Self::Keep => 0,
            Self::Reset => 1,
            Self::Increment => 2,
            Self::RaiseBonus => 3,
        };
        ffi::count_after(count, change)
    }
}

impl From<RawChoice> for Choice {
    fn from(raw: RawChoice) -> Self {
        Self {
            pick: match raw.pick {
                HEAD => Pick::Head,
                SIBLING => Pick::Sibling,
                COMPANION => Pick::Companion,
                _ => Pick::Nobody,
            },
            count: match raw.count {
                0 => Count::Keep,
                1 => Count::Reset,
                2 => Count::Increment,
                _ => Count::RaiseBonus,
            },
            whose: if raw.whose == 0 { Whose::Current } else { Whose::Slave },
            publish: match raw.publish {
                0 => Publish::Leave,
                1 => Publish::Withdraw,
                _ => Publish::Own,
            },
        }
    }
}
