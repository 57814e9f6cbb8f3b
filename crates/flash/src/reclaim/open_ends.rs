//! Dropping what has ended in segments that are open: little may be appended for long, and only
//! sealed ones are swept.

use crate::reclaim::place_of;
use crate::segment::Stream;
use crate::shard::Shard;
use crate::types::Timestamp;

impl Shard {
    /// Drops what has ended in the open segments. Large values are left for the sweep of the sealed
    /// segment: their tombstones take room.
    pub(super) fn drop_ended_in_open(&mut self, now: Timestamp) {
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
            let over = |line: &crate::format::FooterEntry| {
                line.ends_seconds != 0 && line.ends_seconds <= seconds
            };
            let ended: Vec<_> = open.lines(0).filter(over).collect();
            for line in ended {
                let place = place_of(self, segment, &line);
                if !self.large.is_manifest(place.address)
                    && self.is_over_at(line.hash, (place, line.ends_seconds), now)
                {
                    let owner = (line.space, line.partition);
                    self.expire(line.hash, (place, line.ends_seconds), owner);
                }
            }
        }
    }
}
