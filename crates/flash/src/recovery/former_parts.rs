//! What stands in the write buffers that a former process left.

use entresol_device::{Device, IoBuffer, SharedMemory, WriteBuffer};

use super::shape_of;
use super::survey::{Image, Images};
use crate::buffers::Layout;
use crate::error::Result;
use crate::format::{
    BUFFER_FILE_HEADER, LastWrite, SEGMENT_HEADER_BYTES, SegmentHeader, Superblock, mark_of,
};
use crate::log::{Shape, ShardBuffers};
use crate::options::StoreOptions;

/// The buffers of a former process, shard by shard where the layout is known.
pub(super) struct FormerParts {
    header: WriteBuffer,
    shards: Vec<ShardBuffers>,
}

impl FormerParts {
    /// Those in a file of a store with this root.
    pub(super) fn of(memory: SharedMemory, superblock: &Superblock) -> Result<FormerParts> {
        if let Some(layout) = Layout::of_file(memory.len(), superblock) {
            let (header, shards) = layout.cut(memory)?;
            return Ok(FormerParts { header, shards });
        }
        let bytes = superblock.segment_bytes as usize;
        let count = memory.len().saturating_sub(BUFFER_FILE_HEADER) / bytes;
        let mut lengths = vec![BUFFER_FILE_HEADER];
        lengths.resize(1 + count, bytes);
        let mut buffers = memory.parts(&lengths)?;
        let header = buffers.remove(0);
        Ok(FormerParts { header, shards: vec![ShardBuffers { buffers, marks: None }] })
    }

    pub(super) fn header(&self) -> &[u8] {
        self.header.bytes()
    }

    /// Whether nothing stands in them that the device may lack.
    pub(super) fn are_drained(&self) -> bool {
        let mut buffers = self.shards.iter().flat_map(|shard| &shard.buffers);
        buffers.all(|buffer| SegmentHeader::decode(buffer.bytes()).is_none())
    }

    /// Forgets what stands in them: all of it is durable on the device.
    pub(super) fn drain(mut self) {
        for shard in &mut self.shards {
            for buffer in &mut shard.buffers {
                buffer.bytes_mut()[..SEGMENT_HEADER_BYTES].fill(0);
            }
            if let Some(marks) = &mut shard.marks {
                marks.bytes_mut().fill(0);
            }
        }
    }

    /// Whether the device holds what it had told these buffers that it holds. One that was put back
    /// to an earlier state does not, nor does a copy that was made before.
    pub(super) fn fit(&self, device: &dyn Device, superblock: &Superblock) -> bool {
        let options = StoreOptions::default();
        self.shards.iter().enumerate().all(|(number, buffers)| {
            let last = buffers.marks.as_ref().and_then(|marks| LastWrite::decode(marks.bytes()));
            let shape = shape_of(superblock, number as u16, device, &options);
            last.is_none_or(|last| is_held(device, &shape, buffers, last))
        })
    }

    /// What stands in them, by shard and segment.
    pub(super) fn images(self, superblock: &Superblock) -> Images {
        let mut images = Images::new();
        let bytes = superblock.segment_bytes as usize;
        let of_shard = |ShardBuffers { buffers, marks }: ShardBuffers| {
            let buffers = buffers.into_iter().enumerate();
            buffers.map(move |(number, buffer)| {
                let mark = marks.as_ref().and_then(|marks| mark_of(marks.bytes(), number));
                Image { buffer, confirmed: mark.map_or(bytes, |mark| mark as usize) }
            })
        };
        for image in self.shards.into_iter().flat_map(of_shard) {
            let Some(header) = image.header().filter(|h| h.store == superblock.store) else {
                continue;
            };
            let key = (header.shard, header.segment);
            let present = images.get(&key).and_then(Image::header);
            if present.is_none_or(|present| present.sequence < header.sequence) {
                images.insert(key, image);
            }
        }
        images
    }
}

/// Whether the device holds a write that it had confirmed, as far as that can be told: what is
/// damaged or cannot be read proves nothing.
fn is_held(device: &dyn Device, shape: &Shape, buffers: &ShardBuffers, last: LastWrite) -> bool {
    if last.segment >= shape.segments {
        return false;
    }
    let unit = shape.sync_unit as usize;
    let mut found = IoBuffer::aligned(unit);
    let start = shape.offset_of(last.segment);
    if device.read_at(start, &mut found).is_err() {
        return true;
    }
    match SegmentHeader::decode(&found) {
        Some(header) if header.store == shape.store && header.sequence > last.sequence => {
            return true;
        }
        Some(header) if header.store == shape.store && header.sequence == last.sequence => {}
        Some(_) => return false,
        None => return found.iter().any(|byte| *byte != 0),
    }
    let of_last = |buffer: &&WriteBuffer| {
        let header = SegmentHeader::decode(buffer.bytes());
        header.is_some_and(|h| (h.segment, h.sequence) == (last.segment, last.sequence))
    };
    let image = buffers.buffers.iter().find(of_last).map(WriteBuffer::bytes);
    let at = (last.end as usize).checked_sub(unit).filter(|at| at.is_multiple_of(unit));
    let expected = at.zip(image).and_then(|(at, image)| Some((at, image.get(at..at + unit)?)));
    let Some((at, expected)) = expected else { return true };
    if device.read_at(start + at as u64, &mut found).is_err() {
        return true;
    }
    // A few flipped bits are damage; what was never written differs nearly everywhere.
    let differing = expected.iter().zip(found.iter()).filter(|(one, other)| one != other).count();
    differing <= expected.iter().filter(|byte| **byte != 0).count() / 4
}
