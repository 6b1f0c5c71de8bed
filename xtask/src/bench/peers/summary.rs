//! The table: every engine's speed, our ratio to the best peer, the target beside it.

use serde_json::{Map, Value, json};

use super::options::Options;
use super::rounds::{CaseTimes, Clock, median};

/// A row for each case, number of threads and form.
pub(crate) fn rows(measured: &[CaseTimes]) -> Vec<Value> {
    measured.iter().map(row).collect()
}

fn row(measured: &CaseTimes) -> Value {
    let mut row = place(measured);
    for times in &measured.engines {
        row.insert(times.name.into(), times.mrows_per_s(&measured.case, Clock::Wall).into());
    }
    if let Some((best, ratio)) = measured.best(Clock::Wall) {
        row.insert("best peer".into(), best.name.into());
        row.insert("ratio".into(), ratio.into());
    }
    if let Some((best, ratio)) = measured.best(Clock::Cpu) {
        row.insert("ratio by CPU time".into(), format!("{ratio:.2} ({})", best.name).into());
    }
    if let Some(target) = measured.case.target {
        row.insert("target".into(), target.into());
    }
    Value::Object(row)
}

/// The same for the screen, as soon as it is known.
pub(crate) fn line(measured: &CaseTimes) -> String {
    let mut line = format!("  {:<8}", measured.form);
    for times in &measured.engines {
        let wall = times.mrows_per_s(&measured.case, Clock::Wall);
        let cpu = times.mrows_per_s(&measured.case, Clock::Cpu);
        line += &format!("  {} {wall:.1} ({cpu:.1})", times.name);
    }
    if let (Some((_, wall)), Some((_, cpu))) =
        (measured.best(Clock::Wall), measured.best(Clock::Cpu))
    {
        line += &format!("  ratio {wall:.2} ({cpu:.2})");
    }
    if let Some(target) = measured.case.target {
        line += &format!(", target {target}");
    }
    line + "\n"
}

/// Notes for the reader.
pub(crate) fn notes(options: &Options, versions: &[String], measured: &[CaseTimes]) -> Vec<String> {
    let keys = if options.dense {
        "Keys are 0, 1, 2… in no order: some engines have tables without hashing for those."
    } else {
        "Keys are scattered over their type's whole range (text: 48 bits as hexadecimal digits)."
    };
    let mut notes = vec![
        format!("Engines: {}.", versions.join(", ")),
        "Engines' columns: millions of probe rows a second of the whole join (build and probe), \
         median round, wall time. `sums` asks for count(*), sum(bv), sum(pv); `columns` for the \
         keys, bv and pv as Arrow batches, which are counted and dropped. 8-byte payloads; both \
         sides are in memory before the time starts, in the engine's own form where it has one."
            .to_owned(),
        "`ratio`: how many times as fast as the best peer, the median over the rounds of the \
         ratio within one round; `ratio by CPU time` the same with the CPU time of all the \
         engine's threads. Engines take turns, there and back. A target holds for the smaller of \
         the ratios of the two forms."
            .to_owned(),
        keys.to_owned(),
        "Count and sums of all columns were checked against the answer known from the draws."
            .to_owned(),
        format!(
            "{} rounds. How idle the machine was: ours had {:.0} % of the CPU time that its \
             threads could have had (parts of one thread alone count as not had).",
            options.rounds,
            100.0 * share(measured)
        ),
    ];
    if options.python {
        notes.push(
            "For `columns`, `python` reads the batches of `wa.join` one by one; in `python_stream` \
             they come through Arrow's C stream, and each becomes a `pyarrow.RecordBatch`, as for \
             the `sums` of both. All engines have read both sides into memory of their own."
                .to_owned(),
        );
    }
    notes
}

/// CPU time over wall time times threads of ours, the median over everything measured.
fn share(measured: &[CaseTimes]) -> f64 {
    let shares = measured.iter().map(|measured| {
        let ours = measured.ours();
        let (wall, cpu) = (ours.seconds(Clock::Wall), ours.seconds(Clock::Cpu));
        let shares = wall.zip(cpu).map(|(wall, cpu)| cpu / wall / measured.threads as f64);
        median(shares.collect())
    });
    median(shares.collect())
}

/// `{ "case": …, "threads": …, "form": … }`, to be filled.
pub(crate) fn place(measured: &CaseTimes) -> Map<String, Value> {
    let place = json!({
        "case": measured.case.name, "threads": measured.threads, "form": measured.form,
    });
    place.as_object().cloned().unwrap_or_default()
}
