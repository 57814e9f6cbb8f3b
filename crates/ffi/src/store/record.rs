//! Answers as records: eight words, the key, the value, each filled up to a multiple of eight
//! bytes. `include/entresol.h` draws them.

use entresol_host::{Answer, Extent, Outbox, PageEnd};
use entresol_tier::{Entry, Outcome};

use crate::text::Failure;

/// Set in the tokens of requests whose answer has no value.
pub(super) const WITHOUT_VALUE: u64 = 1 << 63;

/// Words before the bytes.
const WORDS: usize = 8;
const WORD_BYTES: usize = 8;
/// Words that are kept allocated where records are let go.
const WORDS_KEPT: usize = 1 << 20;

/// What a record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
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
    token: u64,
    kind: Kind,
    /// A version, the kind of a failure, or whether a scan goes on.
    number: u64,
    /// When the entry ends, ms; 0: never. Of the end of a page: records that were damaged.
    expires_ms: u64,
    /// The caller's byte, and the seconds of idleness from bit 32 on.
    extras: u64,
    key: &'a [u8],
    value: &'a [u8],
}

impl<'a> Record<'a> {
    /// One without key, value and number.
    fn new(token: u64, kind: Kind) -> Record<'a> {
        Record { token, kind, number: 0, expires_ms: 0, extras: 0, key: &[], value: &[] }
    }

    fn of_outcome(token: u64, outcome: &Outcome<'a>) -> Record<'a> {
        let versioned = |kind, version: u64| Record { number: version, ..Record::new(token, kind) };
        match outcome {
            Outcome::Found(entry) => {
                Record { kind: Kind::Found, key: &[], ..Record::of_entry(token, entry) }
            }
            // No limit is set, so none is larger.
            Outcome::Missing | Outcome::Larger { .. } => Record::new(token, Kind::Missing),
            Outcome::Stored { version } => versioned(Kind::Stored, version.0),
            Outcome::Journaled { sequence, .. } => versioned(Kind::Stored, sequence.0),
            Outcome::Refused { current } => {
                versioned(Kind::Refused, current.map_or(0, |version| version.0))
            }
            Outcome::Removed { version } => versioned(Kind::Removed, version.0),
            Outcome::Touched { version } => versioned(Kind::Touched, version.0),
        }
    }

    fn of_entry(token: u64, entry: &Entry<'a>) -> Record<'a> {
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
    fn append(&self, out: &mut Vec<u64>) {
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

/// Records one behind the other.
#[derive(Debug, Default)]
pub(crate) struct Records {
    words: Vec<u64>,
    count: usize,
}

impl Records {
    pub(super) fn words(&self) -> &[u64] {
        &self.words
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }
}

impl Outbox for Records {
    fn add(&mut self, token: u64, answer: &Answer<'_>) {
        with_record(token, answer, |record| record.append(&mut self.words));
        self.count += 1;
    }

    fn append(&mut self, others: &mut Records) {
        self.words.append(&mut others.words);
        self.count += std::mem::take(&mut others.count);
    }

    fn extent(&self) -> Extent {
        Extent { answers: self.count, bytes: self.words.len() * WORD_BYTES }
    }

    fn truncate(&mut self, extent: Extent) {
        self.words.truncate(extent.bytes / WORD_BYTES);
        self.words.shrink_to(WORDS_KEPT);
        self.count = extent.answers;
    }
}

/// Shows the record of an answer, without the value that is found where the caller asked for none.
pub(super) fn with_record<T>(
    token: u64,
    answer: &Answer<'_>,
    see: impl FnOnce(&Record<'_>) -> T,
) -> T {
    let shown = token & !WITHOUT_VALUE;
    match answer {
        Answer::Outcome(Outcome::Found(entry)) if shown != token => {
            let found = Outcome::Found(Entry { value: &[], ..*entry });
            see(&Record::of_outcome(shown, &found))
        }
        Answer::Outcome(outcome) => see(&Record::of_outcome(shown, outcome)),
        Answer::Entry(entry) => see(&Record::of_entry(shown, entry)),
        Answer::Done => see(&Record::new(shown, Kind::Done)),
        Answer::PageEnd(PageEnd { goes_on, damaged, damage }) => see(&Record {
            number: u64::from(*goes_on),
            expires_ms: *damaged,
            value: damage.unwrap_or_default().as_bytes(),
            ..Record::new(shown, Kind::Done)
        }),
        Answer::Failed(failure) => {
            let Failure { kind, sentence } = Failure::from_host(failure);
            let value = sentence.as_bytes();
            see(&Record { number: kind, value, ..Record::new(shown, Kind::Failed) })
        }
    }
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
