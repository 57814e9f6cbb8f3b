//! The format does not change unnoticed: a new heap has the bytes that version 1 always had, and
//! the heaps kept here open. Encrypted heaps, version 2, never have the same bytes twice.
#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;

use entresol_heap::{Aes256Gcm, Cipher, CreateOptions, Heap, Medium, OpenOptions, Repair, check};

/// Lines of the file that are not zero, `offset: bytes` in hexadecimal.
const VERSION_1: &str = include_str!("version-1.txt");
/// An encrypted heap of the same contents.
const VERSION_2: &str = include_str!("version-2.txt");
const SECRET: &[u8; 32] = b"0123456789abcdef0123456789ABCDEF";
const LINE_BYTES: usize = 32;
const FILE_BYTES: usize = 256 << 10;

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let name = format!("entresol-heap-golden-{}-{name}", std::process::id());
        Scratch(std::env::temp_dir().join(name))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}

/// A heap with a slot, a run, a freed slot, a registered size, and a record in its log.
fn make(path: &std::path::Path) -> Vec<u8> {
    let options = CreateOptions {
        bytes: FILE_BYTES as u64,
        label: *b"golden\0\0\0\0\0\0\0\0\0\0",
        log_bytes: Some(64 << 10),
        heap_id: Some(*b"0123456789abcdef"),
        medium: Medium::Pages,
        ..CreateOptions::default()
    };
    let heap = Heap::create(path, &options).unwrap();
    assert!(heap.register_size(100).unwrap());
    let mut transaction = heap.begin();
    let slot = transaction.allocate(24).unwrap();
    let gone = transaction.allocate(24).unwrap();
    let sized = transaction.allocate(100).unwrap();
    let run = transaction.allocate(40_000).unwrap();
    transaction.write(slot, b"a slot").unwrap();
    transaction.write_u64(slot + 8, run).unwrap();
    transaction.write_u64(slot + 16, sized).unwrap();
    transaction.write(run + 39_990, b"a run").unwrap();
    transaction.set_root(slot).unwrap();
    transaction.commit().unwrap();
    heap.checkpoint().unwrap();
    let mut transaction = heap.begin();
    transaction.free(gone).unwrap();
    transaction.write(sized, b"sized").unwrap();
    transaction.commit().unwrap();
    let bytes = std::fs::read(path).unwrap();
    heap.close().unwrap();
    bytes
}

fn text_of(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (index, line) in bytes.chunks(LINE_BYTES).enumerate() {
        if line.iter().any(|byte| *byte != 0) {
            let hex: String = line.iter().map(|byte| format!("{byte:02x}")).collect();
            writeln!(text, "{:06x}: {hex}", index * LINE_BYTES).unwrap();
        }
    }
    text
}

fn bytes_of(text: &str) -> Vec<u8> {
    let mut bytes = vec![0; FILE_BYTES];
    for line in text.lines() {
        let (offset, hex) = line.split_once(": ").unwrap();
        let offset = usize::from_str_radix(offset, 16).unwrap();
        for (index, byte) in bytes[offset..offset + LINE_BYTES].iter_mut().enumerate() {
            *byte = u8::from_str_radix(&hex[index * 2..index * 2 + 2], 16).unwrap();
        }
    }
    bytes
}

#[test]
fn a_heap_made_today_has_the_bytes_of_version_1() {
    let scratch = Scratch::new("made");
    let mut made = make(&scratch.0);
    let (older, newer) = made.split_at_mut(4096);
    // Checkpoints write both superblocks: they differ in sequence and checksum alone. When the heap
    // of version 1 was made, the older one still said what had been before the checkpoint.
    for said in [0..48, 56..4092] {
        assert_eq!(older[said.clone()], newer[said]);
    }
    older.copy_from_slice(&bytes_of(VERSION_1)[..4096]);
    let made = text_of(&made);
    if made != VERSION_1 {
        let place = std::env::temp_dir().join("entresol-heap-golden.txt");
        std::fs::write(&place, &made).unwrap();
        panic!("the format changed; what is made now is in {}", place.display());
    }
}

#[test]
fn the_heap_of_version_1_opens_and_holds_what_it_held() {
    holds_what_it_held("kept", VERSION_1, None);
}

#[test]
fn the_encrypted_heap_of_version_2_opens_and_holds_what_it_held() {
    let cipher: Arc<dyn Cipher> = Arc::new(Aes256Gcm::new(*SECRET));
    holds_what_it_held("encrypted", VERSION_2, Some(cipher));
}

fn holds_what_it_held(name: &str, text: &str, cipher: Option<Arc<dyn Cipher>>) {
    let scratch = Scratch::new(name);
    std::fs::write(&scratch.0, bytes_of(text)).unwrap();
    let report = check(&scratch.0, Repair::No, cipher.as_ref()).unwrap();
    assert_eq!((report.problems.len(), report.log_records), (0, 1), "{report:?}");
    let options = OpenOptions { medium: Medium::Pages, cipher, ..OpenOptions::default() };
    let heap = Heap::open(&scratch.0, &options).unwrap();
    let slot = heap.root();
    let (run, sized) = (heap.load_u64(slot + 8).unwrap(), heap.load_u64(slot + 16).unwrap());
    let usable = [slot, run, sized].map(|handle| heap.usable_bytes(handle));
    assert_eq!(usable, [Some(24), Some(40_000), Some(100)]);
    assert_eq!(heap.statistics().live, 3);
    for (at, expected) in [(slot, "a slot"), (run + 39_990, "a run"), (sized, "sized")] {
        let mut bytes = vec![0; expected.len()];
        heap.read(at, &mut bytes).unwrap();
        assert_eq!(bytes, expected.as_bytes());
    }
}
