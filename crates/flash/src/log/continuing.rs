//! Appends that continue the last record of the journal: right behind it in the write buffer, with
//! eight bytes of framing.
//!
//! Invariants:
//! 1. Nothing continues what the device has already, or is being handed, to its last byte: bytes
//!    that may be acknowledged as durable are not written again.
//! 2. What a round has covered is whole: a record that is known to be durable is continued no more.
//! 3. Each continuation has a sequence and a checksum of its own. So a torn one takes nothing with
//!    it that stands before it, as where a process is killed while it appends.

use entresol_planted::planted;

use super::{Attempt, Log};
use crate::format::{CONTINUATION_BYTES, Continuation, RECORD_ALIGNMENT};
use crate::segment::Stream;

/// A record is continued up to so many bytes: what is damaged takes all of it that follows along,
/// and whoever trims by records keeps one that long.
const CONTINUED_BYTES_MAX: usize = 4 << 10;

/// The end of the journal's last record, which may be continued while its segment is open.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tail {
    pub segment: u32,
    /// Where in the segment the record begins, and where it ends with what continues it.
    pub start: usize,
    pub end: usize,
    /// The record's sequence, and that of the last that continues it.
    pub head: u64,
    pub last: u64,
    /// The checksum that goes on.
    pub crc: u32,
}

/// What continues a record of the journal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Continued<'a> {
    /// Its own sequence.
    pub sequence: u64,
    /// Its bytes as they are stored.
    pub stored: &'a [u8],
}

impl Log {
    /// The sequence of the record that `stored_bytes` of the sequence `sequence` would continue if
    /// they were appended after `after`; `None`: they can continue none.
    pub(crate) fn continuable(
        &self,
        after: u64,
        sequence: u64,
        stored_bytes: usize,
    ) -> Option<u64> {
        let tail = self.journal.tail.filter(|tail| tail.last == after)?;
        let open = self.streams[Stream::Journal as usize].as_ref()?;
        let end = tail.end + CONTINUATION_BYTES + stored_bytes;
        let more = end.next_multiple_of(RECORD_ALIGNMENT).saturating_sub(open.used as usize);
        let is_held = open.used as usize == tail.end.next_multiple_of(RECORD_ALIGNMENT)
            && (open.submitted as usize) < tail.end;
        let is_held = is_held || planted!("journal-continued-on-flash");
        let fits = end - tail.start <= CONTINUED_BYTES_MAX
            && sequence - tail.last <= u64::from(u16::MAX)
            && open.fits(more, self.shape.segment_bytes);
        let is_open = open.segment == tail.segment;
        (stored_bytes > 0 && is_open && is_held && fits).then_some(tail.head)
    }

    /// Appends what continues the last record, which [`Log::continuable`] has allowed.
    pub(crate) fn continue_journal(&mut self, continued: Continued<'_>) -> Attempt<()> {
        let Continued { sequence, stored } = continued;
        let tail = self.journal.tail.as_mut().expect("a record that can be continued");
        let open = self.streams[Stream::Journal as usize].as_mut();
        let open = open.expect("the record's segment is open");
        let header = Continuation::of(tail.crc, (sequence - tail.last) as u16, stored);
        let body = tail.end + CONTINUATION_BYTES;
        let end = body + stored.len();
        let bytes = self.buffers[open.buffer as usize].memory.bytes_mut();
        bytes[body..end].copy_from_slice(stored);
        bytes[tail.end..body].copy_from_slice(&header.encode());
        bytes[end..end.next_multiple_of(RECORD_ALIGNMENT)].fill(0);
        (tail.end, tail.last, tail.crc) = (end, sequence, header.crc);
        let more = (end.next_multiple_of(RECORD_ALIGNMENT) as u32).saturating_sub(open.used);
        let stamp = self.appended.next();
        open.push_unlisted(more, sequence, stamp, self.shape.sync_unit);
        self.note_journaled(stamp, sequence, more);
        Ok(())
    }
}
