//! A device in memory that can be backed up, and a folder for each test.

use std::collections::VecDeque;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use entresol_backup::{
    CopyOptions, Error, ErrorKind, Image, Made, Manifest, Opening, Repository, Result, Segment,
    Source, StoreId, back_up, find, restore,
};

pub(crate) const SEGMENT_BYTES: u64 = 1 << 16;
pub(crate) const SUPERBLOCK_BYTES: u64 = 1 << 12;
pub(crate) const BASE: u64 = 2 * SUPERBLOCK_BYTES;
/// The time of the first backup of a test.
pub(crate) const NOW: u64 = 1_795_913_100;

/// A folder of one test, removed at its end.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let path =
            std::env::temp_dir().join(format!("entresol-backup-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("the folder can be used");
        Folder(path)
    }

    pub(crate) fn repository(&self) -> Repository {
        Repository::open(
            self.0.join("repository").to_str().expect("the folder can be used"),
            Opening::Create,
        )
        .expect("the folder can be used")
    }

    /// The files of the repository whose names begin with `folder`.
    pub(crate) fn objects(&self, folder: &str) -> Vec<PathBuf> {
        let mut files = Vec::new();
        let mut folders = vec![self.0.join("repository").join(folder)];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten() {
                let path = entry.expect("the folder can be used").path();
                if path.is_dir() { folders.push(path) } else { files.push(path) }
            }
        }
        files.sort();
        files
    }

    /// The bytes of the file that a restore of `manifest` makes.
    pub(crate) fn restored(&self, manifest: &Manifest) -> Result<Vec<u8>> {
        let target = self.0.join("restored");
        let restored = restore(&self.repository(), manifest, &target, &mut |_| {});
        assert!(!self.0.join("restored.restoring").exists(), "an unfinished file is left");
        if restored.is_err() {
            assert!(!target.exists(), "a file is in place although the restore failed");
        }
        restored?;
        let mode = fs::metadata(&target).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o077, 0, "others than the owner may use the file");
        let bytes = fs::read(&target).expect("the folder can be used");
        fs::remove_file(&target).expect("the folder can be used");
        Ok(bytes)
    }

    pub(crate) fn newest(&self) -> Manifest {
        find(&self.repository(), None).expect("the folder can be used")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// A store's device, which counts what is read of it.
#[derive(Debug, Clone)]
pub(crate) struct Memory {
    pub(crate) device: Vec<u8>,
    pub(crate) image: Image,
    asked: VecDeque<(u64, u64)>,
    /// Places of segments that were read, once for each read.
    pub(crate) reads: Vec<u64>,
    /// Places that are needed no more.
    pub(crate) done: Vec<u64>,
    pub(crate) ended: bool,
    /// The server gives up once so many reads are answered.
    pub(crate) gives_up_after: Option<usize>,
}

impl Memory {
    /// A device with room for `segments`, none of them in use.
    pub(crate) fn new(segments: u64) -> Memory {
        let device_bytes = BASE + segments * SEGMENT_BYTES;
        let superblock = b"the superblock".to_vec();
        let mut device = vec![0; device_bytes as usize];
        for at in [0, SUPERBLOCK_BYTES as usize] {
            device[at..at + superblock.len()].copy_from_slice(&superblock);
        }
        let image = Image {
            store: StoreId(0x57_0e),
            device_bytes,
            segment_bytes: SEGMENT_BYTES,
            superblock_bytes: SUPERBLOCK_BYTES,
            superblock,
            segments: Vec::new(),
        };
        Memory {
            device,
            image,
            asked: VecDeque::new(),
            reads: Vec::new(),
            done: Vec::new(),
            ended: false,
            gives_up_after: None,
        }
    }

    /// Uses segment `number` for content that `seed` decides.
    pub(crate) fn put(&mut self, number: u64, segment: Segment, seed: u64) {
        let at = BASE + number * SEGMENT_BYTES;
        self.image.segments.retain(|other| other.at != at);
        self.image.segments.push(Segment { at, ..segment });
        let place = &mut self.device[at as usize..][..SEGMENT_BYTES as usize];
        place.fill(0);
        for (index, byte) in place[..segment.bytes as usize].iter_mut().enumerate() {
            let mixed = (index as u64 / 16 + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            *byte = (mixed >> 56) as u8;
        }
    }

    /// Six segments, of which two are open.
    pub(crate) fn filled() -> Memory {
        let mut memory = Memory::new(8);
        for number in [1, 2, 5, 7] {
            memory.put(number, sealed(10 + number), number);
        }
        memory.put(0, open(20, 5000), 100);
        memory.put(6, open(21, 0), 101);
        memory
    }

    /// Whether every read was taken.
    pub(crate) fn asked_nothing(&self) -> bool {
        self.asked.is_empty()
    }

    pub(crate) fn back_up(&mut self, folder: &Folder) -> Result<Made> {
        self.reads.clear();
        self.done.clear();
        self.asked.clear();
        self.ended = false;
        let options = CopyOptions { bytes_per_second: None, now_seconds: NOW };
        back_up(&folder.repository(), self, options, &mut |_| {})
    }
}

pub(crate) fn sealed(sequence: u64) -> Segment {
    Segment { at: 0, sequence, bytes: SEGMENT_BYTES, sealed: true }
}

pub(crate) fn open(sequence: u64, bytes: u64) -> Segment {
    Segment { at: 0, sequence, bytes, sealed: false }
}

pub(crate) fn at(number: u64) -> u64 {
    BASE + number * SEGMENT_BYTES
}

/// Changes a byte in the middle of a file.
pub(crate) fn flip(file: &Path) {
    let mut bytes = fs::read(file).expect("the folder can be used");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(file, bytes).expect("the folder can be used");
}

impl Source for Memory {
    fn begin(&mut self) -> Result<Image> {
        Ok(self.image.clone())
    }

    fn ask(&mut self, at: u64, offset: u64, length: u64) -> Result<()> {
        assert!(length > 0 && length <= 1 << 20, "a read of {length} bytes");
        assert!(!self.done.contains(&at), "a segment is read that is needed no more");
        self.reads.push(at);
        self.asked.push_back((at + offset, length));
        Ok(())
    }

    fn answer(&mut self, into: &mut Vec<u8>) -> Result<()> {
        let (from, length) = self.asked.pop_front().expect("something was asked");
        if self.gives_up_after.is_some_and(|reads| self.reads.len() - self.asked.len() > reads) {
            return Err(Error::new(ErrorKind::GivenUp, "the server needed the room"));
        }
        into.extend_from_slice(&self.device[from as usize..(from + length) as usize]);
        Ok(())
    }

    fn done(&mut self, places: &[u64]) -> Result<()> {
        self.done.extend_from_slice(places);
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        self.ended = true;
        Ok(())
    }
}
