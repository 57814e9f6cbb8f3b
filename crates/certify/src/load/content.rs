//! The contents of writes, made so that reads can be judged.
//!
//! Described contents carry in each unit of 512 bytes which run wrote it, to which device and
//! offset, the number of the write in that run, and a checksum over all of this. So a read tells a
//! torn, changed or misplaced unit from a unit that somebody else wrote. The description is
//! whitened with a number of its own, so that it is as random as the bytes around it.
//!
//! Invariant: a write at offset 0 begins with [`OWN_MAGIC`], so that a target that a load has
//! written is never taken for somebody else's.

use std::fmt;

use entresol_workload::{Random, mix64};

use crate::load::ledger::{Floor, Floors};

/// First bytes of every target that a load has written at offset 0.
pub const OWN_MAGIC: &[u8; 8] = b"ENTRACT\x01";

/// Bytes that describe themselves.
pub const UNIT_BYTES: usize = 512;

/// Makes and verifies contents. Shared by all threads of a load.
#[derive(Debug)]
pub struct Content {
    table: Vec<u8>,
    zero_bytes: usize,
    marking: Marking,
}

/// Whether contents describe themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marking {
    /// They are random.
    Plain,
    /// They do, as written by this run.
    Described {
        /// A number that no other run has.
        run: u64,
    },
}

/// Where bytes belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The target's identity.
    pub device: u32,
    /// Bytes from its beginning; a multiple of 512.
    pub offset: u64,
}

/// What the units of a read turned out to be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Verified {
    /// Units that were written there.
    pub good: u64,
    /// Units that no load wrote.
    pub foreign: u64,
    /// The first unit that holds something else than what was written there.
    pub wrong: Option<Wrong>,
}

/// A unit that is not what was written there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wrong {
    /// Where it was read.
    pub at: Place,
    /// In what way.
    pub how: Fault,
}

/// In what way a unit is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Its checksum does not fit: torn or changed.
    Changed {
        /// The checksum that it carries.
        expected: u32,
        /// That of its bytes.
        found: u32,
    },
    /// It belongs elsewhere.
    Misplaced {
        /// Where.
        belongs: Place,
    },
    /// It is older than what was written there last.
    Stale {
        /// What must be there, or a later write.
        expected: Floor,
        /// What it says of itself.
        found: Description,
    },
    /// No load wrote it, though one has written there.
    Gone {
        /// What must be there, or a later write.
        expected: Floor,
    },
}

/// What one unit says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Description {
    /// Which run wrote it.
    pub run: u64,
    /// Where to.
    pub place: Place,
    /// Which write of the run it was; 0: preparation.
    pub generation: u32,
}

const TABLE_BYTES: usize = 1 << 20;
const WORDS: usize = 5;
const BODY_BYTES: usize = UNIT_BYTES - WORDS * 8;
const MAGIC: u32 = 0xac70_5e1f;

impl Content {
    /// Contents of which `compress_pct` % are random bytes and the rest zeros. A description is
    /// random too: at less than 8 % it is all the randomness there is.
    pub fn new(seed: u64, compress_pct: u32, marking: Marking) -> Content {
        let mut table = vec![0; TABLE_BYTES];
        Random::new(seed).fill(&mut table);
        let zero_words = 64 * (100 - compress_pct.min(100) as usize) / 100;
        Content { table, zero_bytes: zero_words * 8, marking }
    }

    /// Fills `bytes` as write `generation` of the run, to be written at `place`.
    pub fn fill(&self, random: &mut Random, place: Place, generation: u32, bytes: &mut [u8]) {
        let mut units = bytes.chunks_exact_mut(UNIT_BYTES);
        let mut at = place;
        for unit in &mut units {
            let zeros = self.zero_bytes;
            unit[..zeros].fill(0);
            if let Marking::Described { run } = self.marking {
                if zeros < BODY_BYTES {
                    self.scatter(random, &mut unit[zeros..BODY_BYTES]);
                }
                own(at.offset, unit);
                describe(random.next(), &Description { run, place: at, generation }, unit);
            } else {
                self.scatter(random, &mut unit[zeros..]);
                own(at.offset, unit);
            }
            at.offset += UNIT_BYTES as u64;
        }
        self.scatter(random, units.into_remainder());
    }

    /// Judges `bytes` that were read at `place`, by what they say of themselves.
    pub fn verify(&self, place: Place, bytes: &[u8]) -> Verified {
        self.verify_against(&Floors::default(), place, bytes)
    }

    /// Judges them by that, and by what was written there last.
    pub fn verify_against(&self, floors: &Floors, place: Place, bytes: &[u8]) -> Verified {
        let mut verified = Verified::default();
        if self.marking == Marking::Plain {
            return verified;
        }
        let mut at = place;
        for unit in bytes.chunks_exact(UNIT_BYTES) {
            let floor = floors.at(at.offset);
            let how = match (read_unit(unit), floor) {
                (Unit::Foreign, None) => {
                    verified.foreign += 1;
                    None
                }
                (Unit::Foreign, Some(expected)) => Some(Fault::Gone { expected }),
                (Unit::Changed { expected, found }, _) => Some(Fault::Changed { expected, found }),
                (Unit::Ours(found), _) if found.place != at => {
                    Some(Fault::Misplaced { belongs: found.place })
                }
                (Unit::Ours(found), Some(expected)) if expected.is_later_than(&found) => {
                    Some(Fault::Stale { expected, found })
                }
                (Unit::Ours(_), _) => {
                    verified.good += 1;
                    None
                }
            };
            verified.wrong = verified.wrong.or(how.map(|how| Wrong { at, how }));
            at.offset += UNIT_BYTES as u64;
        }
        verified
    }

    /// Random bytes from the table: enough for devices that compress or share blocks, since each
    /// unit begins elsewhere in it.
    fn scatter(&self, random: &mut Random, bytes: &mut [u8]) {
        for piece in bytes.chunks_mut(TABLE_BYTES / 2) {
            let start = random.below((TABLE_BYTES - piece.len() + 1) as u64) as usize;
            piece.copy_from_slice(&self.table[start..start + piece.len()]);
        }
    }
}

impl Floor {
    fn is_later_than(&self, found: &Description) -> bool {
        found.run != self.run || found.generation < self.generation
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let offset = self.at.offset;
        write!(f, "the {UNIT_BYTES} bytes at offset {offset} are wrong: expected ")?;
        match self.how {
            Fault::Changed { expected, found } => write!(
                f,
                "what was written there, with the checksum {expected:08x}, found changed bytes \
                 with the checksum {found:08x}"
            ),
            Fault::Misplaced { belongs } if belongs.device == self.at.device => write!(
                f,
                "what was written there, found what was written to offset {}",
                belongs.offset
            ),
            Fault::Misplaced { belongs } => write!(
                f,
                "what was written there, found what was written to offset {} of another device",
                belongs.offset
            ),
            Fault::Stale { expected: Floor { run, generation }, found } if found.run == run => {
                let found = found.generation;
                write!(f, "write {generation} of this run or a later one, found write {found}")
            }
            Fault::Stale { expected, found } => write!(
                f,
                "write {} of this run or a later one, found write {} of another run",
                expected.generation, found.generation
            ),
            Fault::Gone { expected } => write!(
                f,
                "write {} of this run or a later one, found bytes that no load wrote",
                expected.generation
            ),
        }
    }
}

/// A unit as it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// No load wrote it.
    Foreign,
    /// A load wrote it, whole.
    Ours(Description),
    /// A load wrote it, but not like this.
    Changed {
        /// The checksum that it carries.
        expected: u32,
        /// That of its bytes.
        found: u32,
    },
}

/// What `unit`, of [`UNIT_BYTES`] bytes, is.
pub fn read_unit(unit: &[u8]) -> Unit {
    let nonce = word(unit, 0);
    let plain = |index: usize| word(unit, index) ^ whitening(nonce, index);
    let sealed = plain(1);
    if sealed as u32 != MAGIC {
        return Unit::Foreign;
    }
    let words = [plain(2), plain(3), plain(4)];
    let (expected, found) = ((sealed >> 32) as u32, checksum(unit, words));
    if expected != found {
        return Unit::Changed { expected, found };
    }
    let [run, offset, last] = words;
    let place = Place { device: last as u32, offset };
    Unit::Ours(Description { run, place, generation: (last >> 32) as u32 })
}

fn describe(nonce: u64, description: &Description, unit: &mut [u8]) {
    let Description { run, place, generation } = *description;
    let words = [run, place.offset, u64::from(place.device) | u64::from(generation) << 32];
    let sealed = u64::from(MAGIC) | u64::from(checksum(unit, words)) << 32;
    let all = [nonce, sealed, words[0], words[1], words[2]];
    for (index, plain) in all.into_iter().enumerate() {
        let white = if index == 0 { plain } else { plain ^ whitening(nonce, index) };
        let start = BODY_BYTES + index * 8;
        unit[start..start + 8].copy_from_slice(&white.to_le_bytes());
    }
}

fn own(offset: u64, unit: &mut [u8]) {
    if offset == 0 {
        unit[..OWN_MAGIC.len()].copy_from_slice(OWN_MAGIC);
    }
}

fn checksum(unit: &[u8], words: [u64; 3]) -> u32 {
    let mut sum = crc32c::crc32c(&unit[..BODY_BYTES]);
    for word in words {
        sum = crc32c::crc32c_append(sum, &word.to_le_bytes());
    }
    sum
}

fn whitening(nonce: u64, index: usize) -> u64 {
    mix64(nonce.wrapping_add(index as u64))
}

/// The `index`-th word of the description.
fn word(unit: &[u8], index: usize) -> u64 {
    let start = BODY_BYTES + index * 8;
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&unit[start..start + 8]);
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Place = Place { device: 7, offset: 4096 };

    fn filled(compress_pct: u32, marking: Marking, place: Place) -> (Content, Vec<u8>) {
        let content = Content::new(1, compress_pct, marking);
        let mut bytes = vec![0; 4096];
        content.fill(&mut Random::new(2), place, 3, &mut bytes);
        (content, bytes)
    }

    #[test]
    fn a_read_tells_good_changed_misplaced_and_foreign_units_apart() {
        let (content, mut bytes) = filled(100, Marking::Described { run: 5 }, HERE);
        assert_eq!(content.verify(HERE, &bytes), Verified { good: 8, foreign: 0, wrong: None });
        let expected = Description { run: 5, place: HERE, generation: 3 };
        assert_eq!(read_unit(&bytes[..512]), Unit::Ours(expected));
        let there = Place { device: 8, ..HERE };
        let wrong = content.verify(there, &bytes).wrong.map(|wrong| wrong.how);
        assert_eq!(wrong, Some(Fault::Misplaced { belongs: HERE }));
        let below = Place { offset: 3584, ..HERE };
        let wrong = content.verify(below, &bytes).wrong.map(|wrong| wrong.at);
        assert_eq!(wrong, Some(below));
        bytes[512..1024].fill(0);
        assert_eq!(content.verify(HERE, &bytes), Verified { good: 7, foreign: 1, wrong: None });
        for position in [1024, 1024 + BODY_BYTES - 1, 1024 + BODY_BYTES + 20, 1024 + 511] {
            let mut torn = bytes.clone();
            torn[position] ^= 0x10;
            let wrong = content.verify(HERE, &torn).wrong.expect("a bit flipped");
            assert_eq!(wrong.at.offset, 5120, "{position}");
            assert!(matches!(wrong.how, Fault::Changed { .. }), "{position}: {wrong}");
        }
    }

    #[test]
    fn contents_compress_as_configured() {
        for (compress_pct, zero_words) in [(100, 0), (75, 16), (50, 32), (0, 64)] {
            let (_, bytes) = filled(compress_pct, Marking::Plain, HERE);
            let zeros = bytes.chunks_exact(8).filter(|word| **word == [0; 8]).count();
            assert_eq!(zeros, zero_words * 8, "{compress_pct} %");
            let (content, bytes) = filled(compress_pct, Marking::Described { run: 5 }, HERE);
            let zeros = bytes.chunks_exact(8).filter(|word| **word == [0; 8]).count();
            assert_eq!(zeros, zero_words.min(59) * 8, "{compress_pct} % described");
            assert_eq!(content.verify(HERE, &bytes).good, 8);
        }
    }

    #[test]
    fn described_contents_are_as_random_as_plain_ones() {
        let (_, bytes) = filled(100, Marking::Described { run: 5 }, HERE);
        let mut counts = [0_u32; 256];
        bytes.iter().for_each(|&byte| counts[usize::from(byte)] += 1);
        let share = |count: u32| f64::from(count) / bytes.len() as f64;
        let used = counts.iter().filter(|&&count| count > 0);
        let entropy: f64 = used.map(|&count| -share(count) * share(count).log2()).sum();
        assert!(entropy > 7.9, "{entropy} bits a byte");
    }

    #[test]
    fn the_first_unit_of_a_target_is_known_as_a_load_s() {
        let start = Place { device: 7, offset: 0 };
        for marking in [Marking::Plain, Marking::Described { run: 5 }] {
            let (content, bytes) = filled(50, marking, start);
            assert!(bytes.starts_with(OWN_MAGIC));
            assert_eq!(content.verify(start, &bytes).wrong, None);
        }
    }
}
