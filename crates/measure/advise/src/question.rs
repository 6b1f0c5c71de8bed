//! The questions.

use serde::Serialize;

/// A question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// Should hardware siblings be used?
    Smt,
    /// How many cores does the workload need?
    Cores,
    /// How many processes should work on one query?
    Parallelism,
    /// How many clients should work at the same time?
    Clients,
}

impl Question {
    /// All of them.
    pub const ALL: [Question; 4] =
        [Question::Smt, Question::Cores, Question::Parallelism, Question::Clients];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Question::Smt => "smt",
            Question::Cores => "cores",
            Question::Parallelism => "parallelism",
            Question::Clients => "clients",
        }
    }

    /// The title of its studies.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Question::Smt => "Siblings on or off",
            Question::Cores => "Number of CPUs",
            Question::Parallelism => "Degree of parallelism",
            Question::Clients => "Number of clients",
        }
    }

    /// The id of its studies.
    #[must_use]
    pub fn study_id(self) -> String {
        format!("advise-{}", self.name())
    }

    /// The question that a study asks, if it is one of these.
    #[must_use]
    pub fn of_study(id: &str) -> Option<Question> {
        Question::ALL.into_iter().find(|question| question.study_id() == id)
    }

    /// In words.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Question::Smt => "Should the server use hardware siblings (SMT)?",
            Question::Cores => "How many CPUs does the workload need?",
            Question::Parallelism => "How many processes should work on one query?",
            Question::Clients => "How many clients should work at the same time?",
        }
    }

    /// The setting whose values are its levels.
    pub(crate) fn axis(self) -> &'static str {
        match self {
            Question::Smt => "case",
            Question::Cores => "cpus",
            Question::Parallelism => "parallel",
            Question::Clients => "clients",
        }
    }

    /// `4 CPUs`, `degree 2`, `1 client`.
    pub(crate) fn level(self, value: &str) -> String {
        let plural = if value == "1" { "" } else { "s" };
        match self {
            Question::Smt => value.to_owned(),
            Question::Cores => format!("{value} CPU{plural}"),
            Question::Parallelism => format!("degree {value}"),
            Question::Clients => format!("{value} client{plural}"),
        }
    }
}
