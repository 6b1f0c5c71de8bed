//! Numbers of a cell that are found by trials, once for all its samples.
//!
//! ```text
//! warehouses   load W ─► clients for some seconds ─► NOPM ─► W is too few or too many for it?
//!                                                            ⌈NOPM / 12.86⌉, again
//! clients      1, 2, 4, … for some seconds each ─► until twice as many gain hardly anything
//! ```
//!
//! Keeton et al. (1998) scale warehouses with the rate, so that figures of different machines mean
//! the same: 9 to 12.7 transactions a minute and warehouse. Without pauses a rate can require more
//! warehouses than there is room for: the cell gives their maximum, and `of_bound_share` is the
//! share that was reached.

use std::str::FromStr;
use std::time::Duration;

use workahead_study::engine::{EngineError, Stop};
use workahead_workloads::order_entry::{Kind, Options, Pauses, nopm, warehouses_for};

use super::configuration::Configuration;
use super::work::Work;
use super::{DatabaseEngine, sample};
use crate::load::{End, Load, LoadResult, Until};

/// Long enough for thousands of transactions of any server, short beside loading.
const TRIAL: Duration = Duration::from_secs(3);
/// The least rate a warehouse in the runs of Keeton et al. (1998, §2.4).
const PER_WAREHOUSE_MIN: f64 = 9.0;
/// Every round but the last loads anew.
const ROUNDS_MAX: usize = 5;
/// Most clients: as many connections as a private server takes, less a few of our own.
const CLIENTS_MAX: usize = 190;
/// The least gain of twice as many clients: the rate of a trial varies by less.
const WORTH: f64 = 1.1;

/// The number of clients of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clients {
    /// This number.
    Number(usize),
    /// As many as saturate the server.
    Ramp,
}

impl FromStr for Clients {
    type Err = String;

    fn from_str(text: &str) -> Result<Clients, String> {
        match (text, text.parse()) {
            ("ramp", _) => Ok(Clients::Ramp),
            (_, Ok(number)) if (1..=CLIENTS_MAX).contains(&number) => Ok(Clients::Number(number)),
            _ => Err(format!("`{text}` is not a whole number from 1 to {CLIENTS_MAX}, nor `ramp`")),
        }
    }
}

impl DatabaseEngine {
    /// The cell with the numbers found by trials.
    pub(super) fn with_found_numbers(
        &mut self,
        mut config: Configuration,
        stop: &Stop,
    ) -> Result<Configuration, EngineError> {
        if let (Some(most), Work::OrderEntry(options)) = (config.scale_to_bound, &config.work) {
            let mut options = *options;
            let warehouses = |served: &mut DatabaseEngine, config: &Configuration| {
                served.scale(config, options, most, stop)
            };
            options.population.warehouses = self.once(&config, warehouses)?;
            config.work = Work::OrderEntry(options);
        }
        if config.ramp {
            let clients =
                |served: &mut DatabaseEngine, config: &Configuration| served.ramp(config, stop);
            config.clients = self.once(&config, clients)? as usize;
            config.ramp = false;
        }
        Ok(config)
    }

    /// A number from the cell's first trial.
    fn once(
        &mut self,
        config: &Configuration,
        find: impl FnOnce(&mut DatabaseEngine, &Configuration) -> Result<u32, EngineError>,
    ) -> Result<u32, EngineError> {
        let cell = format!("{config:?}");
        if let Some(found) = self.found.get(&cell) {
            return Ok(*found);
        }
        let found = find(self, config)?;
        self.found.insert(cell, found);
        Ok(found)
    }

    fn scale(
        &mut self,
        config: &Configuration,
        mut options: Options,
        most: u32,
        stop: &Stop,
    ) -> Result<u32, EngineError> {
        for _ in 0..ROUNDS_MAX {
            let trial = Configuration { work: Work::OrderEntry(options), ..config.clone() };
            let driven = self.try_out(&trial, stop)?;
            let orders = driven.kinds.get(Kind::NewOrder.position()).map_or(0, |kind| kind.done);
            let rate = nopm(orders, driven.wall_s);
            match suited(rate, &options, most) {
                Some(warehouses) => options.population.warehouses = warehouses,
                None => break,
            }
        }
        Ok(options.population.warehouses)
    }

    fn ramp(&mut self, config: &Configuration, stop: &Stop) -> Result<u32, EngineError> {
        let clients = saturating(|clients| {
            let trial = Configuration { clients, ..config.clone() };
            Ok::<_, EngineError>(self.try_out(&trial, stop)?.per_s().unwrap_or_default())
        });
        Ok(clients? as u32)
    }

    /// Runs clients for the time of a trial, on the data as loaded.
    fn try_out(&mut self, trial: &Configuration, stop: &Stop) -> Result<LoadResult, EngineError> {
        self.bring_back(trial, stop)?;
        let workload = self.workload(&trial.work)?;
        let (connector, cpus) = (self.database.connector()?, self.client_cpus(trial));
        let load = sample::load(trial, workload.as_ref(), connector.as_ref(), cpus);
        let driven = Load { until: Until::Time(TRIAL), ..load }.drive(stop, &mut |_| {})?;
        match &driven.end {
            End::Done => Ok(driven),
            End::Stopped => Err(EngineError::Stopped),
            End::Gone { says, .. } => {
                let says = format!("the server went away in a trial: {says}");
                Err(EngineError::failed(says))
            }
        }
    }
}

/// The number of warehouses that a rate asks for, if it is another one: more, at most `most`, for a
/// rate above the bound, and fewer where clients without pauses hardly use them. A trial is too
/// short for people's pauses.
fn suited(rate: f64, options: &Options, most: u32) -> Option<u32> {
    let warehouses = options.population.warehouses;
    let wanted = warehouses_for(rate, options.mix).min(most);
    let hardly_used = rate > 0.0 && rate / f64::from(warehouses) < PER_WAREHOUSE_MIN;
    let too_many = wanted < warehouses && hardly_used && options.pauses == Pauses::None;
    (wanted > warehouses || too_many).then_some(wanted)
}

/// The fewest clients of 1, 2, 4, … where doubling them gains hardly anything.
fn saturating<E>(mut rate: impl FnMut(usize) -> Result<f64, E>) -> Result<usize, E> {
    let (mut clients, mut reached) = (1, rate(1)?);
    while 2 * clients <= CLIENTS_MAX {
        let next = rate(2 * clients)?;
        if next < WORTH * reached {
            break;
        }
        (clients, reached) = (2 * clients, next);
    }
    Ok(clients)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ramp_ends_where_more_clients_do_hardly_more() {
        let of = |rate: fn(usize) -> f64| saturating(|clients| Ok::<_, ()>(rate(clients))).unwrap();
        assert_eq!(of(|clients| clients.min(6) as f64), 8, "6 are more than 4 by half");
        assert_eq!(of(|_| 100.0), 1);
        assert_eq!(of(|clients| 100.0 / clients as f64), 1, "they may also disturb each other");
        assert_eq!(of(|clients| clients as f64), 128, "no more than a server accepts");
        assert_eq!(saturating(|_| Err::<f64, _>("gone")), Err("gone"));
    }

    #[test]
    fn warehouses_follow_a_rate_up_and_down() {
        let with = |rate, warehouses, pauses| {
            suited(rate, &Options { pauses, ..Options::of(warehouses) }, 100)
        };
        let of = |rate, warehouses| with(rate, warehouses, Pauses::None);
        assert_eq!(of(500.0, 10), Some(39));
        assert_eq!(of(5_000.0, 10), Some(100), "no more than there is room for");
        assert_eq!(of(5_000.0, 100), None);
        assert_eq!(of(95.0, 10), None, "9.5 each is within the band");
        assert_eq!(of(50.0, 10), Some(4), "5 each is not");
        assert_eq!(of(0.0, 1), None, "one at least");
        assert_eq!(of(0.0, 10), None, "a server that stands still says nothing");
        assert_eq!(with(50.0, 10, Pauses::AsPeople), None, "nor does a trial with pauses");
    }

    #[test]
    fn clients_are_a_number_or_a_ramp() {
        assert_eq!("7".parse(), Ok(Clients::Number(7)));
        assert_eq!("ramp".parse(), Ok(Clients::Ramp));
        for wrong in ["0", "191", "-1", "1.5", "rampe", ""] {
            assert!(wrong.parse::<Clients>().unwrap_err().contains("nor `ramp`"), "{wrong}");
        }
    }
}
