//! Order entry, derived from the TPC-C specification (revision 5.11): a wholesaler's terminals.
//!
//! ```text
//! warehouse ─ 10 districts ─ 3,000 customers each     New-Order     45 %   writes much
//!     └─ stock of 100,000 items                       Payment       43 %   writes little
//!                                                     Order-Status   4 %   reads
//! client n works for warehouse n mod W + 1            Delivery       4 %   writes, ten districts
//! and asks after stock in a district of its own       Stock-Level    4 %   reads much
//! ```
//!
//! Properties that figures depend on are as specified: sizes, the non-uniform choices, one
//! New-Order in a hundred rolled back after all its work, lines and payments of other warehouses,
//! customers by name, the mix, the pauses. Afterwards the twelve consistency conditions, the
//! inputs' shares, and every order that was acknowledged are looked at. Much of the specification
//! is not met (no terminals' screens, no priced system, no check of durable media): [`DISCLAIMER`].

mod conditions;
mod delivery;
mod durability_log;
mod enquiries;
mod input;
mod inputs;
mod mix;
mod new_order;
mod payment;
mod population;
mod rate;
mod rows;
mod schema;
mod statements;
mod strings;
mod terminal;
#[cfg(test)]
mod tests;
mod work;

use std::sync::{Arc, Mutex, PoisonError};

use crate::WorkloadError;
use crate::client::{Client, Condition, Moment, RowSink, Table, Workload};
use crate::random::Random;
use crate::session::{Dialect, Session, SessionError};
pub use durability_log::AcknowledgedCounts;
use durability_log::DurabilityLog;
pub use input::{
    CustomerKey, Delivery, Input, Kind, Line, NewOrder, OrderStatus, Payment, StockLevel,
};
pub use inputs::InputCounts;
pub use mix::{Mix, Pauses, response_limit_s};
pub use population::{Constants, DISTRICTS, Population};
pub use rate::{DISCLAIMER, Scaling, nopm, warehouses_for};
pub use statements::Isolation;

/// The names of the transactions, by position.
pub const KINDS: &[&str] = &["new-order", "payment", "order-status", "delivery", "stock-level"];

/// Streams of the seed.
const CONSTANTS: u32 = 0x00e0_0001;
const INPUTS: u32 = 0x00e0_0002;
const CHOICES: u32 = 0x00e0_0003;

/// Sizes and rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Sizes of the tables.
    pub population: Population,
    /// How the next transaction is chosen.
    pub mix: Mix,
    /// Whether terminals pause.
    pub pauses: Pauses,
    /// The isolation that transactions run at.
    pub isolation: Isolation,
    /// Determines the rows, and with `run` what terminals type.
    pub seed: u64,
    /// Which of several runs on the same rows.
    pub run: u32,
}

impl Options {
    /// The specification's sizes and mix, without pauses.
    #[must_use]
    pub fn of(warehouses: u32) -> Self {
        Self {
            population: Population::of(warehouses),
            mix: Mix::Weights,
            pauses: Pauses::None,
            isolation: Isolation::RepeatableRead,
            seed: 1,
            run: 1,
        }
    }
}

/// The workload.
#[derive(Debug, Clone)]
pub struct OrderEntry {
    options: Options,
    constants: Constants,
    shared: Arc<SharedState>,
}

/// The state that its terminals share.
#[derive(Debug, Default)]
struct SharedState {
    durability_log: DurabilityLog,
    counts: Mutex<InputCounts>,
}

impl SharedState {
    fn count(&self, input: &Input) {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).count(input);
    }
}

impl OrderEntry {
    /// The workload of these options.
    ///
    /// # Errors
    /// When the sizes can't be made.
    pub fn new(options: Options) -> Result<Self, WorkloadError> {
        options.population.checked()?;
        let constants = Constants::new(&mut Random::new(options.seed, CONSTANTS, 0));
        Ok(Self { options, constants, shared: Arc::default() })
    }

    /// Its options.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The constants of its non-uniform choices.
    #[must_use]
    pub fn constants(&self) -> &Constants {
        &self.constants
    }

    /// The transactions completed since the last look at fresh data.
    #[must_use]
    pub fn counts(&self) -> InputCounts {
        *self.shared.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Orders and payments that were acknowledged since the last look at fresh data, and commits
    /// that no answer came to.
    #[must_use]
    pub fn acknowledged(&self) -> AcknowledgedCounts {
        self.shared.durability_log.counts()
    }

    fn forget(&self) {
        self.shared.durability_log.forget();
        let mut counts = self.shared.counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts = InputCounts::default();
    }

    /// Random of a client's own, other ones in each run.
    fn random(&self, purpose: u32, client: u32) -> Random {
        // Runs are kept apart by the seed, which the rows' streams do not share: an odd factor
        // gives every run another one.
        let run = u64::from(self.options.run).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Random::new(self.options.seed ^ run, purpose, client)
    }
}

impl Workload for OrderEntry {
    fn name(&self) -> &'static str {
        "order-entry"
    }

    fn kinds(&self) -> Vec<String> {
        KINDS.iter().map(|kind| (*kind).to_owned()).collect()
    }

    fn tables(&self, dialect: Dialect) -> Result<Vec<Table>, SessionError> {
        schema::tables(dialect)
    }

    fn rows(&self, table: usize, sink: RowSink<'_>) -> Result<(), SessionError> {
        let Options { population, seed, .. } = self.options;
        rows::Rows { population, constants: self.constants, seed }.pour(table, sink)
    }

    fn client(&self, number: u32) -> Box<dyn Client> {
        let Options { population, mix, pauses, isolation, .. } = self.options;
        let typist = input::Typist {
            population,
            constants: self.constants,
            warehouse: number % population.warehouses + 1,
            district: number / population.warehouses % DISTRICTS + 1,
            random: self.random(INPUTS, number),
        };
        Box::new(terminal::Terminal {
            chooser: mix::Chooser::new(mix, pauses, self.random(CHOICES, number)),
            typist,
            isolation,
            shared: self.shared.clone(),
            prepared: None,
            typed: None,
        })
    }

    /// Most of its tables change: a copy of them is less work.
    fn reset(&self, _dialect: Dialect) -> Option<Vec<String>> {
        self.forget();
        None
    }

    fn check(
        &self,
        session: &mut dyn Session,
        when: Moment,
    ) -> Result<Vec<Condition>, SessionError> {
        let population = self.options.population;
        // One snapshot for all queries of the check.
        session.run(&Isolation::RepeatableRead.setting(session.dialect()))?;
        let mut conditions = conditions::check(session, population, when)?;
        match when {
            Moment::Loaded => self.forget(),
            Moment::Drained => {
                conditions.extend(self.shared.durability_log.check(session, population)?);
                conditions.extend(self.counts().check(population.warehouses));
            }
        }
        Ok(conditions)
    }
}
