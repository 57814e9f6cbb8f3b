//! The header of a file of write buffers: whose they are. A store finds its buffers by the name of
//! their file; the header is for people who find buffers whose store is gone.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::{u16_at, u32_at, u64_at};

/// Bytes before the first buffer.
pub const BUFFER_FILE_HEADER: usize = 4096;
const OWNER_MAGIC: [u8; 8] = *b"ENTRBUFS";
/// Magic (8), checksum of the rest (4), number of paths (4), store (8).
const OWNER_FIXED_BYTES: usize = 24;

/// Whose the write buffers in a file are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BufferOwner {
    /// The identity of the store.
    pub store: u64,
    /// The files and block devices of its device; none where they are not known.
    pub paths: Vec<PathBuf>,
}

impl BufferOwner {
    /// The header. It names no path where not all have room.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(BUFFER_FILE_HEADER);
        out.extend_from_slice(&OWNER_MAGIC);
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&(self.paths.len() as u32).to_le_bytes());
        out.extend_from_slice(&self.store.to_le_bytes());
        for path in &self.paths {
            let bytes = path.as_os_str().as_bytes();
            out.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
            out.extend_from_slice(bytes);
        }
        if out.len() > BUFFER_FILE_HEADER {
            return BufferOwner { store: self.store, paths: Vec::new() }.encode();
        }
        out.resize(BUFFER_FILE_HEADER, 0);
        let crc = crc32c::crc32c(&out[12..]);
        out[8..12].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// What a file of that name says that begins with these bytes; `None` if it is not the one of
    /// the store that it names, or of one that is being made.
    pub fn of_file(name: &str, header: &[u8]) -> Option<BufferOwner> {
        let name = name.strip_prefix("entresol-")?;
        let store = name.strip_suffix(".buffers").or_else(|| name.strip_suffix(".new"))?;
        let owner = BufferOwner::decode(header)?;
        (u64::from_str_radix(store, 16).ok()? == owner.store).then_some(owner)
    }

    /// What the first [`BUFFER_FILE_HEADER`] bytes of a file say; `None` if they are no such
    /// header: those of earlier versions are empty.
    pub fn decode(bytes: &[u8]) -> Option<BufferOwner> {
        let bytes = bytes.get(..BUFFER_FILE_HEADER)?;
        if bytes.get(..8)? != OWNER_MAGIC || u32_at(bytes, 8)? != crc32c::crc32c(bytes.get(12..)?) {
            return None;
        }
        let mut at = OWNER_FIXED_BYTES;
        let mut paths = Vec::new();
        for _ in 0..u32_at(bytes, 12)? {
            let length = usize::from(u16_at(bytes, at)?);
            let path = bytes.get(at + 2..at + 2 + length)?;
            paths.push(PathBuf::from(OsStr::from_bytes(path)));
            at += 2 + length;
        }
        Some(BufferOwner { store: u64_at(bytes, 16)?, paths })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_says_what_was_encoded_or_nothing() {
        let owner = |paths: &[&str]| BufferOwner {
            store: 0xfedc_ba98_7654_3210,
            paths: paths.iter().map(PathBuf::from).collect(),
        };
        for paths in [&[][..], &["/a"], &["/dev/nvme0n1", "/dev/nvme1n1", "/with space\n"]] {
            let encoded = owner(paths).encode();
            assert_eq!(encoded.len(), BUFFER_FILE_HEADER);
            assert_eq!(BufferOwner::decode(&encoded), Some(owner(paths)));
            for at in 0..40 {
                let mut damaged = encoded.clone();
                damaged[at] ^= 4;
                assert_eq!(BufferOwner::decode(&damaged), None, "byte {at}");
            }
        }
        let long = "/x".repeat(1500);
        assert_eq!(BufferOwner::decode(&owner(&[&long, &long]).encode()), Some(owner(&[])));
        assert_eq!(BufferOwner::decode(&[0; BUFFER_FILE_HEADER]), None);
        assert_eq!(BufferOwner::decode(b"short"), None);
    }
}
