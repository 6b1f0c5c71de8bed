//! Questions of people who run databases: a study that asks, and a sentence that answers.
//!
//! ```text
//! Request ── study() ──► TOML ──► rounds of samples ──► Comparison ──► Answer: a sentence
//!  question, workload              of every level     after each round    with an interval
//!                                        ▲                   │
//!                                        └── not decided yet ┘
//! ```
//!
//! Every question compares *levels* of one setting: CPUs, clients, degrees of parallelism, siblings
//! on or off. All levels are sampled in every round, in ABBA order, so that samples of a round are
//! paired; but for those that fell short at a look, which are left out from then on. Three
//! questions need no levels: which joins wait for memory ([`JoinsAnswer`], from plans), how much of
//! what a live server can do is used ([`capacity`]), and why it takes longer than it did
//! ([`causes`]). Deliberately absent: this crate runs nothing and prints nothing.

#![forbid(unsafe_code)]

mod answer;
pub mod capacity;
pub mod causes;
mod comparison;
mod joins;
mod prices;
mod question;
mod request;
mod words;

pub use answer::{Answer, LevelAnswer, Look};
pub use comparison::{LOOKS, Verdict};
pub use joins::{JOINS_STUDY, JoinAnswer, JoinsAnswer, JoinsRequest, size};
pub use prices::Prices;
pub use question::Question;
pub use request::{Request, RequestError, Workload};
pub use words::time;
