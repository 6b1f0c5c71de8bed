//! `order-entry`: terminals of a wholesaler, and the unit they are counted in.

use workahead_study::engine::EngineError;
use workahead_workloads::order_entry::{
    Isolation, Kind, Mix, Options, Pauses, Population, Scaling, nopm,
};

use super::number::number;
use crate::configuration::CellConfiguration;
use crate::load::LoadResult;

pub(super) fn read(config: &CellConfiguration<'_>) -> Result<Options, EngineError> {
    let usual = Options::of(number(config, "warehouses", 1)?);
    let population = Population {
        items: number(config, "items", usual.population.items)?,
        customers: number(config, "customers", usual.population.customers)?,
        ..usual.population
    };
    let isolations = [
        ("read-committed", Isolation::ReadCommitted),
        ("repeatable-read", Isolation::RepeatableRead),
        ("serializable", Isolation::Serializable),
    ];
    Ok(Options {
        population,
        mix: config.choice("mix", usual.mix, &[("weights", Mix::Weights), ("deck", Mix::Deck)])?,
        pauses: config.choice(
            "pauses",
            usual.pauses,
            &[("none", Pauses::None), ("as-people", Pauses::AsPeople)],
        )?,
        isolation: config.choice("isolation", usual.isolation, &isolations)?,
        seed: config.seed(),
        ..usual
    })
}

pub(super) fn data(options: &Options) -> String {
    let Population { warehouses, items, customers } = options.population;
    format!("orders_{warehouses}_{items}_{customers}_{}", options.seed)
}

/// Bytes of a warehouse with its indexes, as specified and as PostgreSQL keeps it.
const WAREHOUSE_BYTES: u64 = 110 << 20;

pub(super) fn bytes(options: &Options) -> u64 {
    let Population { warehouses, items, customers } = options.population;
    let full = Population::of(warehouses);
    let share = |part: u32, whole: u32| f64::from(part) / f64::from(whole);
    // A third of it is stock, which goes with items; the rest goes with customers.
    let of_full = share(items, full.items) / 3.0 + share(customers, full.customers) * 2.0 / 3.0;
    (of_full * (WAREHOUSE_BYTES * u64::from(warehouses)) as f64) as u64
}

/// New-Orders a minute, and their share of what people at the terminals could do.
pub(super) fn measures(options: &Options, driven: &LoadResult) -> Vec<(&'static str, f64)> {
    let Some(orders) = driven.kinds.get(Kind::NewOrder.position()) else { return Vec::new() };
    let rate_nopm = nopm(orders.done, driven.wall_s);
    let warehouses = options.population.warehouses;
    let scaling = Scaling::of(rate_nopm, warehouses, options.mix);
    let others_share = |count: u64, of: u64| count as f64 / of.max(1) as f64;
    vec![
        ("nopm", rate_nopm),
        ("bound_nopm", scaling.bound_nopm),
        ("of_bound_share", scaling.factor),
        ("warehouses", f64::from(warehouses)),
        ("rolled_back_share", others_share(orders.rolled_back, orders.done)),
        ("new_order_share", others_share(orders.done, driven.done())),
    ]
}
