//! How far a sequential reader is read ahead.
//!
//! The reach doubles with the run, up to the volume's limit, so that a short run reads few blocks
//! in vain. It is topped up when half of it is used, so that the reader does not wait and requests
//! to the backing stay large.

use std::ops::Range;

use crate::policy::sequential::{Direction, Stream};

/// Ranges begin and end at multiples of this, or at the end of the volume.
const UNIT_BYTES: u64 = 4096;

/// What to read ahead, if anything, of a stream whose last request ended at `end`; the stream
/// remembers it. `most_bytes` is the farthest reach, 0 for none; nothing reaches past the end of
/// the volume at `volume_bytes`.
pub fn on_read(
    stream: &mut Stream,
    end: u64,
    most_bytes: u64,
    volume_bytes: u64,
) -> Option<Range<u64>> {
    if stream.direction != Direction::Read || !stream.is_established() {
        return None;
    }
    // Requests as large as what would be read ahead cost the backing as few as there could be.
    if stream.run_bytes / stream.requests >= most_bytes {
        return None;
    }
    let reach = stream.run_bytes.min(most_bytes);
    let from = stream.ahead_end.max(end);
    if from - end > reach / 2 {
        return None;
    }
    // What is read by the unit already holds the rest of the unit that the request ended in.
    let from = from.next_multiple_of(UNIT_BYTES);
    let to = end.saturating_add(reach) / UNIT_BYTES * UNIT_BYTES;
    let to = if end.saturating_add(reach) >= volume_bytes { volume_bytes } else { to };
    if from >= to {
        return None;
    }
    stream.ahead_end = to;
    Some(from..to)
}
