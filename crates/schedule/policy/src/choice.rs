//! The decision.

use crate::ffi::{self, COMPANION, HEAD, MEMBER, RawChoice};

/// The next thread, and the changes that follow. The caller keeps counts and published groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The next thread.
    pub pick: Pick,
    /// Change of the count.
    pub count: Count,
    /// Owner of the count.
    pub whose: GroupRole,
    /// Change of the published group, `ia_mm`.
    pub publish: Publish,
    /// Nanoseconds after which a thread that was passed over is due; [`crate::BONUS_MAX`] where
    /// there is none.
    pub turn_ns: u64,
}

/// The next thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pick {
    /// The queue was empty.
    Nobody,
    /// B or F: the lowest vruntime.
    Head,
    /// C or G: a thread of the group that ran last. Time aggregation.
    Member,
    /// H: a thread of the group that the master published. Inter-core aggregation.
    Companion,
}

/// Change of a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Count {
    /// Unchanged (literal reading only).
    Keep,
    /// Reset to 0.
    Reset,
    /// Incremented.
    Increment,
    /// The bonus of the group grows by one nanosecond instead (literal IP6.2).
    RaiseBonus,
}

/// Owner of a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GroupRole {
    /// The group that ran last on this core.
    Current,
    /// The group that runs on the slave (literal IP3 and IP5: "thread E").
    Slave,
}

/// Change of the published group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Publish {
    /// Unchanged: only masters write it.
    Leave,
    /// Withdrawn.
    Withdraw,
    /// The group that ran last on this core.
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
                MEMBER => Pick::Member,
                COMPANION => Pick::Companion,
                _ => Pick::Nobody,
            },
            count: match raw.count {
                0 => Count::Keep,
                1 => Count::Reset,
                2 => Count::Increment,
                _ => Count::RaiseBonus,
            },
            whose: if raw.whose == 0 { GroupRole::Current } else { GroupRole::Slave },
            publish: match raw.publish {
                0 => Publish::Leave,
                1 => Publish::Withdraw,
                _ => Publish::Own,
            },
            turn_ns: raw.turn,
        }
    }
}
