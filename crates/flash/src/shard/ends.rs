//! What ends, or is let go: entries whose time is over, evicted ones, dropped ones.

use super::Shard;
use crate::error::Result;
use crate::format::{FooterEntry, SizeCode};
use crate::index::Place;
use crate::notes::index_hash;
use crate::policy::Order;
use crate::record::Record;
use crate::segment::{Segment, SegmentState, Stream};
use crate::types::{Owner, Timestamp};

/// The record at a place, and when it ends, seconds; 0: never.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ending {
    pub place: Place,
    pub seconds: u32,
}

impl Shard {
    /// The record that a footer of `segment` tells of, and its end.
    pub(crate) fn ending_of(&self, segment: u32, line: &FooterEntry) -> Ending {
        Ending { place: self.place_of(segment, line), seconds: line.ends_seconds }
    }

    /// Whether a record that ends at `ends_seconds` (0: never) is over by now, or was by what a
    /// clock said before it went back: it may hide older ones although no slot points to it.
    pub(crate) fn is_over(&self, ends_seconds: u32, now: Timestamp) -> bool {
        is_past(ends_seconds, now) || (ends_seconds != 0 && ends_seconds <= self.ended_until)
    }

    /// Whether a record that ends later than at `ends_seconds` may have been dropped as ended: the
    /// clock has gone back since, and a recovery may find it.
    pub(crate) fn dropped_later(&self, ends_seconds: u32) -> bool {
        ends_seconds < self.ended_until
    }

    /// The same of the record at `place`. What the index has yet was not dropped: it lives as long
    /// as the clock lets it.
    pub(crate) fn is_over_at(
        &self,
        hash: u128,
        Ending { place, seconds }: Ending,
        now: Timestamp,
    ) -> bool {
        is_past(seconds, now)
            || (self.is_over(seconds, now) && !self.index.contains(index_hash(hash), place.address))
    }

    /// Drops an entry whose time is over, in full seconds: recovery knows no more of it. Its record
    /// stays as its own tombstone; one with pieces is buried instead (`Shard::bury`).
    pub(crate) fn expire(&mut self, hash: u128, Ending { place, seconds }: Ending, owner: Owner) {
        self.ended_until = self.ended_until.max(seconds);
        self.counters.expired += u64::from(self.end_entry(hash, place, owner));
    }

    /// Lets the entry at `place` go.
    pub(crate) fn evict(&mut self, hash: u128, place: Place, owner: Owner) {
        self.counters.evicted += u64::from(self.end_entry(hash, place, owner));
    }

    /// Lets the record at `place` go, if the index has it; whether it was an entry. What was
    /// dropped with its space or partition is none, and counted no more.
    fn end_entry(&mut self, hash: u128, place: Place, owner: Owner) -> bool {
        let dropped = self.is_below_floor(owner, place.address);
        if !self.index.remove(index_hash(hash), place.address) {
            return false;
        }
        self.forget(place);
        if !dropped {
            self.counts.add(owner, -1);
        }
        !dropped
    }

    /// Lets what was dropped at `place` go; it is counted no more.
    pub(crate) fn let_go(&mut self, hash: u128, place: Place) {
        if self.index.remove(index_hash(hash), place.address) {
            self.forget(place);
        }
    }

    /// Gives up a location that no slot holds any more, pieces of a large value included.
    pub(crate) fn forget(&mut self, place: Place) {
        self.log.change_live(place.address, -(place.size.bytes() as i64));
        if self.large.is_empty() {
            return;
        }
        if let Some(pieces) = self.large.remove(place.address) {
            for (address, bytes) in pieces.places {
                let size = SizeCode::covering(u64::from(bytes));
                self.log.change_live(address, -(size.bytes() as i64));
            }
        }
    }

    /// A segment that is to be swept before a put is refused for want of room: something in it has
    /// ended by `seconds`, or may have been dropped. What was counts as live until it is let go.
    pub(crate) fn first_gone(&mut self, seconds: u32) -> Option<u32> {
        let newest = self.floors.iter().map(|floor| floor.below).max().unwrap_or(0);
        if newest > self.swept_below {
            self.swept_below = newest;
            self.none_ended_at = u32::MAX;
            let used = [SegmentState::Sealed, SegmentState::Open, SegmentState::Damaged];
            self.log.look_through(|s| used.contains(&s.state) && s.sequence < newest);
        }
        self.first_expired(seconds)
    }

    /// Seals an open segment of a store in which something has ended by `seconds`, or may have been
    /// dropped: little is appended to it, and only sealed ones are swept. Whether there was one.
    pub(crate) fn seals_gone(&mut self, seconds: u32) -> Result<bool> {
        let gone = Stream::ALL.into_iter().find(|stream| self.log.first_end(*stream) <= seconds);
        let Some(stream) = gone.filter(|_| self.limits.policy.order() == Order::ByGain) else {
            return Ok(false);
        };
        self.log.seal(stream)?;
        self.none_ended_at = u32::MAX;
        Ok(true)
    }

    /// A segment in which something ended by `seconds`; looked for once a second if there is none.
    pub(crate) fn first_expired(&mut self, seconds: u32) -> Option<u32> {
        if seconds == self.none_ended_at {
            return None;
        }
        let stands = |s: &Segment| matches!(s.state, SegmentState::Sealed | SegmentState::Damaged);
        let ended = |s: &Segment| stands(s) && s.next_end <= seconds;
        let found = self.log.segments().iter().position(ended);
        if let Some(segment) = found {
            self.log.try_again(segment as u32);
        }
        if found.is_none() {
            self.none_ended_at = seconds;
        }
        found.map(|segment| segment as u32)
    }

    /// Drops what has ended in the open segments. Large values are left for the sweep of the sealed
    /// segment: their tombstones take room.
    pub(crate) fn drop_ended_in_open(&mut self, now: Timestamp) {
        let seconds = (now.0 / 1000) as u32;
        for stream in Stream::ALL {
            if self.open_ends_at[stream as usize] == seconds || self.log.first_end(stream) > seconds
            {
                continue;
            }
            // Looked at once a second: all that has ended by then goes at once.
            self.open_ends_at[stream as usize] = seconds;
            let Some(open) = self.log.being_filled(stream) else { continue };
            let segment = open.segment;
            let over = |line: &FooterEntry| line.ends_seconds != 0 && line.ends_seconds <= seconds;
            let ended: Vec<_> = open.lines(0).filter(over).collect();
            for line in ended {
                let ending = self.ending_of(segment, &line);
                if !self.large.is_manifest(ending.place.address)
                    && self.is_over_at(line.hash, ending, now)
                {
                    self.expire(line.hash, ending, line.owner());
                }
            }
        }
    }

    /// Whether a record of a kind that the index holds has ended.
    pub(crate) fn has_ended(record: &Record<'_>, now: Timestamp) -> bool {
        let end = record.header.ends_ms();
        end != 0 && end <= now.0
    }
}

/// Whether what ends at `ends_seconds` (0: never) is over by what the clock says.
fn is_past(ends_seconds: u32, now: Timestamp) -> bool {
    ends_seconds != 0 && u64::from(ends_seconds) * 1000 <= now.0
}

/// The seconds that are over `now`, as ends are counted.
pub(crate) fn seconds_of(now: Timestamp) -> u32 {
    (now.0 / 1000).min(u64::from(u32::MAX - 1)) as u32
}
