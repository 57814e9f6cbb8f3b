//! The write buffers of a store: those of this run, and what those of a former process hold.
//!
//! Invariant: a former process's buffers are given up only once what stood in them is durable.

use std::path::{Path, PathBuf};

use entresol_device::{SharedMemory, WriteBuffer};

use super::survey::{Image, Images};
use crate::error::Result;
use crate::format::{BUFFER_FILE_HEADER, BufferOwner, Superblock};
use crate::log::{MARK_BYTES, ShardBuffers, mark_of};
use crate::options::{OpenMode, StoreOptions};
use crate::types::Durability;

/// Where this run's write buffers are to be, if they outlive the process.
pub(super) fn buffer_path(options: &StoreOptions, store: u64) -> Option<PathBuf> {
    let survives = matches!(options.durability, Durability::Process | Durability::Periodic(_))
        || options.durability == Durability::Flushed;
    buffer_file(options, store).filter(|_| survives && options.mode != OpenMode::ReadOnly)
}

/// Where a store's write buffers are if they outlive the process.
pub(super) fn buffer_file(options: &StoreOptions, store: u64) -> Option<PathBuf> {
    let directory = options.buffer_directory.as_ref()?;
    Some(directory.join(format!("entresol-{store:016x}.buffers")))
}

/// The write buffers of each shard, in memory of this process, or in a file that says whose they
/// are.
pub(super) fn buffer_memory(
    options: &StoreOptions,
    file: Option<(&Path, &BufferOwner)>,
) -> Result<Vec<ShardBuffers>> {
    let per_shard = usize::from(options.buffers_per_shard);
    let (shards, bytes) = (usize::from(options.shards), options.segment_bytes as usize);
    let Some((path, owner)) = file else {
        let shard = || {
            let buffers = (0..per_shard).map(|_| WriteBuffer::anonymous(bytes));
            let buffers = buffers.collect::<entresol_device::Result<Vec<_>>>()?;
            Ok(ShardBuffers { buffers, marks: None })
        };
        return (0..shards).map(|_| shard()).collect();
    };
    let layout = Layout { shards, per_shard, bytes };
    let memory = SharedMemory::create(path, layout.file_bytes())?;
    let (mut header, parts) = layout.cut(memory)?;
    header.bytes_mut().copy_from_slice(&owner.encode());
    Ok(parts)
}

/// How a file of write buffers is laid out: a header, the buffers shard by shard, and the marks
/// shard by shard.
struct Layout {
    shards: usize,
    per_shard: usize,
    bytes: usize,
}

impl Layout {
    /// That of a file of so many bytes; `None` if it has no marks, as those of earlier versions.
    fn of_file(length: usize, superblock: &Superblock) -> Option<Layout> {
        let (shards, bytes) = (usize::from(superblock.shards), superblock.segment_bytes as usize);
        let most = length.checked_sub(BUFFER_FILE_HEADER)? / bytes.max(1) / shards.max(1);
        let layout = Layout { shards, per_shard: most, bytes };
        (most > 0 && layout.file_bytes() == length).then_some(layout)
    }

    fn mark_bytes(&self) -> usize {
        (self.per_shard * MARK_BYTES).next_multiple_of(4096)
    }

    fn file_bytes(&self) -> usize {
        BUFFER_FILE_HEADER + self.shards * (self.per_shard * self.bytes + self.mark_bytes())
    }

    fn cut(&self, memory: SharedMemory) -> Result<(WriteBuffer, Vec<ShardBuffers>)> {
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

/// Where new buffers are made, besides those of a former process.
pub(super) fn made_path(path: Option<&Path>) -> Option<PathBuf> {
    path.map(|path| path.with_extension("new"))
}

/// Gives the new buffers the place of the former process's; removes those if there are no new ones.
pub(super) fn give_up_buffers(former: Option<&Path>, new: Option<&Path>) -> Result<()> {
    match (former, new) {
        (_, Some(path)) => SharedMemory::rename(path.with_extension("new"), path)?,
        (Some(path), None) => SharedMemory::remove(path)?,
        (None, None) => {}
    }
    Ok(())
}

/// What stood in the former process's write buffers, by shard and segment.
pub(super) fn surviving_images(path: &Path, superblock: &Superblock) -> Images {
    let mut images = Images::new();
    for image in SharedMemory::open(path).map_or(Vec::new(), |memory| cut(memory, superblock)) {
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

/// The buffers in a file with what is confirmed of each.
fn cut(memory: SharedMemory, superblock: &Superblock) -> Vec<Image> {
    let bytes = superblock.segment_bytes as usize;
    let Some(layout) = Layout::of_file(memory.len(), superblock) else {
        let count = memory.len().saturating_sub(BUFFER_FILE_HEADER) / bytes;
        let mut lengths = vec![BUFFER_FILE_HEADER];
        lengths.resize(1 + count, bytes);
        let parts = memory.parts(&lengths).unwrap_or_default();
        let buffers = parts.into_iter().skip(1);
        return buffers.map(|buffer| Image { buffer, confirmed: bytes }).collect();
    };
    let Ok((_, shards)) = layout.cut(memory) else { return Vec::new() };
    let images = shards.into_iter().flat_map(|ShardBuffers { buffers, marks }| {
        let buffers = buffers.into_iter().enumerate();
        buffers.map(move |(number, buffer)| {
            let mark = marks.as_ref().and_then(|marks| mark_of(marks.bytes(), number));
            Image { buffer, confirmed: mark.map_or(bytes, |mark| mark as usize) }
        })
    });
    images.collect()
}
