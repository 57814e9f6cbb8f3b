//! Large values put together from their pieces.

use std::borrow::Cow;

use entresol_device::IoBuffer;

use super::Engine;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{Codec, Manifest, PieceName, RecordKind};
use crate::index::Place;
use crate::notes::index_hash;
use crate::record::{Mismatch, Record, Wanted, decompress};
use crate::shard::damaged;
use crate::types::VALUE_BYTES_MAX;

impl Engine {
    /// The value of the entry whose record at `place` is `record`: its own, or put together. `None`
    /// if it was replaced meanwhile; `Corrupt` if it was not and its pieces are gone.
    pub(crate) fn whole_value<'r>(
        &self,
        hash: u128,
        place: Place,
        record: &Record<'r>,
    ) -> Result<Option<Cow<'r, [u8]>>> {
        if record.header.flags.kind != RecordKind::Manifest {
            return Ok(Some(Cow::Borrowed(record.value)));
        }
        if let Some(value) = self.assemble(hash, record)? {
            return Ok(Some(Cow::Owned(value)));
        }
        let shard = self.shards[self.shard_of(hash)].lock();
        let stands = shard.index.contains(index_hash(hash), place.address);
        if stands && shard.large.pieces(record.header.sequence).is_none() {
            return Err(damaged(&shard.log, place.address, Mismatch::Damaged));
        }
        Ok(None)
    }

    /// The value whose manifest is `record`. `None` if it was replaced meanwhile.
    pub(crate) fn assemble(&self, hash: u128, record: &Record<'_>) -> Result<Option<Vec<u8>>> {
        let version = record.header.sequence;
        let Some(Manifest { stored_bytes, raw_bytes, codec, pieces }) =
            Manifest::decode(record.value)
        else {
            return Err(Error::new(ErrorKind::Corrupt, "a manifest does not decode"));
        };
        if stored_bytes > VALUE_BYTES_MAX as u64 + 1024 || raw_bytes as usize > VALUE_BYTES_MAX {
            return Err(Error::new(ErrorKind::Corrupt, "a manifest names an impossible length"));
        }
        let shard_number = self.shard_of(hash);
        let present_bytes = {
            let shard = self.shards[shard_number].lock();
            let places = shard.large.pieces(version).map(|p| &p.places).into_iter().flatten();
            places.map(|(_, bytes)| u64::from(*bytes)).sum::<u64>()
        };
        let mut stored = Vec::with_capacity(stored_bytes.min(present_bytes) as usize);
        for number in 0..pieces {
            let piece = PieceName { value: version, number };
            if !self.append_piece(shard_number, piece, &mut stored)? {
                return Ok(None);
            }
        }
        let raw_bytes = raw_bytes as usize;
        let value = match codec {
            Codec::Plain => Some(stored),
            _ => decompress(codec, &stored, raw_bytes),
        };
        let whole = value.filter(|v| v.len() == raw_bytes);
        let error = || Error::new(ErrorKind::Corrupt, "the pieces of a value do not make it whole");
        whole.ok_or_else(error).map(Some)
    }

    /// Appends the bytes of one piece; false if the value is gone.
    fn append_piece(
        &self,
        shard_number: usize,
        piece: PieceName,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        let key = piece.key_bytes();
        let mut scratch = Vec::new();
        loop {
            let shard = self.shards[shard_number].lock();
            let pieces = shard.large.pieces(piece.value);
            let place = pieces.and_then(|p| p.places.get(piece.number as usize));
            let Some(&(address, bytes)) = place else {
                return Ok(false);
            };
            let generation = shard.segment_sequence(address);
            let wanted = Wanted::of(generation, PieceName::key(&key));
            let number16 = shard_number as u16;
            if let Some(memory) = shard.log.in_memory(address) {
                match shard.payloads().open(number16, memory, wanted, &mut scratch) {
                    Ok(record) => out.extend_from_slice(record.value),
                    Err(mismatch) => return Err(damaged(&shard.log, address, mismatch)),
                }
                return Ok(true);
            }
            let (segment, offset) = shard.log.shape().split(address);
            let at = shard.log.shape().offset_of(segment) + u64::from(offset);
            let segment_bytes = shard.log.shape().segment_bytes;
            drop(shard);
            let start = at / self.sector_bytes * self.sector_bytes;
            // The length is rounded up: behind the segment there may be no more of the device.
            let length = (u64::from(bytes) + crate::record::TAG_BYTES as u64)
                .min(u64::from(segment_bytes - offset));
            let end = (at + length).next_multiple_of(self.sector_bytes);
            let mut buffer = IoBuffer::aligned((end - start) as usize);
            self.device.read_at(start, &mut buffer)?;
            let found = buffer.get((at - start) as usize..).unwrap_or_default();
            match self.payloads.open(number16, found, wanted, &mut scratch) {
                Ok(record) => {
                    out.extend_from_slice(record.value);
                    return Ok(true);
                }
                Err(mismatch) => {
                    let shard = self.shards[shard_number].lock();
                    let still = shard.large.holds(piece, address)
                        && shard.segment_sequence(address) == generation;
                    // Else it moved while it was being read.
                    if still {
                        return Err(damaged(&shard.log, address, mismatch));
                    }
                }
            }
        }
    }
}
