//! Outcomes as records: eight words, the key, the value, each filled up to a multiple of eight
//! bytes. `include/entresol.h` draws them.

use entresol_tier::{Entry, Error, Outcome};

use crate::text::Failure;

/// Words before the bytes.
pub(super) const WORDS: usize = 8;
const WORD_BYTES: usize = 8;

/// What a record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Get: the entry.
    Found = 1,
    /// There is no such entry.
    Missing = 2,
    /// Put: done.
    Stored = 3,
    /// The condition does not hold.
    Refused = 4,
    /// Remove: done.
    Removed = 5,
    /// Touch: done.
    Touched = 6,
    /// A job or a page of a scan is done.
    Done = 7,
    /// An entry of a scan.
    Entry = 8,
    /// There is no outcome; the value is a sentence.
    Failed = 9,
}

/// A record before it has a place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record<'a> {
    pub(super) token: u64,
    pub(super) kind: Kind,
    /// A version, the kind of a failure, or whether a scan goes on.
    pub(super) number: u64,
    /// When the entry ends, ms; 0: never. Of the end of a page: records that were damaged.
    pub(super) expires_ms: u64,
    /// The caller's byte, and the seconds of idleness from bit 32 on.
    pub(super) extras: u64,
    pub(super) key: &'a [u8],
    pub(super) value: &'a [u8],
}

impl<'a> Record<'a> {
    /// One without key, value and number.
    pub(super) fn new(token: u64, kind: Kind) -> Record<'a> {
        Record { token, kind, number: 0, expires_ms: 0, extras: 0, key: &[], value: &[] }
    }

    pub(super) fn of_outcome(token: u64, outcome: &Outcome<'a>) -> Record<'a> {
        let versioned = |kind, version: u64| Record { number: version, ..Record::new(token, kind) };
        match outcome {
            Outcome::Found(entry) => {
                Record { kind: Kind::Found, key: &[], ..Record::of_entry(token, entry) }
            }
            // No limit is set, so none is larger.
            Outcome::Missing | Outcome::Larger { .. } => Record::new(token, Kind::Missing),
            Outcome::Stored { version } => versioned(Kind::Stored, version.0),
            Outcome::Refused { current } => {
                versioned(Kind::Refused, current.map_or(0, |version| version.0))
            }
            Outcome::Removed { version } => versioned(Kind::Removed, version.0),
            Outcome::Touched { version } => versioned(Kind::Touched, version.0),
        }
    }

    pub(super) fn of_entry(token: u64, entry: &Entry<'a>) -> Record<'a> {
        let idle = entry.expiry.idle_seconds.map_or(0, |seconds| u64::from(seconds.get()));
        Record {
            token,
            kind: Kind::Entry,
            number: entry.version.0,
            expires_ms: entry.expiry.at.map_or(0, |at| at.0),
            extras: u64::from(entry.label) | idle << 32,
            key: entry.key,
            value: entry.value,
        }
    }

    /// Bytes of the whole record.
    pub(super) fn bytes(&self) -> usize {
        self.words() * WORD_BYTES
    }

    fn words(&self) -> usize {
        let body = |bytes: &[u8]| bytes.len().div_ceil(WORD_BYTES);
        WORDS + body(self.key) + body(self.value)
    }

    /// Puts the record to the end of `out`.
    pub(super) fn append(&self, out: &mut Vec<u64>) {
        let (length, words) = (out.len(), self.words());
        out.reserve(words);
        // SAFETY: so many words were reserved, and `write` fills all of them.
        unsafe {
            self.write(out.as_mut_ptr().add(length));
            out.set_len(length + words);
        }
    }

    /// Writes the record.
    ///
    /// # Safety
    /// `bytes()` bytes fit at `out`, which is aligned to 8.
    pub(super) unsafe fn write(&self, out: *mut u64) {
        let head = [
            self.bytes() as u64,
            self.token,
            self.kind as u64,
            self.number,
            self.expires_ms,
            self.extras,
            self.key.len() as u64,
            self.value.len() as u64,
        ];
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(head.as_ptr(), out, WORDS) };
        let mut at = WORDS;
        for bytes in [self.key, self.value] {
            let words = bytes.len().div_ceil(WORD_BYTES);
            if words > 0 {
                // SAFETY: within the record's words. The last word is filled first, so that the
                // bytes behind the end are zeros.
                unsafe {
                    out.add(at + words - 1).write(0);
                    std::ptr::copy_nonoverlapping(bytes.as_ptr(), out.add(at).cast(), bytes.len());
                }
            }
            at += words;
        }
    }
}

/// Calls `visit` with the record of an outcome, or with that of a failure.
pub(super) fn with_record(
    token: u64,
    outcome: &Result<Outcome<'_>, Error>,
    visit: &mut dyn FnMut(&Record<'_>),
) {
    match outcome {
        Ok(outcome) => visit(&Record::of_outcome(token, outcome)),
        Err(error) => with_failure(token, &Failure::from_store(error), visit),
    }
}

/// The same for a failure.
pub(super) fn with_failure(token: u64, failure: &Failure, visit: &mut dyn FnMut(&Record<'_>)) {
    let value = failure.sentence.as_bytes();
    visit(&Record { number: failure.kind, value, ..Record::new(token, Kind::Failed) });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_all_lengths_follow_each_other_and_are_filled_up_with_zeros() {
        let bytes: Vec<u8> = (1..40).collect();
        let mut out = vec![u64::MAX; 3];
        out.clear();
        for length in 0..bytes.len() {
            let record = Record {
                key: &bytes[..length / 2],
                value: &bytes[..length],
                ..Record::new(length as u64, Kind::Entry)
            };
            let before = out.len();
            record.append(&mut out);
            assert_eq!((out.len() - before) * WORD_BYTES, record.bytes());
            assert_eq!(out[before] as usize, record.bytes());
            assert_eq!(out[before + 1], length as u64);
            let text: Vec<u8> =
                out[before + WORDS..].iter().flat_map(|word| word.to_le().to_le_bytes()).collect();
            let value = (length / 2).next_multiple_of(WORD_BYTES);
            assert_eq!(&text[..length / 2], record.key);
            assert!(text[length / 2..value].iter().all(|byte| *byte == 0));
            assert_eq!(&text[value..value + length], record.value);
            assert!(text[value + length..].iter().all(|byte| *byte == 0));
        }
    }
}
