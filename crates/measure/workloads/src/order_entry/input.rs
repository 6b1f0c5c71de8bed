//! The input of a terminal, for the five transactions (clauses 2.4.1 to 2.8.1).
//!
//! Whole inputs are drawn before anything runs, so that a transaction that the server gave up can
//! be run again as it was.

use super::population::{Constants, DISTRICTS, Population, nurand};
use crate::random::Random;

/// The five transactions; their positions are those of [`KINDS`](super::KINDS).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Enters an order.
    NewOrder,
    /// Takes a payment.
    Payment,
    /// Asks for a customer's last order.
    OrderStatus,
    /// Delivers the oldest open order of each district.
    Delivery,
    /// Counts items that run out.
    StockLevel,
}

impl Kind {
    /// All of them, in the order of their positions.
    pub const ALL: [Self; 5] =
        [Self::NewOrder, Self::Payment, Self::OrderStatus, Self::Delivery, Self::StockLevel];

    /// Its position.
    #[must_use]
    pub fn position(self) -> usize {
        self as usize
    }
}

/// A whole input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// See [`NewOrder`].
    NewOrder(NewOrder),
    /// See [`Payment`].
    Payment(Payment),
    /// See [`OrderStatus`].
    OrderStatus(OrderStatus),
    /// See [`Delivery`].
    Delivery(Delivery),
    /// See [`StockLevel`].
    StockLevel(StockLevel),
}

impl Input {
    /// Of which transaction it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::NewOrder(_) => Kind::NewOrder,
            Self::Payment(_) => Kind::Payment,
            Self::OrderStatus(_) => Kind::OrderStatus,
            Self::Delivery(_) => Kind::Delivery,
            Self::StockLevel(_) => Kind::StockLevel,
        }
    }
}

/// An order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewOrder {
    /// Where it is entered.
    pub warehouse: u32,
    /// The customer's district.
    pub district: u32,
    /// Who orders.
    pub customer: u32,
    /// Lines, in the order of the stock's key, so that two orders do not wait for each other in a
    /// circle; an item that does not exist is last.
    pub lines: Vec<Line>,
    /// Whether the last item does not exist, and everything is to be rolled back for that.
    pub rolls_back: bool,
}

/// A line of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// The item.
    pub item: u32,
    /// From where.
    pub supply_warehouse: u32,
    /// How many.
    pub quantity: u32,
}

/// How a customer is identified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CustomerKey {
    /// By number.
    Number(u32),
    /// By the number of a last name.
    Name(u32),
}

/// A payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payment {
    /// Where it is taken.
    pub warehouse: u32,
    /// In which district.
    pub district: u32,
    /// The customer's own warehouse.
    pub customer_warehouse: u32,
    /// The customer's own district.
    pub customer_district: u32,
    /// Who pays.
    pub who: CustomerKey,
    /// How much.
    pub cents: i64,
}

/// A question after an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderStatus {
    /// The customer's warehouse.
    pub warehouse: u32,
    /// The customer's district.
    pub district: u32,
    /// Who asks.
    pub who: CustomerKey,
}

/// A delivery in every district of a warehouse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Where.
    pub warehouse: u32,
    /// Who carries.
    pub carrier: u32,
}

/// A question after stock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StockLevel {
    /// Where.
    pub warehouse: u32,
    /// In which district.
    pub district: u32,
    /// The threshold: fewer is little.
    pub threshold: u32,
}

/// A terminal as far as inputs depend on it.
#[derive(Debug, Clone)]
pub(super) struct Typist {
    pub(super) population: Population,
    pub(super) constants: Constants,
    /// Its warehouse, which never changes.
    pub(super) warehouse: u32,
    /// The district that it asks after stock in, which never changes either.
    pub(super) district: u32,
    pub(super) random: Random,
}

impl Typist {
    /// Random an input.
    pub(super) fn input(&mut self, kind: Kind) -> Input {
        match kind {
            Kind::NewOrder => Input::NewOrder(self.new_order()),
            Kind::Payment => Input::Payment(self.payment()),
            Kind::OrderStatus => {
                let (warehouse, district) = (self.warehouse, self.any_district());
                Input::OrderStatus(OrderStatus { warehouse, district, who: self.who() })
            }
            Kind::Delivery => {
                let carrier = self.random.within(1, 10) as u32;
                Input::Delivery(Delivery { warehouse: self.warehouse, carrier })
            }
            Kind::StockLevel => {
                let (warehouse, district) = (self.warehouse, self.district);
                let threshold = self.random.within(10, 20) as u32;
                Input::StockLevel(StockLevel { warehouse, district, threshold })
            }
        }
    }

    fn new_order(&mut self) -> NewOrder {
        let district = self.any_district();
        let customer = self.customer();
        let count = self.random.within(5, 15) as usize;
        let rolls_back = self.random.percent(1);
        let mut lines: Vec<Line> = (0..count).map(|_| self.line()).collect();
        let exist = count - usize::from(rolls_back);
        lines[..exist].sort_by_key(|line| (line.supply_warehouse, line.item));
        if rolls_back {
            lines[count - 1].item = self.population.items + 1;
        }
        NewOrder { warehouse: self.warehouse, district, customer, lines, rolls_back }
    }

    fn line(&mut self) -> Line {
        let items = (1, self.population.items);
        let item = nurand(&mut self.random, 8191, items, self.constants.item);
        let supply_warehouse = match self.random.percent(1) {
            true => self.other_warehouse(),
            false => self.warehouse,
        };
        Line { item, supply_warehouse, quantity: self.random.within(1, 10) as u32 }
    }

    fn payment(&mut self) -> Payment {
        let district = self.any_district();
        let (customer_warehouse, customer_district) = match self.random.percent(85) {
            true => (self.warehouse, district),
            false => (self.other_warehouse(), self.any_district()),
        };
        Payment {
            warehouse: self.warehouse,
            district,
            customer_warehouse,
            customer_district,
            who: self.who(),
            cents: self.random.within(100, 500_000),
        }
    }

    fn who(&mut self) -> CustomerKey {
        match self.random.percent(60) {
            true => {
                let names = (0, self.population.names() - 1);
                CustomerKey::Name(nurand(&mut self.random, 255, names, self.constants.name_running))
            }
            false => CustomerKey::Number(self.customer()),
        }
    }

    fn customer(&mut self) -> u32 {
        let customers = (1, self.population.customers);
        nurand(&mut self.random, 1023, customers, self.constants.customer)
    }

    fn any_district(&mut self) -> u32 {
        self.random.within(1, i64::from(DISTRICTS)) as u32
    }

    /// Any warehouse but its own; its own when it is the only one.
    fn other_warehouse(&mut self) -> u32 {
        if self.population.warehouses == 1 {
            return self.warehouse;
        }
        let other = self.random.within(1, i64::from(self.population.warehouses) - 1) as u32;
        other + u32::from(other >= self.warehouse)
    }
}
