//! `tpch`: some of the 22 queries.

use std::str::FromStr;

use workahead_study::engine::EngineError;
use workahead_workloads::client::Order;
use workahead_workloads::tpch::{Layout, Options, QUERIES, Texts, Tpch};

use crate::configuration::CellConfiguration;

pub(crate) const ORDERS: [(&str, Order); 2] =
    [("as-written", Order::AsWritten), ("shuffled", Order::Shuffled)];

/// With fewer suppliers a part has the same one twice, which its key does not allow.
const SCALE_MIN: f64 = 0.01;

pub(super) fn read(config: &CellConfiguration<'_>) -> Result<Options, EngineError> {
    let scale = config.real("scale", 1.0, SCALE_MIN..=Tpch::SCALE_MAX)?;
    let tpch = Tpch::new(scale).map_err(EngineError::failed)?;
    let usual = Options::of(tpch);
    let Numbers(numbers) = config.text("query", Numbers(usual.numbers.clone()))?;
    Ok(Options {
        numbers,
        layout: config.choice(
            "layout",
            usual.layout,
            &[("by-key", Layout::ByKey), ("by-ship-date", Layout::ByShipDate)],
        )?,
        texts: config.choice(
            "texts",
            usual.texts,
            &[("specified", Texts::AsSpecified), ("date-correlated", Texts::DateCorrelated)],
        )?,
        order: config.choice("order", usual.order, &ORDERS)?,
        seed: config.seed(),
        ..usual
    })
}

/// The generator's rows are the specification's at a scale, whatever the seed.
pub(super) fn data(options: &Options) -> String {
    let scale = options.tpch.scale().to_string().replace('.', "-");
    let layout = match options.layout {
        Layout::ByKey => "by-key",
        Layout::ByShipDate => "by-ship-date",
    };
    format!("tpch_{scale}_{layout}")
}

/// With the indexes of the schema 2 GB for each GB of text.
pub(super) fn bytes(options: &Options) -> u64 {
    (options.tpch.scale() * 2e9) as u64
}

/// `all`, or numbers and ranges of them: `6`, `1,6,14-16`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Numbers(Vec<usize>);

impl FromStr for Numbers {
    type Err = String;

    fn from_str(text: &str) -> Result<Numbers, String> {
        if text == "all" {
            return Ok(Numbers((1..=QUERIES).collect()));
        }
        let wrong = || format!("`{text}` does not name queries: write `6`, `1,6,14-16` or `all`");
        let number = |text: &str| {
            let number = text.trim().parse().ok();
            number.filter(|number| (1..=QUERIES).contains(number)).ok_or_else(wrong)
        };
        let mut numbers = Vec::new();
        for part in text.split(',') {
            match part.split_once('-') {
                Some((first, last)) => numbers.extend(number(first)?..=number(last)?),
                None => numbers.push(number(part)?),
            }
        }
        if numbers.is_empty() { Err(wrong()) } else { Ok(Numbers(numbers)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_named_one_by_one_in_ranges_or_all() {
        let of = |text: &str| text.parse().map(|Numbers(numbers)| numbers);
        assert_eq!(of("6"), Ok(vec![6]));
        assert_eq!(of("1, 6,14-16"), Ok(vec![1, 6, 14, 15, 16]));
        assert_eq!(of("all").unwrap().len(), 22);
        for wrong in ["", "0", "23", "1-30", "5-3", "a", "1,,2", "-1"] {
            assert!(of(wrong).unwrap_err().contains("does not name queries"), "{wrong}");
        }
    }
}
