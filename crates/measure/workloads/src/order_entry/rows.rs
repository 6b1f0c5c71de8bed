//! The initial rows (clause 4.3.3.1), each table by itself and in the order of its key.
//!
//! A district's orders are known to three tables; what they share (who ordered, how many lines)
//! has a stream of its own, which each of them draws again.

use super::population::{Constants, DISTRICTS, FIRST_PAYMENT_CENTS, Population, last_name, nurand};
use super::schema;
use super::strings::Letters;
use crate::client::RowSink;
use crate::random::Random;
use crate::session::{Decimal, SessionError, Timestamp, Value};

/// When all of it is said to have happened: 2026-01-01.
const LOADED: Value<'static> = Value::Timestamp(Timestamp(1_767_225_600_000_000));

/// Streams of the seed: one for each table, and one for what tables share.
const TABLES: u32 = 0x00e0_0100;
const ORDERED: u32 = 0x00e0_0200;

/// The generator of the rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows {
    pub(super) population: Population,
    pub(super) constants: Constants,
    pub(super) seed: u64,
}

impl Rows {
    /// Rows of the table at a position in the schema.
    pub(super) fn pour(&self, table: usize, sink: RowSink<'_>) -> Result<(), SessionError> {
        if table == schema::ITEM {
            return self.items(&mut self.random(table, 0), sink);
        }
        for warehouse in 1..=self.population.warehouses {
            let mut random = self.random(table, warehouse);
            match table {
                schema::WAREHOUSE => self.warehouse(&mut random, warehouse, sink)?,
                schema::STOCK => self.stock(&mut random, warehouse, sink)?,
                _ => {
                    for district in 1..=DISTRICTS {
                        let at = Place { warehouse, district };
                        self.of_district(table, at, &mut random, sink)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn random(&self, table: usize, warehouse: u32) -> Random {
        Random::new(self.seed, TABLES + table as u32, warehouse)
    }

    fn of_district(
        &self,
        table: usize,
        at: Place,
        random: &mut Random,
        sink: RowSink<'_>,
    ) -> Result<(), SessionError> {
        match table {
            schema::DISTRICT => self.district(random, at, sink),
            schema::CUSTOMER => self.customers(random, at, sink),
            schema::HISTORY => self.history(random, at, sink),
            schema::ORDERS => self.orders(random, at, sink),
            schema::NEW_ORDER => (self.population.first_open()..=self.population.customers)
                .try_for_each(|order| sink(&[int(order), at.district(), at.warehouse()])),
            schema::ORDER_LINE => self.order_lines(random, at, sink),
            _ => Ok(()),
        }
    }

    fn items(&self, random: &mut Random, sink: RowSink<'_>) -> Result<(), SessionError> {
        let [mut name, mut data] = <[Letters; 2]>::default();
        (1..=self.population.items).try_for_each(|item| {
            let image = random.within(1, 10_000);
            name.any(random, 14, 24);
            let price = random.within(100, 10_000);
            data.data(random);
            sink(&[int(item), Value::Int(image), text(&name), cents(price), text(&data)])
        })
    }

    fn warehouse(
        &self,
        random: &mut Random,
        warehouse: u32,
        sink: RowSink<'_>,
    ) -> Result<(), SessionError> {
        let mut name = Letters::default();
        name.any(random, 6, 10);
        let mut address = Address::default();
        let [street_1, street_2, city, state, zip] = address.draw(random);
        let tax = tenthousandths(random.within(0, 2_000));
        let received = cents(self.population.district_cents() * i64::from(DISTRICTS));
        let name = text(&name);
        sink(&[int(warehouse), name, street_1, street_2, city, state, zip, tax, received])
    }

    fn district(
        &self,
        random: &mut Random,
        at: Place,
        sink: RowSink<'_>,
    ) -> Result<(), SessionError> {
        let mut name = Letters::default();
        name.any(random, 6, 10);
        let mut address = Address::default();
        let [street_1, street_2, city, state, zip] = address.draw(random);
        sink(&[
            at.district(),
            at.warehouse(),
            text(&name),
            street_1,
            street_2,
            city,
            state,
            zip,
            tenthousandths(random.within(0, 2_000)),
            cents(self.population.district_cents()),
            int(self.population.customers + 1),
        ])
    }

    fn stock(
        &self,
        random: &mut Random,
        warehouse: u32,
        sink: RowSink<'_>,
    ) -> Result<(), SessionError> {
        let mut districts = <[Letters; 10]>::default();
        let mut data = Letters::default();
        (1..=self.population.items).try_for_each(|item| {
            let quantity = random.within(10, 100);
            for district in &mut districts {
                district.any(random, 24, 24);
            }
            data.data(random);
            let mut row = [Value::Int(0); 17];
            row[..3].copy_from_slice(&[int(item), int(warehouse), Value::Int(quantity)]);
            for (value, district) in row[3..13].iter_mut().zip(&districts) {
                *value = text(district);
            }
            row[16] = text(&data);
            sink(&row)
        })
    }

    fn customers(
        &self,
        random: &mut Random,
        at: Place,
        sink: RowSink<'_>,
    ) -> Result<(), SessionError> {
        let [mut first, mut phone, mut data] = <[Letters; 3]>::default();
        let mut address = Address::default();
        let names = self.population.names();
        (1..=self.population.customers).try_for_each(|customer| {
            first.any(random, 8, 16);
            // Every name once, and then as they are requested.
            let name = match customer <= names {
                true => customer - 1,
                false => nurand(random, 255, (0, names - 1), self.constants.name_loading),
            };
            let last = last_name(name);
            let [street_1, street_2, city, state, zip] = address.draw(random);
            phone.digits(random, 16);
            let credit = if random.percent(10) { "BC" } else { "GC" };
            let discount = tenthousandths(random.within(0, 5_000));
            data.any(random, 300, 500);
            sink(&[
                int(customer),
                at.district(),
                at.warehouse(),
                text(&first),
                Value::Text("OE"),
                Value::Text(&last),
                street_1,
                street_2,
                city,
                state,
                zip,
                text(&phone),
                LOADED,
                Value::Text(credit),
                cents(5_000_000),
                discount,
                cents(-FIRST_PAYMENT_CENTS),
                cents(FIRST_PAYMENT_CENTS),
                int(1),
                int(0),
                text(&data),
            ])
        })
    }

    fn history(
        &self,
        random: &mut Random,
        at: Place,
        sink: RowSink<'_>,
    ) -> Result<(), SessionError> {
        let mut data = Letters::default();
        let (district, warehouse) = (at.district(), at.warehouse());
        (1..=self.population.customers).try_for_each(|customer| {
            data.any(random, 12, 24);
            let (paid, data) = (cents(FIRST_PAYMENT_CENTS), text(&data));
            sink(&[int(customer), district, warehouse, district, warehouse, LOADED, paid, data])
        })
    }

    /// Who ordered, and how many lines, from order 1 on.
    fn ordered(&self, at: Place) -> impl Iterator<Item = (u32, u32)> + use<> {
        let number = at.warehouse * DISTRICTS + at.district;
        let mut random = Random::new(self.seed, ORDERED, number);
        let mut customers: Vec<u32> = (1..=self.population.customers).collect();
        random.shuffle(&mut customers);
        customers.into_iter().map(move |customer| (customer, random.within(5, 15) as u32))
    }

    fn orders(
        &self,
        random: &mut Random,
        at: Place,
        sink: RowSink<'_>,
    ) -> Result<(), SessionError> {
        (1..).zip(self.ordered(at)).try_for_each(|(order, (customer, lines))| {
            let carrier = match order < self.population.first_open() {
                true => Value::Int(random.within(1, 10)),
                false => Value::Null,
            };
            let (district, warehouse) = (at.district(), at.warehouse());
            let customer = int(customer);
            sink(&[int(order), district, warehouse, customer, LOADED, carrier, int(lines), int(1)])
        })
    }

    fn order_lines(
        &self,
        random: &mut Random,
        at: Place,
        sink: RowSink<'_>,
    ) -> Result<(), SessionError> {
        let mut info = Letters::default();
        for (order, (_, lines)) in (1..).zip(self.ordered(at)) {
            for line in 1..=lines {
                let item = random.within(1, i64::from(self.population.items));
                let (delivered, amount) = match order < self.population.first_open() {
                    true => (LOADED, cents(0)),
                    false => (Value::Null, cents(random.within(1, 999_999))),
                };
                info.any(random, 24, 24);
                sink(&[
                    int(order),
                    at.district(),
                    at.warehouse(),
                    int(line),
                    Value::Int(item),
                    at.warehouse(),
                    delivered,
                    int(5),
                    amount,
                    text(&info),
                ])?;
            }
        }
        Ok(())
    }
}

/// A district of a warehouse.
#[derive(Clone, Copy)]
struct Place {
    warehouse: u32,
    district: u32,
}

impl Place {
    fn warehouse(self) -> Value<'static> {
        int(self.warehouse)
    }
    fn district(self) -> Value<'static> {
        int(self.district)
    }
}

/// Two streets, city, state, zip code.
#[derive(Default)]
struct Address([Letters; 5]);

impl Address {
    fn draw(&mut self, random: &mut Random) -> [Value<'_>; 5] {
        let [street_1, street_2, city, state, zip] = &mut self.0;
        for line in [street_1, street_2, city] {
            line.any(random, 10, 20);
        }
        state.state(random);
        zip.zip(random);
        self.0.each_ref().map(text)
    }
}

fn int(int: u32) -> Value<'static> {
    Value::Int(i64::from(int))
}

fn text(letters: &Letters) -> Value<'_> {
    Value::Text(letters.text())
}

fn cents(cents: i64) -> Value<'static> {
    Value::Decimal(Decimal::cents(cents))
}

fn tenthousandths(units: i64) -> Value<'static> {
    Value::Decimal(Decimal::new(units, 4))
}
