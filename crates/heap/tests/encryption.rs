//! Encrypted heaps: no byte of the user's reaches the medium unencrypted, no nonce is used twice,
//! and changed bytes and bytes of another key are refused, never returned.
//!
//! `ENTRESOL_SEED` replaces the seeds.
#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

#[path = "encryption/medium.rs"]
mod medium;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use entresol_heap::backing::{Backing, Site, Unit};
use entresol_heap::{
    Access, Aes256Gcm, Cipher, CipherKey, CreateOptions, ErrorKind, Heap, Medium, NONCE_BYTES,
    OpenOptions, Repair, Result, TAG_BYTES, check, check_on,
};
use entresol_sim::Random;
use parking_lot::Mutex;

use medium::Memory;

const SECRET: &[u8; 16] = b"the user's words";

fn cipher(secret: u8) -> Arc<dyn Cipher> {
    Arc::new(Aes256Gcm::new([secret; 32]))
}

fn created(cipher: &Arc<dyn Cipher>) -> CreateOptions {
    CreateOptions {
        bytes: 256 << 10,
        limit_bytes: 8 << 20,
        log_bytes: Some(64 << 10),
        heap_id: Some(*b"0123456789abcdef"),
        cipher: Some(Arc::clone(cipher)),
        ..CreateOptions::default()
    }
}

fn opened(cipher: &Arc<dyn Cipher>) -> OpenOptions {
    OpenOptions { cipher: Some(Arc::clone(cipher)), ..OpenOptions::default() }
}

fn reading(cipher: &Arc<dyn Cipher>) -> OpenOptions {
    OpenOptions { access: Access::ReadOnly, ..opened(cipher) }
}

/// A file that goes with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let name = format!("entresol-heap-encrypted-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        drop(std::fs::remove_file(&path));
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}

/// `SECRET` over and over.
fn words(length: u64) -> Vec<u8> {
    SECRET.iter().copied().cycle().take(length as usize).collect()
}

/// Allocates blocks of many sizes, one larger than the log, full of `SECRET`; frees some again.
fn fill(heap: &Heap) -> Vec<(u64, u64)> {
    let mut blocks = Vec::new();
    for bytes in [16, 100, 5000, 20_000, 16, 200_000, 64, 300_000, 48] {
        let mut transaction = heap.begin();
        let block = transaction.allocate(bytes).unwrap();
        transaction.write(block, &words(bytes)).unwrap();
        transaction.set_root(block).unwrap();
        transaction.commit().unwrap();
        blocks.push((block, bytes));
    }
    let (gone, _) = blocks.remove(7);
    let mut transaction = heap.begin();
    transaction.free(gone).unwrap();
    transaction.commit().unwrap();
    blocks
}

fn verify(heap: &Heap, blocks: &[(u64, u64)]) {
    for (block, bytes) in blocks {
        let mut found = vec![0; *bytes as usize];
        heap.read(*block, &mut found).unwrap();
        assert_eq!(found, words(*bytes), "{bytes} bytes at {block}");
    }
}

#[test]
fn nothing_of_the_users_reaches_the_medium_in_the_clear() {
    let secret = cipher(1);
    for encrypted in [false, true] {
        let watched = Memory::watching(&SECRET[..12]);
        let backing: Arc<dyn Backing> = watched.clone();
        let options =
            CreateOptions { cipher: encrypted.then(|| Arc::clone(&secret)), ..created(&secret) };
        let open = OpenOptions { cipher: options.cipher.clone(), ..OpenOptions::default() };
        let heap = Heap::create_on(Arc::clone(&backing), &options).unwrap();
        let blocks = fill(&heap);
        heap.checkpoint().unwrap();
        heap.shrink(0).unwrap();
        heap.grow(4 << 20).unwrap();
        verify(&heap, &blocks);
        heap.close().unwrap();
        let heap = Heap::open_on(Arc::clone(&backing), &open).unwrap();
        verify(&heap, &blocks);
        let copy = Memory::watching(&SECRET[..12]);
        heap.backup_on(&(copy.clone() as Arc<dyn Backing>)).unwrap();
        // The watch works: without a cipher it sees the words.
        assert_eq!(watched.sightings() > 0, !encrypted, "{} writes", watched.sightings());
        assert_eq!(copy.sightings() > 0, !encrypted, "{} writes", copy.sightings());
    }
}

#[test]
fn a_key_that_does_not_fit_is_told_from_damage() {
    let backing: Arc<dyn Backing> = Memory::new(Unit::Page);
    let heap = Heap::create_on(Arc::clone(&backing), &created(&cipher(1))).unwrap();
    assert_eq!(heap.cipher().as_deref(), Some("aes-256-gcm"));
    let blocks = fill(&heap);
    heap.close().unwrap();
    let none = OpenOptions::default();
    for (options, sentence) in [
        (none.clone(), "give its key"),
        (opened(&cipher(2)), "another key"),
        (reading(&cipher(2)), "another key"),
    ] {
        let refused = Heap::open_on(Arc::clone(&backing), &options).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::WrongKey);
        let text = refused.to_string();
        assert!(text.contains("memory") && text.contains(sentence), "{text}");
        let cipher = options.cipher.as_ref();
        for repair in [Repair::No, Repair::Yes] {
            let refused = check_on(Arc::clone(&backing), repair, cipher).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::WrongKey);
        }
    }
    let other = Arc::new(Named("another", cipher(1))) as Arc<dyn Cipher>;
    let refused = Heap::open_on(Arc::clone(&backing), &opened(&other)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::WrongKey);
    assert!(refused.to_string().contains("aes-256-gcm"), "{refused}");
    // Nothing of that touched the heap.
    verify(&Heap::open_on(backing, &opened(&cipher(1))).unwrap(), &blocks);

    let plain: Arc<dyn Backing> = Memory::new(Unit::Page);
    let options = CreateOptions { cipher: None, ..created(&cipher(1)) };
    Heap::create_on(Arc::clone(&plain), &options).unwrap().close().unwrap();
    let refused = Heap::open_on(plain, &opened(&cipher(1))).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::WrongKey);
    assert!(refused.to_string().contains("not encrypted"), "{refused}");
}

#[test]
fn a_medium_of_stores_is_refused_and_says_why() {
    let words: Arc<dyn Backing> = Memory::new(Unit::Word);
    let scratch = Scratch::new("stores");
    let options = CreateOptions { medium: Medium::Bytes, ..created(&cipher(1)) };
    let refusals = [Heap::create_on(words, &options), Heap::create(&scratch.0, &options)];
    for refused in refusals.map(Result::unwrap_err) {
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
        assert!(refused.to_string().contains("word by word"), "{refused}");
    }
    assert!(!scratch.0.exists());
    Heap::create(&scratch.0, &created(&cipher(1))).unwrap().close().unwrap();
    let options = OpenOptions { medium: Medium::Bytes, ..opened(&cipher(1)) };
    assert_eq!(Heap::open(&scratch.0, &options).unwrap_err().kind(), ErrorKind::InvalidInput);
}

/// A heap of committed states 0 to 5, each of two words that are equal, at rest or with a log.
fn numbered(cipher: &Arc<dyn Cipher>, at_rest: bool) -> (Arc<Memory>, u64) {
    let memory = Memory::new(Unit::Page);
    let backing: Arc<dyn Backing> = memory.clone();
    let heap = Heap::create_on(Arc::clone(&backing), &created(cipher)).unwrap();
    let mut transaction = heap.begin();
    let pair = transaction.allocate(8192).unwrap();
    transaction.set_root(pair).unwrap();
    transaction.commit().unwrap();
    for number in 1..=5 {
        let mut transaction = heap.begin();
        transaction.write_u64(pair, number).unwrap();
        transaction.write_u64(pair + 8184, number).unwrap();
        transaction.commit().unwrap();
        if number == 3 {
            heap.checkpoint().unwrap();
        }
    }
    let copy = memory.copy();
    heap.close().unwrap();
    (if at_rest { memory } else { copy }, pair)
}

#[test]
fn a_flipped_bit_anywhere_is_an_error_or_harmless() {
    let secret = cipher(1);
    let mut refused = 0;
    for seed in seeds() {
        for at_rest in [true, false] {
            let (memory, pair) = numbered(&secret, at_rest);
            let mut random = Random::new(seed);
            for line in 0..memory.bytes().unwrap() / 128 {
                let at = line * 128 + random.below(128);
                let damaged = memory.copy();
                damaged.flip(at, 1 << random.below(8));
                refused += u64::from(!is_sound(&damaged, &secret, (pair, at_rest), at, seed));
            }
        }
    }
    assert!(refused > 50, "bits that matter are flipped: {refused}");
}

/// Whether the heap opens, and then holds a committed state; panics if it holds anything else.
fn is_sound(
    memory: &Arc<Memory>,
    cipher: &Arc<dyn Cipher>,
    (pair, at_rest): (u64, bool),
    at: u64,
    seed: u64,
) -> bool {
    let backing: Arc<dyn Backing> = memory.clone();
    let report = check_on(Arc::clone(&backing), Repair::No, Some(cipher));
    let heap = match Heap::open_on(Arc::clone(&backing), &reading(cipher)) {
        Ok(heap) => heap,
        Err(error) => {
            let kind = error.kind();
            let typed = matches!(kind, ErrorKind::Corrupt | ErrorKind::WrongKey);
            assert!(typed, "ENTRESOL_SEED={seed}: byte {at}: {error}");
            let found = report.map_or(true, |report| !report.problems.is_empty());
            assert!(found, "ENTRESOL_SEED={seed}: byte {at}: a check misses it: {error}");
            return false;
        }
    };
    let halves = [pair, pair + 8184].map(|at| heap.load_u64(at).unwrap());
    // A damaged last record looks like one that was never finished.
    let right = halves[0] == halves[1] && (halves[0] == 5 || !at_rest && halves[0] == 4);
    let root = heap.root();
    assert!(right && root == pair, "ENTRESOL_SEED={seed}: byte {at}: {halves:?}, root {root}");
    let again = Heap::open_on(backing, &opened(cipher));
    assert!(again.is_ok(), "ENTRESOL_SEED={seed}: byte {at}: {:?}", again.err());
    true
}

/// The salt of an opening stood in one superblock: all commits since the opening were gone with it,
/// and nobody was told, neither by opening the heap nor by a check.
#[test]
fn commits_survive_damage_to_either_superblock_of_their_opening() {
    let secret = cipher(1);
    // With a checkpoint early, late, and none.
    for checkpoint_behind in [0, 3, 9] {
        let (memory, pair) = numbered(&secret, true);
        let heap = Heap::open_on(memory.clone(), &opened(&secret)).unwrap();
        for number in 6..=9 {
            let mut transaction = heap.begin();
            transaction.write_u64(pair, number).unwrap();
            transaction.commit().unwrap();
            if number == 6 + checkpoint_behind {
                heap.checkpoint().unwrap();
            }
        }
        let killed = memory.copy();
        heap.close().unwrap();
        for superblock in [0, 4096] {
            let damaged = killed.copy();
            damaged.flip(superblock + 40, 1);
            for options in [reading(&secret), opened(&secret)] {
                let heap = Heap::open_on(damaged.clone(), &options).unwrap();
                assert_eq!(heap.load_u64(pair).unwrap(), 9, "superblock {superblock} is damaged");
                heap.close().unwrap();
            }
        }
    }
}

#[test]
fn a_page_put_in_anothers_place_is_refused() {
    let secret = cipher(1);
    let (memory, pair) = numbered(&secret, true);
    let [one, other] = [pair, pair + 8184].map(|at| at / 4096 * 4096);
    memory.swap_pages(one, other);
    let refused = Heap::open_on(memory.clone(), &opened(&secret)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Corrupt);
    assert!(refused.to_string().contains("authentication tag"), "{refused}");
    let report = check_on(memory.clone(), Repair::No, Some(&secret)).unwrap();
    assert_eq!(report.problems.len(), 2, "{report:?}");
    let kept = memory.copy();
    let refused = check_on(memory, Repair::Yes, Some(&secret)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Corrupt, "{refused}");
    assert!(Heap::open_on(kept, &opened(&secret)).is_err());
}

#[test]
fn a_superblock_changed_under_its_checksum_is_refused() {
    let secret = cipher(1);
    let (memory, _) = numbered(&secret, false);
    // Generation, size, head of the log, salt; and one that is not encrypted any more.
    for (at, value) in [(56, 9), (114, 3), (128, 1), (168, 77), (8, 1)] {
        let forged = memory.copy();
        for superblock in [0, 4096] {
            let mut page = [0; 4096];
            forged.read(superblock, &mut page).unwrap();
            // Never what was there: a salt's byte may be any.
            page[at] = if page[at] == value { !value } else { value };
            if at == 8 {
                page[136..200].fill(0);
            }
            let checksum = crc32c::crc32c(&page[..4092]);
            page[4092..].copy_from_slice(&checksum.to_le_bytes());
            forged.write(Site::Head, superblock, &page).unwrap();
        }
        let refused = Heap::open_on(forged, &opened(&secret)).unwrap_err();
        let kinds = [ErrorKind::Corrupt, ErrorKind::Incompatible, ErrorKind::WrongKey];
        assert!(kinds.contains(&refused.kind()), "byte {at}: {refused}");
    }
    assert!(Heap::open_on(memory, &opened(&secret)).is_ok());
}

#[test]
fn no_nonce_is_used_twice_by_any_opening_copy_or_backup() {
    let recorder = Arc::new(Recorder { used: Used::default(), inner: cipher(1) });
    let secret: Arc<dyn Cipher> = recorder.clone();
    let memory = Memory::new(Unit::Page);
    let backing: Arc<dyn Backing> = memory.clone();
    let heap = Heap::create_on(Arc::clone(&backing), &created(&secret)).unwrap();
    let blocks = fill(&heap);
    // As power failures leave it: two copies recover from the same log, and go on.
    for _ in 0..2 {
        let copy: Arc<dyn Backing> = memory.copy();
        check_on(Arc::clone(&copy), Repair::Yes, Some(&secret)).unwrap();
        let other = Heap::open_on(copy, &opened(&secret)).unwrap();
        verify(&other, &blocks);
        fill(&other);
    }
    heap.backup_on(&(Memory::new(Unit::Page) as Arc<dyn Backing>)).unwrap();
    heap.close().unwrap();
    let heap = Heap::open_on(backing, &opened(&secret)).unwrap();
    fill(&heap);
    heap.close().unwrap();
    assert!(recorder.used.lock().len() > 500, "{}", recorder.used.lock().len());
}

#[test]
fn a_backup_of_an_encrypted_heap_is_one_under_fresh_keys() {
    let secret = cipher(1);
    let (path, target) = (Scratch::new("backup-from"), Scratch::new("backup-to"));
    let heap = Heap::create(&path.0, &created(&secret)).unwrap();
    let blocks = fill(&heap);
    heap.backup(&target.0).unwrap();
    verify(&Heap::open(&target.0, &reading(&secret)).unwrap(), &blocks);
    let report = check(&target.0, Repair::No, Some(&secret)).unwrap();
    assert!(report.problems.is_empty() && report.live == blocks.len() as u64, "{report:?}");
    assert_eq!(check(&target.0, Repair::No, None).unwrap_err().kind(), ErrorKind::WrongKey);
    assert!(heap.check().unwrap().problems.is_empty());
    heap.close().unwrap();
    let (one, other) = (std::fs::read(&path.0).unwrap(), std::fs::read(&target.0).unwrap());
    let page = (blocks[5].0 / 4096 + 1) as usize * 4096;
    assert_ne!(one[page..page + 4096], other[page..page + 4096]);
    // Of a heap that is only read, what its log holds as well.
    let (rest, again) = (Scratch::new("backup-rest"), Scratch::new("backup-again"));
    let heap = Heap::open(&path.0, &opened(&secret)).unwrap();
    let mut transaction = heap.begin();
    transaction.write(blocks[0].0, b"in the log").unwrap();
    transaction.commit().unwrap();
    std::fs::copy(&path.0, &rest.0).unwrap();
    let reader = Heap::open(&rest.0, &reading(&secret)).unwrap();
    reader.backup(&again.0).unwrap();
    assert!(reader.check().unwrap().problems.is_empty());
    let backup = Heap::open(&again.0, &opened(&secret)).unwrap();
    let mut found = [0; 10];
    backup.read(blocks[0].0, &mut found).unwrap();
    assert_eq!(&found, b"in the log");
}

#[test]
fn pages_that_were_cut_off_come_back_as_zeros() {
    let secret = cipher(1);
    let backing: Arc<dyn Backing> = Memory::new(Unit::Page);
    let heap = Heap::create_on(Arc::clone(&backing), &created(&secret)).unwrap();
    for round in 0..3 {
        // Past the 512 pages that one page of the page table tells of.
        heap.grow(6 << 20).unwrap();
        let mut transaction = heap.begin();
        let blocks: Vec<u64> = (0..5).map(|_| transaction.allocate(1 << 20).unwrap()).collect();
        for block in &blocks {
            transaction.write(*block, &words(1 << 20)).unwrap();
        }
        transaction.commit().unwrap();
        heap.checkpoint().unwrap();
        let mut transaction = heap.begin();
        blocks.iter().for_each(|block| transaction.free(*block).unwrap());
        transaction.commit().unwrap();
        let size = heap.shrink(0).unwrap();
        assert!(size < 1 << 20, "round {round}: {size}");
        heap.grow(6 << 20).unwrap();
        let report = heap.check().unwrap();
        assert!(report.problems.is_empty() && report.live == 0, "round {round}: {report:?}");
        let copy = Heap::open_on(backing_copy(&heap), &opened(&secret)).unwrap();
        for block in blocks.iter().filter(|block| **block >= size) {
            assert_eq!(copy.load_u64(*block).unwrap(), 0, "round {round}");
        }
        heap.shrink(0).unwrap();
    }
}

/// The heap as a backup leaves it.
fn backing_copy(heap: &Heap) -> Arc<dyn Backing> {
    let copy: Arc<dyn Backing> = Memory::new(Unit::Page);
    heap.backup_on(&copy).unwrap();
    copy
}

fn seeds() -> Vec<u64> {
    match std::env::var("ENTRESOL_SEED") {
        Ok(seed) => vec![seed.parse().expect("ENTRESOL_SEED is a whole number")],
        Err(_) => vec![1],
    }
}

/// The same cipher under another name.
#[derive(Debug)]
struct Named(&'static str, Arc<dyn Cipher>);

impl Cipher for Named {
    fn name(&self) -> &str {
        self.0
    }

    fn key(&self, context: &[u8]) -> Result<Arc<dyn CipherKey>> {
        self.1.key(context)
    }
}

/// Keys' contexts and the nonces used under them.
type Used = Arc<Mutex<BTreeSet<(Vec<u8>, [u8; NONCE_BYTES])>>>;

/// A cipher that stops where a nonce is used a second time under one key.
#[derive(Debug)]
struct Recorder {
    used: Used,
    inner: Arc<dyn Cipher>,
}

struct RecorderKey {
    context: Vec<u8>,
    used: Used,
    inner: Arc<dyn CipherKey>,
}

impl Cipher for Recorder {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn key(&self, context: &[u8]) -> Result<Arc<dyn CipherKey>> {
        let (used, context) = (Arc::clone(&self.used), context.to_vec());
        let inner = self.inner.key(&context)?;
        Ok(Arc::new(RecorderKey { context, used, inner }))
    }
}

impl CipherKey for RecorderKey {
    fn encrypt(
        &self,
        nonce: &[u8; NONCE_BYTES],
        associated: &[u8],
        bytes: &mut [u8],
    ) -> [u8; TAG_BYTES] {
        let is_new = self.used.lock().insert((self.context.clone(), *nonce));
        assert!(is_new, "nonce {nonce:?} twice under one key, {} bytes", bytes.len());
        self.inner.encrypt(nonce, associated, bytes)
    }

    fn decrypt(
        &self,
        nonce: &[u8; NONCE_BYTES],
        associated: &[u8],
        tag: &[u8; TAG_BYTES],
        bytes: &mut [u8],
    ) -> bool {
        self.inner.decrypt(nonce, associated, tag, bytes)
    }
}
