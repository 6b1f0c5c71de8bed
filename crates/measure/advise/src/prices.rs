//! The cost of a level: a file that its user fills in.

use serde::Deserialize;
use workahead_machine::nesting;

/// Prices of a machine and of its cores, in any currency.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// The currency's name.
    pub currency: String,
    /// The machine, however many of its cores are used, in an hour.
    #[serde(default)]
    pub machine_per_hour: f64,
    /// A core and its licences, in an hour.
    #[serde(default)]
    pub core_per_hour: f64,
}

impl Prices {
    /// Reads the file's text.
    ///
    /// # Errors
    /// The prices of a file, or its fault in a line.
    pub fn parse(text: &str) -> Result<Prices, String> {
        nesting::check(text)?;
        let prices: Prices =
            toml::from_str(text).map_err(|error| error.message().replace('\n', ", "))?;
        let all = [prices.machine_per_hour, prices.core_per_hour];
        match all.iter().all(|price| price.is_finite() && *price >= 0.0) && all != [0.0, 0.0] {
            true => Ok(prices),
            false => Err("give `machine_per_hour` or `core_per_hour`, above 0".to_owned()),
        }
    }

    /// The cost of a million at this throughput, on as many cores.
    pub(crate) fn of_million(&self, cores: f64, per_s: f64) -> f64 {
        (self.machine_per_hour + self.core_per_hour * cores) / 3600.0 / per_s * 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_costs_the_time_that_it_takes() {
        let prices = Prices::parse("currency = 'EUR'\nmachine_per_hour = 1.8\ncore_per_hour = 0.9");
        // 3.60 an hour for 1000 a second, which are 3.6 million an hour.
        assert!((prices.unwrap().of_million(2.0, 1000.0) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn invalid_prices_are_refused() {
        for text in ["", "currency = 'EUR'", "currency = 'EUR'\ncore_per_hour = -1", "core = 1"] {
            assert!(!Prices::parse(text).unwrap_err().contains('\n'), "{text}");
        }
    }
}
