//! Footers as recovery keeps them: their lines as words, or where they are to be found.

use crate::format::{
    FooterEntry, FooterLine, LINE_WORDS, SegmentHeader, TRAILER_BYTES, Trailer, copy_words,
};

/// What a segment was found to hold.
#[derive(Debug)]
pub(super) struct Found {
    pub segment: u32,
    pub header: SegmentHeader,
    pub age: u64,
    pub count: u32,
    /// Where its last record ends.
    pub end: u32,
    pub lines: Lines,
}

/// Where a segment's footer is.
#[derive(Debug)]
pub(super) enum Lines {
    /// Taken in already, and not visited again.
    Taken,
    /// Among the words kept, from this line on.
    Kept(usize),
    Own(Vec<FooterEntry>),
    /// On the device: there are too many to keep.
    Unread,
    /// On the device, and it does not verify.
    Damaged,
}

/// Takes the footer that ends where the trailer at the end of both parts together starts apart into
/// `words`, which it fills. What it says if it verifies is that it is kept from line 0 on.
pub(super) fn copy_lines(
    trailer: &Trailer,
    segment_bytes: u32,
    [rest, tail]: [&[u8]; 2],
    words: &mut [u64],
) -> Lines {
    let records_end = u64::from(segment_bytes).saturating_sub(trailer.region_bytes() as u64);
    let bytes = words.len() * 8;
    let tail = &tail[..tail.len() - TRAILER_BYTES];
    let from_tail = bytes.min(tail.len());
    let rest = rest.len().checked_sub(bytes - from_tail).and_then(|at| rest.get(at..));
    let Some(rest) = rest else { return Lines::Unread };
    let tail = &tail[tail.len() - from_tail..];
    if crc32c::crc32c_append(crc32c::crc32c(rest), tail) != trailer.footer_crc {
        return Lines::Damaged;
    }
    copy_words(rest, words);
    copy_words(tail, &mut words[rest.len() / 8..]);
    let lines = words.as_chunks::<LINE_WORDS>().0;
    let sound = lines.iter().all(|line| FooterLine(*line).is_sound(records_end));
    if sound { Lines::Kept(0) } else { Lines::Damaged }
}
