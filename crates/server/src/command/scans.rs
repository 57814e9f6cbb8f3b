//! Walks over the keys of a space: `KEYS`, `SCAN` and `RANDOMKEY`.
//!
//! A walk goes by hash, shard by shard. Each step yields to other clients, for it reads records
//! from flash, those of other spaces too.

use entresol_wire::resp::Reply;

use super::arguments::{ScanKind, cursor, is, scan_options};

use super::pattern;
use super::plan::{Plan, Steps};
use super::request::Request;
use super::types::type_name;
use crate::failure::Failure;

type Planned<'a> = Result<Plan<'a>, Failure>;

/// Entries looked at in one step of `KEYS`, and most that one `SCAN` answers with.
const SCAN_STEP: usize = 1000;
/// Entries looked at in the first step of `RANDOMKEY`.
const RANDOM_STEP: usize = 16;
/// Steps of one `SCAN` within a shard; those before the last find nothing or too little.
const SCAN_STEPS_MAX: usize = 10;

/// Where a walk is, as the engine has it: the hash in the high bits, of which the low 24 are 0, and
/// the shard in the low 16.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct WalkPlace(u64);

impl WalkPlace {
    const START: WalkPlace = WalkPlace(0);
    const SHARD_BITS: u32 = 16;
    const HASH_SHIFT: u32 = 24;
    /// Bits of the shard in a cursor: more than enough for the 64 that there may be.
    const SHOWN_SHARD_BITS: u32 = 13;

    /// The place of hash `hash` in shard `shard`.
    fn new(hash: u64, shard: u64) -> WalkPlace {
        WalkPlace(hash >> WalkPlace::HASH_SHIFT << WalkPlace::HASH_SHIFT | shard)
    }

    /// The place that a client's cursor names.
    fn from_cursor(cursor: u64) -> WalkPlace {
        let shard = cursor & ((1 << WalkPlace::SHOWN_SHARD_BITS) - 1);
        WalkPlace::new(cursor >> WalkPlace::SHOWN_SHARD_BITS << WalkPlace::HASH_SHIFT, shard)
    }

    /// The cursor for clients: 53 bits, for many keep it as a floating-point number.
    fn cursor(self) -> u64 {
        self.0 >> WalkPlace::HASH_SHIFT << WalkPlace::SHOWN_SHARD_BITS | self.shard()
    }

    fn shard(self) -> u64 {
        self.0 & ((1 << WalkPlace::SHARD_BITS) - 1)
    }

    /// Whether a step that came here was the last one.
    fn is_end(self) -> bool {
        self.0 == 0
    }
}

pub(crate) fn keys<'a>(_: &Request<'a>) -> Planned<'a> {
    Ok(Plan::Steps(|steps| Box::pin(all_keys(steps))))
}

async fn all_keys(steps: Steps) -> Result<Vec<u8>, Failure> {
    let request = steps.request();
    let wanted = request.arguments.at(1);
    let (mut place, mut found, mut count) = (WalkPlace::START, Vec::new(), 0);
    let limit = steps.engine.shared.output_bytes_max();
    loop {
        let mut reply = Reply::new(&mut found, steps.protocol);
        place =
            WalkPlace(steps.engine.scan(request.space, (place.0, SCAN_STEP), &mut |entry| {
                if pattern::matches(wanted, entry.key) {
                    reply.bulk(entry.key);
                    count += 1;
                }
            })?);
        if found.len() > limit {
            return Err(Failure::fixed("ERR too many keys for one reply; use SCAN"));
        }
        if place.is_end() {
            break;
        }
        steps.engine.operations.yield_now().await;
    }
    let mut out = Vec::with_capacity(found.len() + 16);
    Reply::new(&mut out, steps.protocol).array(count);
    out.extend_from_slice(&found);
    Ok(out)
}

pub(crate) fn scan<'a>(request: &Request<'a>) -> Planned<'a> {
    cursor(request.arguments.at(1))?;
    scan_options(request, 2, ScanKind::Keys)?;
    Ok(Plan::Steps(|steps| Box::pin(scan_keys(steps))))
}

async fn scan_keys(steps: Steps) -> Result<Vec<u8>, Failure> {
    let request = steps.request();
    let options = scan_options(&request, 2, ScanKind::Keys)?;
    let (mut found, mut count) = (Vec::new(), 0);
    let mut keys = Reply::new(&mut found, steps.protocol);
    let limit = options.count.min(SCAN_STEP);
    let mut place = WalkPlace::from_cursor(cursor(request.arguments.at(1))?);
    let (mut looked_at, mut step, mut steps_left) = (0, limit, SCAN_STEPS_MAX);
    loop {
        let before = place;
        place = WalkPlace(steps.engine.scan(request.space, (place.0, step), &mut |entry| {
            looked_at += 1;
            let of_type = options.type_name.is_none_or(|name| is(name, type_name(entry.label)));
            if of_type && options.pattern.is_none_or(|p| pattern::matches(p, entry.key)) {
                keys.bulk(entry.key);
                count += 1;
            }
        })?);
        // Steps into the next shard may have been short, and there are few shards.
        steps_left -= usize::from(place.shard() == before.shard());
        if place.is_end() || looked_at >= limit || steps_left == 0 {
            break;
        }
        // What lies here belongs to other spaces, or nothing does.
        step = if looked_at == 0 { (4 * step).min(SCAN_STEP) } else { limit - looked_at };
        steps.engine.operations.yield_now().await;
    }
    let mut out = Vec::with_capacity(found.len() + 64);
    let mut reply = Reply::new(&mut out, steps.protocol);
    reply.array(2);
    reply.bulk(place.cursor().to_string().as_bytes());
    reply.array(count);
    reply.raw(&found);
    Ok(out)
}

pub(crate) fn randomkey<'a>(_: &Request<'a>) -> Planned<'a> {
    Ok(Plan::Steps(|steps| {
        Box::pin(async move {
            let key = random_key(&steps).await?;
            let mut out = Vec::new();
            let mut reply = Reply::new(&mut out, steps.protocol);
            match key {
                Some(key) => reply.bulk(&key),
                None => reply.null(),
            }
            Ok(out)
        })
    }))
}

/// One of the first keys behind a random place, around the end if need be.
async fn random_key(steps: &Steps) -> Result<Option<Vec<u8>>, Failure> {
    let engine = &steps.engine;
    if engine.shared.tier.count(steps.space) == 0 {
        return Ok(None);
    }
    let shards = u64::from(engine.shared.tier.store().options().shards.max(1));
    let mut place = WalkPlace::new(engine.random(), engine.random() % shards);
    let (mut step, mut has_wrapped) = (RANDOM_STEP, false);
    loop {
        let (mut chosen, mut seen) = (None, 0);
        place = WalkPlace(engine.scan(steps.space, (place.0, step), &mut |entry| {
            seen += 1;
            if engine.random().is_multiple_of(seen) {
                chosen = Some(entry.key.to_vec());
            }
        })?);
        // Around once and on to the end again: what was there throughout has been met.
        if chosen.is_some() || (place.is_end() && has_wrapped) {
            return Ok(chosen);
        }
        has_wrapped |= place.is_end();
        step = SCAN_STEP;
        engine.operations.yield_now().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_name_every_place_and_fit_a_floating_point_number() {
        for shard in [0, 1, 63] {
            for hash in [0, 1 << 24, 0xABCD_EF01_2300_0000, u64::MAX >> 24 << 24] {
                let place = WalkPlace::new(hash, shard);
                assert!(place.cursor() < 1 << 53, "{place:?}");
                assert_eq!(WalkPlace::from_cursor(place.cursor()), place);
                assert_eq!(place.is_end(), place.cursor() == 0);
            }
        }
    }
}
