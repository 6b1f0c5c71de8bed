//! The protocol: one request per line in, one reply per line out, both JSON.

use std::io::{BufRead, Write};
use std::path::Path;
use std::time::Instant;

use serde_json::{Map, Value, json};
use workahead_machine::clock::process_cpu_s;

use crate::data::Sides;
use crate::join::{self, Form};

/// SelectionVector requests until the input ends.
pub(crate) fn serve(threads: usize) {
    let mut sides = None;
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("a request");
        let request: Value = serde_json::from_str(&line).expect("a request in JSON");
        let reply = match request["do"].as_str() {
            Some("load") => load(&request, &mut sides),
            Some("run") => run(&request, sides.as_ref().expect("data"), threads),
            _ => panic!("no request is {request}"),
        };
        println!("{reply}");
        std::io::stdout().flush().expect("somebody who reads the replies");
    }
}

fn load(request: &Value, sides: &mut Option<Sides>) -> Value {
    let folder = request["data"].as_str().expect("a folder");
    // The old inputs are freed first: two need not fit.
    *sides = None;
    *sides = Some(Sides::read(Path::new(folder)));
    json!({ "version": env!("CARGO_PKG_VERSION") })
}

fn run(request: &Value, sides: &Sides, threads: usize) -> Value {
    let check = request["check"].as_bool().unwrap_or(false);
    let form = match request["form"].as_str() {
        Some("sums") => Form::Sums,
        Some("columns") if check => Form::Checked,
        Some("columns") => Form::Columns,
        _ => panic!("no form is {request}"),
    };
    let (wall, cpu) = (Instant::now(), process_cpu_s());
    let outcome = join::run(sides, threads, form);
    let (wall_s, cpu_s) = (wall.elapsed().as_secs_f64(), process_cpu_s() - cpu);
    let sums: Map<String, Value> =
        outcome.sums.into_iter().map(|(name, sum)| (name, sum.into())).collect();
    let phases: Map<String, Value> = outcome
        .phases
        .into_iter()
        .map(|(name, time)| (name.to_owned(), time.as_secs_f64().into()))
        .collect();
    json!({
        "wall_s": wall_s, "cpu_s": cpu_s, "count": outcome.count, "sums": sums,
        "phases": phases, "choice": outcome.choice,
    })
}
