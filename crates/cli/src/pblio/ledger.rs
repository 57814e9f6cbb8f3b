//! Blocks that describe themselves, and the contents that a read of each may find.
//!
//! A written block names its unit, its place, the run and the write, and these determine its other
//! bytes. A read must find a write that was issued, and that no write completed before the read
//! began has replaced. Writes of one block that overlapped in time may have landed in any order;
//! any of them is right until a later one that overlapped none of them.
//!
//! Older contents are not judged: blocks of earlier runs and of other programs count separately.

use std::collections::HashMap;
use std::fmt;

use entresol_workload::oltp::{Asu, BLOCK_BYTES, Request};
use entresol_workload::{Values, VerifyError};

/// The first bytes of every block that a run wrote.
pub(super) const MAGIC: &[u8; 3] = b"OLP";

/// What this run wrote, and what its reads found.
#[derive(Debug)]
pub(super) struct Ledger {
    values: Values,
    run: u64,
    sequence: u64,
    writes: HashMap<u64, Writes>,
    findings: Findings,
}

/// The writes of one block.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Writes {
    in_flight: u32,
    /// The first of those that overlapped in time with what is in flight.
    group_first: u64,
    /// The oldest write that a read may find.
    floor: Option<u64>,
    /// The newest.
    issued: u64,
}

/// What reads found, in blocks.
#[derive(Debug, Clone, Default)]
pub(super) struct Findings {
    /// Right: of this run, or of an earlier one where this one has not written.
    pub(super) sound: u64,
    /// Not written by any run.
    pub(super) unknown: u64,
    /// Changed while they were read.
    pub(super) unjudged: u64,
    /// Wrong.
    pub(super) wrong: u64,
    /// The first wrong ones, a sentence each.
    pub(super) sentences: Vec<String>,
}

const SEQUENCE_BITS: u32 = 40;
const SENTENCES_MAX: usize = 10;
const SEED: u64 = 0x6f6c_7470;

impl Ledger {
    /// An empty ledger; the low 24 bits of `run` tell this run from others.
    pub(super) fn new(run: u64) -> Ledger {
        Ledger {
            values: Values::new(SEED),
            run: run & ((1 << (64 - SEQUENCE_BITS)) - 1),
            sequence: 0,
            writes: HashMap::new(),
            findings: Findings::default(),
        }
    }

    /// Fills `bytes`, the blocks of the write `request`, and notes them as in flight.
    pub(super) fn begin_write(&mut self, request: &Request, bytes: &mut [u8]) -> u64 {
        self.sequence += 1;
        let sequence = self.sequence;
        let put = self.run << SEQUENCE_BITS | sequence;
        for (block, bytes) in request.range().zip(bytes.chunks_mut(BLOCK_BYTES as usize)) {
            let id = id_of(request.asu, block);
            self.values.fill(id, put, bytes);
            let writes = self.writes.entry(id).or_default();
            if writes.in_flight == 0 {
                writes.group_first = sequence;
            }
            writes.in_flight += 1;
            writes.issued = sequence;
        }
        sequence
    }

    /// Notes that all blocks of the write `request` arrived.
    pub(super) fn end_write(&mut self, request: &Request) {
        for block in request.range() {
            let id = id_of(request.asu, block);
            let writes = self.writes.get_mut(&id).expect("the write began before it ended");
            writes.in_flight -= 1;
            if writes.in_flight == 0 {
                writes.floor = Some(writes.group_first);
            }
        }
    }

    /// What is known of the blocks of the read `request` as it begins.
    pub(super) fn begin_read(&self, request: &Request) -> Vec<Writes> {
        let known = |block| self.writes.get(&id_of(request.asu, block)).copied();
        request.range().map(|block| known(block).unwrap_or_default()).collect()
    }

    /// Judges the blocks that `request` read from its block number `first` on, given what was known
    /// as it began.
    pub(super) fn end_read(
        &mut self,
        request: &Request,
        first: usize,
        bytes: &[u8],
        known: &[Writes],
    ) {
        let blocks = bytes.chunks(BLOCK_BYTES as usize).zip(&known[first..]);
        for ((bytes, before), block) in blocks.zip(request.position + first as u64..) {
            match self.judge(request.asu, block, bytes, before) {
                Ok(found) => *found.of(&mut self.findings) += 1,
                Err(sentence) => {
                    self.findings.wrong += 1;
                    if self.findings.sentences.len() < SENTENCES_MAX {
                        let number = request.asu.number();
                        let sentence = format!("ASU{number} block {block}: {sentence}");
                        self.findings.sentences.push(sentence);
                    }
                }
            }
        }
    }

    /// What reads found so far.
    pub(super) fn findings(&self) -> &Findings {
        &self.findings
    }

    fn judge(
        &self,
        asu: Asu,
        block: u64,
        bytes: &[u8],
        before: &Writes,
    ) -> Result<Finding, String> {
        let id = id_of(asu, block);
        let now = self.writes.get(&id).copied().unwrap_or_default();
        let overlapped = before.in_flight > 0 || now.issued != before.issued;
        match self.values.verify(id, BLOCK_BYTES as usize, bytes) {
            Ok(put) => {
                let (run, sequence) = (put >> SEQUENCE_BITS, put & ((1 << SEQUENCE_BITS) - 1));
                match before.floor {
                    _ if run == self.run && sequence > now.issued => {
                        Err(format!("holds write {sequence}, which was never made"))
                    }
                    Some(floor) if run != self.run || sequence < floor => Err(format!(
                        "holds an older write than expected: found {sequence} of run {run}, \
                         expected {floor} or later of run {}",
                        self.run
                    )),
                    _ => Ok(Finding::Sound),
                }
            }
            Err(_) if overlapped => Ok(Finding::Unjudged),
            Err(error @ VerifyError::Changed { .. }) => Err(error.to_string()),
            Err(error) if before.floor.is_some() => Err(error.to_string()),
            Err(VerifyError::ForeignKey { found, .. }) => {
                let other = self.values.verify(found, BLOCK_BYTES as usize, bytes);
                match other {
                    Ok(put) if put >> SEQUENCE_BITS == self.run => {
                        let (asu, block) = (found >> 24 & 0xFF, found >> 32);
                        Err(format!("holds what this run wrote to ASU{asu} block {block}"))
                    }
                    _ => Ok(Finding::Unknown),
                }
            }
            Err(error) => Err(error.to_string()),
        }
    }
}

/// What a block that is not wrong is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Finding {
    Sound,
    Unknown,
    Unjudged,
}

impl Finding {
    fn of(self, findings: &mut Findings) -> &mut u64 {
        match self {
            Finding::Sound => &mut findings.sound,
            Finding::Unknown => &mut findings.unknown,
            Finding::Unjudged => &mut findings.unjudged,
        }
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Findings { sound, unknown, unjudged, wrong, .. } = self;
        write!(
            f,
            "{sound} blocks sound, {wrong} wrong, {unknown} never written, {unjudged} written \
             while they were read"
        )
    }
}

/// The magic and the unit come first in memory, then the block.
fn id_of(asu: Asu, block: u64) -> u64 {
    let head = [MAGIC[0], MAGIC[1], MAGIC[2], asu.number() as u8];
    block << 32 | u64::from(u32::from_le_bytes(head))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITE: &str = "1 W 2 1 10 0";
    const READ: &str = "1 R 2 1 10 0";

    fn written(ledger: &mut Ledger) -> Vec<u8> {
        let request: Request = WRITE.parse().unwrap();
        let mut bytes = vec![0; 2 * BLOCK_BYTES as usize];
        ledger.begin_write(&request, &mut bytes);
        ledger.end_write(&request);
        bytes
    }

    fn read(ledger: &mut Ledger, bytes: &[u8]) -> Findings {
        let request: Request = READ.parse().unwrap();
        let known = ledger.begin_read(&request);
        let before = ledger.findings().clone();
        ledger.end_read(&request, 0, bytes, &known);
        let after = ledger.findings().clone();
        Findings {
            sound: after.sound - before.sound,
            unknown: after.unknown - before.unknown,
            unjudged: after.unjudged - before.unjudged,
            wrong: after.wrong - before.wrong,
            sentences: after.sentences,
        }
    }

    #[test]
    fn what_was_written_last_is_sound_and_what_it_replaced_is_wrong() {
        let mut ledger = Ledger::new(1);
        let first = written(&mut ledger);
        assert_eq!(read(&mut ledger, &first).sound, 2);
        let second = written(&mut ledger);
        assert_eq!(read(&mut ledger, &second).sound, 2);
        let found = read(&mut ledger, &first);
        assert_eq!((found.wrong, found.sound), (2, 0));
        assert!(found.sentences[0].contains("block 10: holds an older write"), "{found:?}");
    }

    #[test]
    fn other_bytes_other_places_and_blanks_are_wrong_once_a_block_was_written() {
        let mut ledger = Ledger::new(1);
        let bytes = written(&mut ledger);
        let mut changed = bytes.clone();
        changed[100] ^= 1;
        assert_eq!(read(&mut ledger, &changed).wrong, 1);
        let mut swapped = bytes.clone();
        swapped.rotate_left(BLOCK_BYTES as usize);
        assert_eq!(read(&mut ledger, &swapped).wrong, 2);
        assert_eq!(read(&mut ledger, &vec![0; bytes.len()]).wrong, 2);
    }

    #[test]
    fn what_was_there_before_the_run_is_not_judged_but_its_own_misplaced_writes_are() {
        let earlier = written(&mut Ledger::new(1));
        let mut ledger = Ledger::new(2);
        assert_eq!(read(&mut ledger, &earlier).sound, 2);
        assert_eq!(read(&mut ledger, &vec![0; earlier.len()]).unknown, 2);
        let elsewhere: Request = "2 W 2 1 70 0".parse().unwrap();
        let mut bytes = vec![0; earlier.len()];
        ledger.begin_write(&elsewhere, &mut bytes);
        assert_eq!(read(&mut ledger, &bytes).wrong, 2);
        written(&mut ledger);
        assert_eq!(read(&mut ledger, &earlier).wrong, 2);
    }

    #[test]
    fn writes_that_overlap_in_time_may_land_in_any_order() {
        let mut ledger = Ledger::new(1);
        let request: Request = WRITE.parse().unwrap();
        let length = 2 * BLOCK_BYTES as usize;
        let (mut first, mut second) = (vec![0; length], vec![0; length]);
        ledger.begin_write(&request, &mut first);
        ledger.begin_write(&request, &mut second);
        ledger.end_write(&request);
        assert_eq!(read(&mut ledger, &first).sound, 2);
        ledger.end_write(&request);
        assert_eq!(read(&mut ledger, &first).sound, 2);
        assert_eq!(read(&mut ledger, &second).sound, 2);
        written(&mut ledger);
        assert_eq!(read(&mut ledger, &second).wrong, 2);
    }
}
