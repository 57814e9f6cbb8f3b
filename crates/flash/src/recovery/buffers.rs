//! The write buffers of a store: those of this run, and what those of a former process hold.
//!
//! Invariant: a former process's buffers are given up only once what stood in them is durable.

use std::path::{Path, PathBuf};

use entresol_device::{SharedMemory, WriteBuffer};

use super::survey::Images;
use crate::error::Result;
use crate::format::{BUFFER_FILE_HEADER, BufferOwner, Superblock};
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
) -> Result<Vec<Vec<WriteBuffer>>> {
    let per_shard = usize::from(options.buffers_per_shard);
    let count = per_shard * usize::from(options.shards);
    let bytes = options.segment_bytes as usize;
    let mut all = match file {
        None => {
            let made = (0..count).map(|_| WriteBuffer::anonymous(bytes));
            made.collect::<entresol_device::Result<Vec<_>>>()?
        }
        Some((path, owner)) => {
            let memory = SharedMemory::create(path, BUFFER_FILE_HEADER + count * bytes)?;
            let (mut header, buffers) = memory.buffers(BUFFER_FILE_HEADER, bytes, count)?;
            header.bytes_mut().copy_from_slice(&owner.encode());
            buffers
        }
    };
    let mut shards = Vec::new();
    for _ in 0..options.shards {
        let rest = all.split_off(per_shard);
        shards.push(std::mem::replace(&mut all, rest));
    }
    Ok(shards)
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
    let header_of = |image: &WriteBuffer| crate::format::SegmentHeader::decode(image.bytes());
    let mut images = Images::new();
    let Ok(memory) = SharedMemory::open(path) else { return images };
    let bytes = superblock.segment_bytes as usize;
    let count = memory.len().saturating_sub(BUFFER_FILE_HEADER) / bytes;
    let Ok((_, buffers)) = memory.buffers(BUFFER_FILE_HEADER, bytes, count) else { return images };
    for buffer in buffers {
        let Some(header) = header_of(&buffer).filter(|h| h.store == superblock.store) else {
            continue;
        };
        let key = (header.shard, header.segment);
        let present = images.get(&key).and_then(header_of);
        if present.is_none_or(|present| present.sequence < header.sequence) {
            images.insert(key, buffer);
        }
    }
    images
}
