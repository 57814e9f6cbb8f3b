//! Write buffers that outlive the process: how a file of them is laid out.

use entresol_device::{Device, IoBuffer, SharedMemory, WriteBuffer};

use super::shape_of;
use super::survey::{Image, Images};
use crate::error::Result;
use crate::format::{
    BUFFER_FILE_HEADER, LAST_WRITE_BYTES, LastWrite, MARK_BYTES, SEGMENT_HEADER_BYTES,
    SegmentHeader, Superblock, mark_of,
};
use crate::log::{Shape, ShardBuffers};
use crate::options::StoreOptions;

/// How a file of write buffers is laid out: a header, the buffers shard by shard, and the marks
/// shard by shard.
pub(crate) struct Layout {
    shards: usize,
    per_shard: usize,
    bytes: usize,
}

impl Layout {
    /// That of a store with these options, which are those of its root.
    pub(crate) fn of(options: &StoreOptions) -> Layout {
        let (shards, bytes) = (usize::from(options.shards), options.segment_bytes as usize);
        Layout { shards, per_shard: usize::from(options.buffers_per_shard), bytes }
    }

    /// That of a file of so many bytes; `None` if it has no marks, as those of the first versions.
    fn of_file(length: usize, superblock: &Superblock) -> Option<Layout> {
        let (shards, bytes) = (usize::from(superblock.shards), superblock.segment_bytes as usize);
        let most = length.checked_sub(BUFFER_FILE_HEADER)? / bytes.max(1) / shards.max(1);
        let layout = Layout { shards, per_shard: most, bytes };
        (most > 0 && layout.file_bytes() == length).then_some(layout)
    }

    fn mark_bytes(&self) -> usize {
        (self.per_shard * MARK_BYTES + LAST_WRITE_BYTES).next_multiple_of(4096)
    }

    /// Bytes of a file.
    pub(crate) fn file_bytes(&self) -> usize {
        BUFFER_FILE_HEADER + self.shards * (self.per_shard * self.bytes + self.mark_bytes())
    }

    /// The buffers of each shard in memory of this process, which take memory as they are used.
    pub(crate) fn anonymous(&self) -> Result<Vec<ShardBuffers>> {
        let shard = || {
            let buffers = (0..self.per_shard).map(|_| WriteBuffer::anonymous(self.bytes));
            let buffers = buffers.collect::<entresol_device::Result<Vec<_>>>()?;
            Ok(ShardBuffers { buffers, marks: None })
        };
        (0..self.shards).map(|_| shard()).collect()
    }

    /// The header of a file and the buffers of each shard.
    pub(crate) fn cut(&self, memory: SharedMemory) -> Result<(WriteBuffer, Vec<ShardBuffers>)> {
        let mut lengths = vec![BUFFER_FILE_HEADER];
        lengths.resize(1 + self.shards * self.per_shard, self.bytes);
        lengths.resize(lengths.len() + self.shards, self.mark_bytes());
        let mut parts = memory.parts(&lengths)?;
        let marks = parts.split_off(1 + self.shards * self.per_shard);
        let mut rest = parts.split_off(1);
        let shards = marks.into_iter().map(|marks| {
            let later = rest.split_off(self.per_shard);
            let buffers = std::mem::replace(&mut rest, later);
            ShardBuffers { buffers, marks: Some(marks) }
        });
        let shards = shards.collect();
        Ok((parts.remove(0), shards))
    }
}

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
