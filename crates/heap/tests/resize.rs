//! Heaps that grow and shrink, stopped at every write, with either superblock damaged besides.
#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

use std::sync::Arc;

use entresol_heap::backing::{Backing, Counters, Site, Survival, Unit};
use entresol_heap::{Aes256Gcm, Cipher, CreateOptions, Heap, OpenOptions, Result};
use parking_lot::Mutex;

const SUPERBLOCKS: [usize; 2] = [0, 4096];
/// In front of what a superblock says.
const TORN_BYTES: usize = 64;

/// What stood on the medium at some moment.
#[derive(Clone)]
struct Moment {
    bytes: Vec<u8>,
    /// The last number that was committed.
    committed: u64,
    /// The superblock that is not whole, if one is not.
    torn: Option<usize>,
    what: String,
}

/// Memory that keeps what it held after every write.
struct Film {
    unit: Unit,
    bytes: Mutex<Vec<u8>>,
    /// `None`: nothing is kept.
    moments: Mutex<Option<Vec<Moment>>>,
    committed: Mutex<u64>,
    counters: Counters,
}

impl Film {
    fn of(unit: Unit, bytes: Vec<u8>) -> Arc<Film> {
        Arc::new(Film {
            unit,
            bytes: Mutex::new(bytes),
            moments: Mutex::new(None),
            committed: Mutex::new(0),
            counters: Counters::default(),
        })
    }

    fn keep(&self, bytes: &[u8], torn: Option<usize>, what: String) {
        if let Some(moments) = &mut *self.moments.lock() {
            let committed = *self.committed.lock();
            moments.push(Moment { bytes: bytes.to_vec(), committed, torn, what });
        }
    }
}

impl Backing for Film {
    fn name(&self) -> String {
        "memory".to_owned()
    }

    fn unit(&self) -> Unit {
        self.unit
    }

    fn bytes(&self) -> Result<u64> {
        Ok(self.bytes.lock().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let from = offset as usize;
        out.copy_from_slice(&self.bytes.lock()[from..from + out.len()]);
        Ok(())
    }

    fn write(&self, site: Site, offset: u64, new: &[u8]) -> Result<()> {
        let (mut bytes, from) = (self.bytes.lock(), offset as usize);
        let what = format!("{site:?} at {offset}");
        if SUPERBLOCKS.contains(&from) {
            bytes[from..from + TORN_BYTES].copy_from_slice(&new[..TORN_BYTES]);
            self.keep(&bytes, Some(from), format!("half of {what}"));
        }
        bytes[from..from + new.len()].copy_from_slice(new);
        // On words they are of a line each: one of so many is kept.
        let is_small = self.unit == Unit::Word && matches!(site, Site::InPlace | Site::Extent);
        if !is_small || from.is_multiple_of(1 << 16) {
            self.keep(&bytes, None, what);
        }
        Ok(())
    }

    fn zero(&self, site: Site, offset: u64, length: u64) -> Result<()> {
        self.write(site, offset, &vec![0; length as usize])
    }

    fn sync(&self, _: Site) -> Result<()> {
        Ok(())
    }

    fn resize(&self, length: u64) -> Result<()> {
        let mut bytes = self.bytes.lock();
        bytes.resize(length as usize, 0);
        self.keep(&bytes, None, format!("a length of {length}"));
        Ok(())
    }

    fn make_room(&self, _: u64, _: u64) -> Result<()> {
        Ok(())
    }

    fn survival(&self) -> Survival {
        Survival::Unknown
    }

    fn release(&self) {}

    fn counters(&self) -> &Counters {
        &self.counters
    }
}

/// Gives the root the next number, and instead of the block that it names another one of so many
/// bytes, filled with that number; 0: none.
fn commit(heap: &Heap, film: &Film, bytes: u64) {
    let number = *film.committed.lock() + 1;
    let mut transaction = heap.begin();
    let root = match heap.root() {
        0 => transaction.allocate(24).unwrap(),
        root => root,
    };
    let former = if heap.root() == 0 { 0 } else { heap.load_u64(root + 8).unwrap() };
    if former != 0 {
        transaction.free(former).unwrap();
    }
    let block = if bytes == 0 { 0 } else { transaction.allocate(bytes).unwrap() };
    if block != 0 {
        transaction.write(block, &vec![number as u8; bytes as usize]).unwrap();
    }
    for (word, value) in [number, block, bytes].into_iter().enumerate() {
        transaction.write_u64(root + 8 * word as u64, value).unwrap();
    }
    transaction.set_root(root).unwrap();
    transaction.commit().unwrap();
    *film.committed.lock() = number;
}

/// What happens to a heap that grows, by itself and when it is told to, and shrinks.
fn film(unit: Unit, cipher: Option<&Arc<dyn Cipher>>) -> Vec<Moment> {
    let film = Film::of(unit, Vec::new());
    let options = CreateOptions {
        bytes: 256 << 10,
        limit_bytes: 4 << 20,
        log_bytes: Some(64 << 10),
        cipher: cipher.cloned(),
        ..CreateOptions::default()
    };
    let heap = Heap::create_on(film.clone(), &options).unwrap();
    commit(&heap, &film, 0);
    *film.moments.lock() = Some(Vec::new());
    heap.grow(heap.size_bytes() + 4096).unwrap();
    heap.grow(512 << 10).unwrap();
    for bytes in [300 << 10, 20, 700 << 10, 0] {
        commit(&heap, &film, bytes);
    }
    heap.shrink(0).unwrap();
    commit(&heap, &film, 30);
    heap.grow(1 << 20).unwrap();
    commit(&heap, &film, 900 << 10);
    heap.checkpoint().unwrap();
    commit(&heap, &film, 40);
    heap.shrink(0).unwrap();
    film.moments.lock().take().unwrap()
}

/// Demands that all that was committed is there; what stood on the medium once it was opened.
fn holds(unit: Unit, moment: &Moment, cipher: Option<&Arc<dyn Cipher>>) -> Moment {
    let what = &moment.what;
    let options = OpenOptions { cipher: cipher.cloned(), ..OpenOptions::default() };
    let film = Film::of(unit, moment.bytes.clone());
    let heap = Heap::open_on(film.clone(), &options);
    let opened = Moment { bytes: film.bytes.lock().clone(), torn: None, ..moment.clone() };
    let heap = heap.unwrap_or_else(|error| panic!("{what}: {error}"));
    let root = heap.root();
    let [number, block, bytes] = [0, 8, 16].map(|at| heap.load_u64(root + at).unwrap());
    let committed = moment.committed;
    assert!([committed, committed + 1].contains(&number), "{what}: {number}, not {committed}");
    let mut found = vec![0; bytes as usize];
    if block != 0 {
        heap.read(block, &mut found).unwrap();
    }
    assert!(found.iter().all(|byte| *byte == number as u8), "{what}: number {number}");
    assert_eq!(heap.statistics().live, 1 + u64::from(block != 0), "{what}");
    assert_eq!(heap.check().unwrap().problems, Vec::<String>::new(), "{what}");
    opened
}

/// With the newer superblock of an encrypted heap, all that was committed since it grew was gone;
/// with that of one that had shrunk, the file seemed to be cut short, and the heap was refused.
#[test]
fn nothing_committed_is_lost_with_a_superblock_while_a_heap_changes_its_size() {
    let cipher: Arc<dyn Cipher> = Arc::new(Aes256Gcm::new([7; 32]));
    for (unit, cipher) in [(Unit::Page, None), (Unit::Word, None), (Unit::Page, Some(&cipher))] {
        let moments = film(unit, cipher);
        assert!(moments.iter().filter(|moment| moment.torn.is_some()).count() > 8);
        for moment in moments {
            let opened = holds(unit, &moment, cipher);
            for (when, moment) in [("", moment), (", opened", opened)] {
                for place in SUPERBLOCKS.into_iter().filter(|_| moment.torn.is_none()) {
                    let mut damaged = moment.clone();
                    damaged.bytes[place + 48] ^= 0xee;
                    let encrypted = cipher.is_some();
                    damaged.what += &format!(
                        "{when}, superblock at {place} damaged, {unit:?}, encrypted: {encrypted}"
                    );
                    holds(unit, &damaged, cipher);
                }
            }
        }
    }
}

/// Room of the log that one superblock still called its own was used again, and what stood there
/// was missing once the other one was damaged. A repair then began the generation that the damaged
/// one had begun, and met its records as damage.
#[test]
fn nothing_committed_is_lost_with_a_superblock_after_a_recovery_that_freed_room_of_the_log() {
    let film = Film::of(Unit::Page, Vec::new());
    let options =
        CreateOptions { bytes: 1 << 20, log_bytes: Some(64 << 10), ..CreateOptions::default() };
    let heap = Heap::create_on(film.clone(), &options).unwrap();
    (0..7).for_each(|_| commit(&heap, &film, 8));
    *film.moments.lock() = Some(Vec::new());
    commit(&heap, &film, 14_000);
    let moments = film.moments.lock().take().unwrap();
    let before_checkpoint = moments.iter().rev().find(|m| m.what.starts_with("Log")).unwrap();
    let film = Film::of(Unit::Page, before_checkpoint.bytes.clone());
    *film.committed.lock() = 8;
    let heap = Heap::open_on(film.clone(), &OpenOptions::default()).unwrap();
    for number in 9..=20 {
        commit(&heap, &film, 8);
        for place in SUPERBLOCKS {
            let mut bytes = film.bytes.lock().clone();
            bytes[place + 200] ^= 0xff;
            let what = format!("superblock at {place} damaged after {number}");
            let moment = Moment { bytes, committed: number, torn: None, what };
            let opened = holds(Unit::Page, &moment, None);
            holds(Unit::Page, &opened, None);
        }
    }
}
