//! Laws 1 and 2: what a step touches was requested, and it emits one hit at most.

use std::collections::HashMap;

use super::Law;
use super::interleave::{Fault, Watch};
use crate::place::{Place, References};
use crate::traced::{Access, Kind, Traced};
use crate::walk::{Row, Sink, Walk};

/// The places that a row may touch.
#[derive(Default)]
struct PermittedPlaces {
    /// Requests for by the call before.
    requested: Vec<Place>,
    /// Its own input: announced as such, or read as hot when it started.
    own: Vec<(usize, usize)>,
}

impl PermittedPlaces {
    fn covers(&self, access: &Access) -> bool {
        let (first, end) = (access.address, access.address + access.bytes as usize);
        let within = |&(from, to): &(usize, usize)| from <= first && end <= to;
        let own = access.kind != Kind::Write && self.own.iter().any(within);
        own || self.requested_up_to(first) >= end
    }

    /// How far the places that were requested reach from `first` on: a value of several lines may
    /// be requested line by line.
    fn requested_up_to(&self, first: usize) -> usize {
        let requested = self.requested.iter().map(|place| (place.address().addr(), place.bytes()));
        let mut places: Vec<(usize, usize)> = requested.collect();
        places.sort_unstable();
        places.iter().fold(first, |reached, &(from, bytes)| match from <= reached {
            true => reached.max(from + bytes),
            false => reached,
        })
    }
}

/// A watch over the places and the hits of every row.
pub(super) struct Requests<H> {
    rows: HashMap<Row, PermittedPlaces>,
    hits: Vec<(Row, H)>,
}

impl<H> Default for Requests<H> {
    fn default() -> Self {
        Self { rows: HashMap::new(), hits: Vec::new() }
    }
}

impl<H> Requests<H> {
    /// All hits, by row; those of one row in the order they came.
    pub(super) fn hits(mut self) -> Vec<(Row, H)> {
        self.hits.sort_by_key(|hit| hit.0);
        self.hits
    }
}

/// A sink that knows whose step it is.
struct OfRow<'h, H> {
    hits: &'h mut Vec<(Row, H)>,
    foreign: Option<Row>,
    row: Row,
}

impl<H> Sink<H> for OfRow<'_, H> {
    fn emit(&mut self, row: Row, hit: H) {
        if row != self.row {
            self.foreign = Some(row);
        }
        self.hits.push((row, hit));
    }
}

fn accesses(traced: Traced) -> Vec<Access> {
    traced.finish().accesses().iter().filter(|one| is_touch(one.kind)).copied().collect()
}

fn is_touch(kind: Kind) -> bool {
    !matches!(kind, Kind::Fetch(_))
}

fn not_granted(row: Row, access: &Access, when: &str) -> Fault {
    let Access { bytes, address, kind, .. } = access;
    let does = if *kind == Kind::Write { "writes" } else { "reads" };
    let what = format!("row {row} {does} {bytes} bytes at {address:#x} {when}");
    Fault { law: Law::OnlyTheRequested, what }
}

fn places<A: References>(row: Row, asks: &A) -> Result<Vec<Place>, Fault> {
    let mut places = Vec::new();
    asks.each(|place| places.push(place));
    let (count, least, most) = (places.len(), A::LEAST, A::MOST);
    if count != asks.count() || !(least..=most).contains(&count) {
        let what =
            format!("row {row} asks for {count} places where {least} to {most} are declared");
        return Err(Fault { law: Law::OnlyTheRequested, what });
    }
    Ok(places)
}

impl<W: Walk> Watch<W> for Requests<W::Hit> {
    fn start(&mut self, walk: &mut W, row: Row) -> Result<W::Cursor, Fault> {
        let input = walk.input(row).map(|place| (place.address().addr(), place.bytes()));
        let mut granted = PermittedPlaces { requested: Vec::new(), own: Vec::new() };
        granted.own.extend(input.map(|(first, bytes)| (first, first + bytes)));
        let mut row_itself: Option<Access> = None;
        let mut traced = Traced::thread(0);
        let (cursor, asks) = walk.start(row, &mut traced);
        for access in accesses(traced) {
            if access.kind != Kind::HotRead {
                if granted.covers(&access) {
                    continue;
                }
                if access.kind == Kind::Write || input.is_some() || row_itself.is_some() {
                    return Err(not_granted(row, &access, "when it starts, beyond its input"));
                }
                row_itself = Some(access);
            }
            granted.own.push((access.address, access.address + access.bytes as usize));
        }
        granted.requested = places(row, &asks)?;
        if let Some(read) =
            row_itself.filter(|read| granted.requested_up_to(read.address) > read.address)
        {
            return Err(not_granted(row, &read, "when it starts, beyond its input"));
        }
        self.rows.insert(row, granted);
        Ok(cursor)
    }

    fn step(&mut self, walk: &mut W, row: Row, cursor: &mut W::Cursor) -> Result<bool, Fault> {
        let before = self.hits.len();
        let mut sink = OfRow { hits: &mut self.hits, foreign: None, row };
        let mut traced = Traced::thread(0);
        let asks = walk.step(cursor, &mut traced, &mut sink);
        if let Some(other) = sink.foreign {
            let what = format!("a step of row {row} emits a hit of row {other}");
            return Err(Fault { law: Law::OneHitAStep, what });
        }
        let emitted = self.hits.len() - before;
        if emitted > 1 {
            let what = format!("a step of row {row} emits {emitted} hits");
            return Err(Fault { law: Law::OneHitAStep, what });
        }
        let granted = self.rows.get_mut(&row).expect("a row is started before it is stepped");
        for access in accesses(traced) {
            if access.kind != Kind::HotRead && !granted.covers(&access) {
                return Err(not_granted(row, &access, "that it did not ask for"));
            }
        }
        match asks {
            Some(asks) => granted.requested = places(row, &asks)?,
            None => {
                self.rows.remove(&row);
                return Ok(false);
            }
        }
        Ok(true)
    }
}
