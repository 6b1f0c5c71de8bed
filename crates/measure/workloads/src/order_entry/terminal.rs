//! A terminal: types an input, runs it, remembers what was acknowledged.

use std::sync::Arc;

use super::durability_log::{Order, Unsure};
use super::input::{Input, Typist};
use super::mix::Chooser;
use super::new_order::OrderOutcome;
use super::statements::PreparedStatements;
use super::work::Work;
use super::{Isolation, SharedState, delivery, enquiries, new_order, payment};
use crate::client::{AttemptResult, Client, Next};
use crate::session::{Session, SessionError, undone};

pub(super) struct Terminal {
    pub(super) chooser: Chooser,
    pub(super) typist: Typist,
    pub(super) isolation: Isolation,
    pub(super) shared: Arc<SharedState>,
    pub(super) prepared: Option<PreparedStatements>,
    pub(super) typed: Option<Input>,
}

/// The way in which a transaction ended.
enum Ending {
    Commit,
    Order(u32),
    RollBack,
}

impl Client for Terminal {
    fn connected(&mut self, session: &mut dyn Session) -> Result<(), SessionError> {
        self.prepared = Some(PreparedStatements::on(session, self.isolation)?);
        Ok(())
    }

    fn next(&mut self) -> Next {
        let (kind, next) = self.chooser.next();
        self.typed = Some(self.typist.input(kind));
        next
    }

    fn attempt(&mut self, session: &mut dyn Session) -> Result<AttemptResult, SessionError> {
        let (Some(prepared), Some(input)) = (&self.prepared, &self.typed) else {
            return Err(SessionError::Failed("a client must connect and draw first".to_owned()));
        };
        session.begin()?;
        let mut work = Work::new(session, prepared);
        let ending = match run(&mut work, input) {
            Ok(ending) => ending,
            Err(error) => return Err(undone(session, error)),
        };
        let (rows, statements) = (work.rows, work.statements + 2);
        let rolled_back = matches!(ending, Ending::RollBack);
        match rolled_back {
            true => session.rollback()?,
            false => self
                .shared
                .committed(session.commit(), input)
                .map_err(|error| undone(session, error))?,
        }
        self.shared.completed(input, &ending);
        Ok(AttemptResult { rows, statements, checksum: 0, rolled_back })
    }
}

fn run(work: &mut Work<'_>, input: &Input) -> Result<Ending, SessionError> {
    match input {
        Input::NewOrder(order) => match new_order::run(work, order)? {
            OrderOutcome::Order(number) => return Ok(Ending::Order(number)),
            OrderOutcome::NoSuchItem => return Ok(Ending::RollBack),
        },
        Input::Payment(taken) => payment::run(work, taken)?,
        Input::OrderStatus(question) => enquiries::order_status(work, question)?,
        Input::Delivery(order) => drop(delivery::run(work, order)?),
        Input::StockLevel(question) => enquiries::stock_level(work, question)?,
    }
    Ok(Ending::Commit)
}

impl SharedState {
    /// Remembers a commit without an answer.
    fn committed(
        &self,
        commit: Result<(), SessionError>,
        input: &Input,
    ) -> Result<(), SessionError> {
        if matches!(commit, Err(SessionError::Gone(_))) {
            match input {
                Input::NewOrder(_) => self.durability_log.unsure(Unsure::Order),
                Input::Payment(_) => self.durability_log.unsure(Unsure::Payment),
                _ => {}
            }
        }
        commit
    }

    /// Remembers what was acknowledged.
    fn completed(&self, input: &Input, ending: &Ending) {
        match (input, ending) {
            (Input::NewOrder(order), Ending::Order(number)) => {
                let entered = Order { customer: order.customer, lines: order.lines.len() as u32 };
                self.durability_log.order((order.warehouse, order.district), *number, entered);
            }
            (Input::Payment(payment), Ending::Commit) => self.durability_log.payment(payment.cents),
            _ => {}
        }
        self.count(input);
    }
}
