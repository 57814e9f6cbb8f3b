//! The header of a file of write buffers: whose they are, and where that store is. Buffers belong
//! to one store at one place: a copy of the store has its identity, too.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use entresol_device::Place;

use super::{u16_at, u32_at, u64_at};

/// Bytes before the first buffer.
pub const BUFFER_FILE_HEADER: usize = 4096;
const OWNER_MAGIC: [u8; 8] = *b"ENTRBUF2";
/// Of versions that knew paths alone.
const EARLIER_MAGIC: [u8; 8] = *b"ENTRBUFS";
/// Magic (8), checksum of the rest (4), number of places (4), store (8).
const OWNER_FIXED_BYTES: usize = 24;
/// Device (8), inode (8), time of birth (8).
const NUMBERS_BYTES: usize = 24;

/// Whose the write buffers in a file are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BufferOwner {
    /// The identity of the store, which its copies share.
    pub store: u64,
    /// The files and block devices of its device; none where they are not known.
    pub places: Vec<Place>,
}

impl BufferOwner {
    /// The name of the file of a store's write buffers in one opening; those of earlier versions,
    /// which numbered no openings, for 0.
    pub(crate) fn file_name(store: u64, opening: u128) -> String {
        match opening {
            0 => format!("entresol-{store:016x}.buffers"),
            _ => format!("entresol-{store:016x}-{opening:032x}.buffers"),
        }
    }

    /// The header. It names no path where not all have room.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let numbers = self.places.len() * (NUMBERS_BYTES + 2);
        let paths = self.places.iter().map(|place| place.path.as_os_str().len());
        let all = OWNER_FIXED_BYTES + numbers + paths.sum::<usize>() <= BUFFER_FILE_HEADER;
        let mut out = Vec::with_capacity(BUFFER_FILE_HEADER);
        out.extend_from_slice(&OWNER_MAGIC);
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&(self.places.len() as u32).to_le_bytes());
        out.extend_from_slice(&self.store.to_le_bytes());
        for place in &self.places {
            out.extend_from_slice(&place.device.to_le_bytes());
            out.extend_from_slice(&place.inode.to_le_bytes());
            out.extend_from_slice(&place.born_ns.to_le_bytes());
            let path = if all { place.path.as_os_str().as_bytes() } else { &[] };
            out.extend_from_slice(&(path.len() as u16).to_le_bytes());
            out.extend_from_slice(path);
        }
        assert!(out.len() <= BUFFER_FILE_HEADER, "no device has so many members");
        out.resize(BUFFER_FILE_HEADER, 0);
        let crc = crc32c::crc32c(&out[12..]);
        out[8..12].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// What a file of that name says that begins with these bytes; `None` if it is not the one of
    /// the store that it names.
    pub fn of_file(name: &str, header: &[u8]) -> Option<BufferOwner> {
        let name = name.strip_prefix("entresol-")?;
        let name = name.strip_suffix(".buffers").or_else(|| name.strip_suffix(".new"))?;
        let store = name.split_once('-').map_or(name, |(store, _)| store);
        let owner = BufferOwner::decode(header)?;
        (u64::from_str_radix(store, 16).ok()? == owner.store).then_some(owner)
    }

    /// What the first [`BUFFER_FILE_HEADER`] bytes of a file say; `None` if they are no such
    /// header: those of the first versions are empty.
    pub fn decode(bytes: &[u8]) -> Option<BufferOwner> {
        let bytes = bytes.get(..BUFFER_FILE_HEADER)?;
        let has_numbers = bytes.get(..8)? == OWNER_MAGIC;
        if !has_numbers && bytes.get(..8)? != EARLIER_MAGIC
            || u32_at(bytes, 8)? != crc32c::crc32c(bytes.get(12..)?)
        {
            return None;
        }
        let mut at = OWNER_FIXED_BYTES;
        let mut places = Vec::new();
        for _ in 0..u32_at(bytes, 12)? {
            let mut number = || {
                at += if has_numbers { 8 } else { 0 };
                if has_numbers { u64_at(bytes, at - 8) } else { Some(0) }
            };
            let (device, inode, born_ns) = (number()?, number()?, number()?);
            let length = usize::from(u16_at(bytes, at)?);
            let path = PathBuf::from(OsStr::from_bytes(bytes.get(at + 2..at + 2 + length)?));
            places.push(Place { path, device, inode, born_ns });
            at += 2 + length;
        }
        Some(BufferOwner { store: u64_at(bytes, 16)?, places })
    }

    /// Whether they are of a store at these places. Of earlier versions' the paths decide.
    pub(crate) fn is_at(&self, places: &[Place]) -> bool {
        let same = |(one, other): (&Place, &Place)| match one.is_known() {
            true => one.is_same(other),
            false => one.path == other.path,
        };
        self.places.len() == places.len() && self.places.iter().zip(places).all(same)
    }

    /// Whether anything of the store that they are of is still where it was.
    pub(crate) fn stands(&self) -> bool {
        self.places.iter().any(|place| match place.is_known() {
            true => place.stands(),
            false => place.path.exists(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(path: &str) -> Place {
        Place { path: path.into(), device: 259, inode: path.len() as u64, born_ns: 1 << 60 }
    }

    fn owner(paths: &[&str]) -> BufferOwner {
        let places = paths.iter().map(|path| place(path)).collect();
        BufferOwner { store: 0xfedc_ba98_7654_3210, places }
    }

    #[test]
    fn a_header_says_what_was_encoded_or_nothing() {
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
        assert_eq!(BufferOwner::decode(&[0; BUFFER_FILE_HEADER]), None);
        assert_eq!(BufferOwner::decode(b"short"), None);
    }

    /// The largest stripe, with the longest paths: who has no room for paths still tells one place
    /// from another.
    #[test]
    fn places_are_told_apart_where_their_paths_have_no_room() {
        let long = (0..64).map(|n| format!("/{n}{}", "x".repeat(4000))).collect::<Vec<_>>();
        let of = |count: usize| owner(&long[..count].iter().map(|p| &**p).collect::<Vec<_>>());
        for count in [2, 64] {
            let decoded = BufferOwner::decode(&of(count).encode()).unwrap();
            assert!(decoded.is_at(&of(count).places) && !decoded.is_at(&of(count - 1).places));
        }
    }

    #[test]
    fn buffers_are_of_one_store_at_one_place() {
        let places = |paths: &[&str]| owner(paths).places;
        let moved = Place { path: "/moved".into(), ..place("/a") };
        assert!(owner(&["/a"]).is_at(&[moved]), "the file is the same by another name");
        for other in [&["/ab"][..], &["/a", "/b"], &[]] {
            assert!(!owner(&["/a"]).is_at(&places(other)), "{other:?}");
        }
        assert!(!owner(&["/a", "/ab"]).is_at(&places(&["/ab", "/a"])));
        let unknown = |path: &str| Place { device: 0, inode: 0, born_ns: 0, ..place(path) };
        let earlier = BufferOwner { store: 1, places: vec![unknown("/a")] };
        assert!(earlier.is_at(&places(&["/a"])) && !earlier.is_at(&places(&["/b"])));
    }

    #[test]
    fn headers_of_earlier_versions_name_paths() {
        let mut bytes = Vec::from(EARLIER_MAGIC);
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&1u32.to_le_bytes());
        bytes.extend_from_slice(&7u64.to_le_bytes());
        bytes.extend_from_slice(&2u16.to_le_bytes());
        bytes.extend_from_slice(b"/a");
        bytes.resize(BUFFER_FILE_HEADER, 0);
        let crc = crc32c::crc32c(&bytes[12..]);
        bytes[8..12].copy_from_slice(&crc.to_le_bytes());
        for name in ["entresol-0000000000000007.buffers", "entresol-0000000000000007.new"] {
            let owner = BufferOwner::of_file(name, &bytes).unwrap();
            assert_eq!((owner.store, &owner.places[0].path), (7, &PathBuf::from("/a")));
            assert!(!owner.places[0].is_known());
        }
        assert_eq!(BufferOwner::of_file("entresol-0000000000000008.buffers", &bytes), None);
        assert!(BufferOwner::of_file(&BufferOwner::file_name(7, 1 << 100), &bytes).is_some());
    }
}
