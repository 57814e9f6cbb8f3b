//! A list of the entries of a space out of the footers of segments, without a read of a record.

use entresol_device::IoBuffer;

use super::Engine;
use crate::error::Result;
use crate::format::{FooterEntry, RecordKind, SegmentHeader};
use crate::log::{footer_of_whole, read_footer};
use crate::notes::index_hash;
use crate::recovery::Scanner;
use crate::segment::SegmentState;
use crate::session::EntryName;
use crate::types::SpaceId;

/// What a list tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    /// A live entry.
    Entry(Listed),
    /// A segment is done with.
    Segment,
}

/// One live entry of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed {
    /// Its partition.
    pub partition: u16,
    /// What finds it.
    pub name: EntryName,
    /// Bytes of its record, without the pieces of a large value.
    pub record_bytes: u32,
}

impl Engine {
    /// Visits the live entries of `space`, segment by segment.
    pub(crate) fn list(&self, space: SpaceId, visit: &mut dyn FnMut(Listing)) -> Result<()> {
        for (number, shard) in self.shards.iter().enumerate() {
            let all: Vec<(u32, u64)> = {
                let shard = shard.lock();
                let states = [
                    SegmentState::Open,
                    SegmentState::Sealed,
                    SegmentState::Reclaiming,
                    SegmentState::Damaged,
                ];
                let rows = shard.log.segments().iter().enumerate();
                let in_use = rows.filter(|(_, row)| states.contains(&row.state));
                in_use.map(|(number, row)| (number as u32, row.sequence)).collect()
            };
            for (segment, sequence) in all {
                for entry in self.lines_of(number, segment, sequence)? {
                    if entry.space == space && self.is_live(number, segment, sequence, &entry) {
                        visit(Listing::Entry(Listed {
                            partition: entry.partition,
                            name: EntryName::new(number, entry.hash),
                            record_bytes: entry.record_bytes,
                        }));
                    }
                }
                visit(Listing::Segment);
            }
        }
        Ok(())
    }

    /// What a segment holds: by its footer, or by its records where it has none that verifies.
    fn lines_of(&self, number: usize, segment: u32, sequence: u64) -> Result<Vec<FooterEntry>> {
        let shape = {
            let shard = self.shards[number].lock();
            let shape = shard.log.shape();
            if let Some(memory) = shard.log.in_memory(shape.address(segment, 0)) {
                let copy = memory.to_vec();
                drop(shard);
                return Ok(self.lines_in(number, &copy, sequence));
            }
            shape
        };
        if let Some(lines) = read_footer(&*self.device, &shape, segment, sequence)? {
            return Ok(lines);
        }
        let mut bytes = IoBuffer::aligned(shape.segment_bytes as usize);
        self.read_segment(number, segment, &mut bytes)?;
        Ok(self.lines_in(number, &bytes, sequence))
    }

    fn lines_in(&self, number: usize, bytes: &[u8], sequence: u64) -> Vec<FooterEntry> {
        if let Some(lines) = footer_of_whole(bytes, sequence) {
            return lines;
        }
        let header = SegmentHeader::decode(bytes).filter(|header| header.sequence == sequence);
        let Some(header) = header else { return Vec::new() };
        let (payloads, hash_seed) = (&self.payloads, self.hash_seed);
        Scanner { payloads, hash_seed, shard: number as u16 }.scan(bytes, &header).0
    }

    fn is_live(&self, number: usize, segment: u32, sequence: u64, entry: &FooterEntry) -> bool {
        if !matches!(entry.flags.kind, RecordKind::Value | RecordKind::Manifest) {
            return false;
        }
        let shard = self.shards[number].lock();
        let address = shard.log.shape().address(segment, entry.offset);
        // The segment may be in use anew by now.
        shard.segment_sequence(address) == sequence
            && (shard.index.contains(index_hash(entry.hash), address)
                || shard.notes.hidden(entry.hash).any(|note| note.address == address))
            && shard.floor_of(entry.owner()) <= sequence
    }
}
