//! Write buffers that outlive the process: how a file of them is laid out, and made.

use std::path::Path;

use entresol_device::{SharedFile, SharedMemory, WriteBuffer};

use crate::error::Result;
use crate::format::{BUFFER_FILE_HEADER, BufferOwner, LAST_WRITE_BYTES, MARK_BYTES, Superblock};
use crate::log::ShardBuffers;
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
    pub(crate) fn of_file(length: usize, superblock: &Superblock) -> Option<Layout> {
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

/// The write buffers of an opening, and what keeps them for the next process.
pub(crate) struct Attached {
    pub shards: Vec<ShardBuffers>,
    pub file: Option<SharedFile>,
}

/// Makes the file of an opening's write buffers.
pub(crate) fn create(layout: &Layout, path: &Path, owner: &BufferOwner) -> Result<Attached> {
    attach(layout, SharedMemory::create(path, layout.file_bytes(), &owner.encode())?, owner)
}

pub(crate) fn attach(
    layout: &Layout,
    memory: SharedMemory,
    owner: &BufferOwner,
) -> Result<Attached> {
    let file = memory.file()?;
    let (mut header, shards) = layout.cut(memory)?;
    let encoded = owner.encode();
    if header.bytes() != encoded {
        header.bytes_mut().copy_from_slice(&encoded);
    }
    Ok(Attached { shards, file: Some(file) })
}
