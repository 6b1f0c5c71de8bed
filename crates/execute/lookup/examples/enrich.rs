//! A stream enricher: events get the attributes of their device, and the price that was valid when
//! they happened, batch by batch.
//!
//! `cargo run --release -p workahead-lookup --example enrich`

use workahead_lookup::{HashIndex, OrderedIndex};

struct Event {
    device: u64,
    second: u64,
    kwh: f64,
}

struct Device {
    region: u32,
}

fn main() {
    let devices: HashIndex<u64, Device> =
        (0..100_000).map(|id| (id * 7919, Device { region: (id % 16) as u32 })).collect();
    // A price is valid from its second on, until the next.
    let prices: OrderedIndex<u64, f64> =
        (0..24).map(|hour| (hour * 3600, 0.2 + f64::from(hour as u32) / 100.0)).collect();
    let mut cost = [0.0; 16];
    let mut unknown = 0;
    for batch in 0..50_u64 {
        let event = |at: u64| Event {
            device: (batch * 2200 + at) * 7919 % (110_000 * 7919),
            second: (batch * 997 + at * 31) % 86_400,
            kwh: 0.5,
        };
        let events: Vec<Event> = (0..2500).map(event).collect();
        let ids: Vec<u64> = events.iter().map(|event| event.device).collect();
        let mut found = vec![None; ids.len()];
        devices.get_many(&ids, &mut found);
        for (event, device) in events.iter().zip(found) {
            let Some(device) = device else {
                unknown += 1;
                continue;
            };
            let hour = event.second / 3600 * 3600;
            let (_, price) =
                prices.range(hour..=event.second).last().expect("midnight has a price");
            cost[device.region as usize] += event.kwh * price;
        }
    }
    println!("cost of region 0: {:.2}, events of unknown devices: {unknown}", cost[0]);
}
