//! A group of senders and receivers, as hackbench (Russell 2004; Molnár) has them: every sender
//! writes to the pipe of every receiver. How many messages arrive?

use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::thread;

use super::{Clock, LoadResult, Phase};

const BYTES: usize = 100;
/// Messages to each receiver between two looks at the clock.
const BATCH: usize = 16;

/// Runs as many senders as receivers.
pub(super) fn run(pairs: usize, clock: &Clock) -> std::io::Result<LoadResult> {
    let pipes = (0..pairs).map(|_| pipe()).collect::<std::io::Result<Vec<_>>>()?;
    let (readers, writers): (Vec<PipeReader>, Vec<PipeWriter>) = pipes.into_iter().unzip();
    let mut senders = Vec::new();
    for _ in 0..pairs {
        let each = writers.iter().map(PipeWriter::try_clone);
        senders.push(each.collect::<std::io::Result<Vec<_>>>()?);
    }
    // Receivers see the end when the last sender has gone.
    drop(writers);
    thread::scope(|scope| {
        for to in senders {
            thread::Builder::new().spawn_scoped(scope, move || send(to, clock))?;
        }
        let receivers = readers
            .into_iter()
            .map(|from| thread::Builder::new().spawn_scoped(scope, move || receive(from, clock)))
            .collect::<std::io::Result<Vec<_>>>()?;
        let mut done = LoadResult::default();
        receivers.into_iter().flat_map(|one| one.join()).for_each(|one| done.add(one));
        Ok(done)
    })
}

fn send(mut to: Vec<PipeWriter>, clock: &Clock) {
    while clock.now() != Phase::Over {
        for _ in 0..BATCH {
            for pipe in &mut to {
                if pipe.write_all(&[7; BYTES]).is_err() {
                    return;
                }
            }
        }
    }
}

fn receive(mut from: PipeReader, clock: &Clock) -> LoadResult {
    let mut done = LoadResult::default();
    let mut message = [0; BYTES];
    while from.read_exact(&mut message).is_ok() {
        if clock.now() == Phase::Counted {
            done.count(1, None);
        }
    }
    done
}
