//! Writes and syncs that fail.

use std::ops::Range;
use std::sync::Arc;

use entresol_heap::backing::{Backing, Counters, Site, Survival, Unit};
use entresol_heap::{CreateOptions, Durability, Error, ErrorKind, Heap, OpenOptions, Result};
use parking_lot::Mutex;

/// Memory whose syncs at one site fail, and lose what they should have covered: as a system does
/// that marks pages clean although it could not write them, so that the next sync succeeds.
struct Failing {
    unit: Unit,
    state: Mutex<State>,
    /// What somebody else does while the head moves.
    beside_head: Mutex<Option<Beside>>,
    counters: Counters,
}

type Beside = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct State {
    /// What reads see.
    seen: Vec<u8>,
    /// What power loss leaves.
    durable: Vec<u8>,
    /// What the next sync writes.
    dirty: Vec<Range<usize>>,
    fails: Option<Fault>,
    /// The longest that the file may become.
    room: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Sync(Site),
    /// The sync that makes a new length durable.
    Resize,
}

impl State {
    /// Ends a sync: a failed one has lost what it should have written.
    fn settle(&mut self, fails: bool) -> Result<()> {
        for range in std::mem::take(&mut self.dirty).into_iter().filter(|_| !fails) {
            let end = range.end.min(self.seen.len());
            let range = range.start.min(end)..end;
            self.durable[range.clone()].copy_from_slice(&self.seen[range]);
        }
        if fails { Err(Error::new(ErrorKind::Io, "the medium failed")) } else { Ok(()) }
    }
}

impl Failing {
    fn new(unit: Unit) -> Arc<Failing> {
        Failing::holding(unit, Vec::new())
    }

    fn holding(unit: Unit, bytes: Vec<u8>) -> Arc<Failing> {
        let state = State { seen: bytes.clone(), durable: bytes, ..State::default() };
        let (state, beside_head) = (Mutex::new(state), Mutex::new(None));
        Arc::new(Failing { unit, state, beside_head, counters: Counters::default() })
    }

    /// What survives.
    fn after_power_loss(&self) -> Arc<Failing> {
        Failing::holding(self.unit, self.state.lock().durable.clone())
    }

    fn fail(&self, fault: Option<Fault>) {
        self.state.lock().fails = fault;
    }
}

impl Backing for Failing {
    fn name(&self) -> String {
        "failing memory".to_owned()
    }

    fn unit(&self) -> Unit {
        self.unit
    }

    fn bytes(&self) -> Result<u64> {
        Ok(self.state.lock().seen.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let from = offset as usize;
        out.copy_from_slice(&self.state.lock().seen[from..from + out.len()]);
        Ok(())
    }

    fn write(&self, _: Site, offset: u64, bytes: &[u8]) -> Result<()> {
        let range = offset as usize..offset as usize + bytes.len();
        let mut state = self.state.lock();
        state.seen[range.clone()].copy_from_slice(bytes);
        state.dirty.push(range);
        Ok(())
    }

    fn zero(&self, site: Site, offset: u64, length: u64) -> Result<()> {
        self.write(site, offset, &vec![0; length as usize])
    }

    fn sync(&self, site: Site) -> Result<()> {
        let beside = if site == Site::Head { self.beside_head.lock().take() } else { None };
        if let Some(beside) = beside {
            beside();
        }
        let mut state = self.state.lock();
        let fails = state.fails == Some(Fault::Sync(site));
        state.settle(fails)
    }

    fn resize(&self, bytes: u64) -> Result<()> {
        let mut state = self.state.lock();
        if state.room.is_some_and(|room| bytes > room) {
            return Err(Error::new(ErrorKind::Full, "the file system is full"));
        }
        state.seen.resize(bytes as usize, 0);
        state.durable.resize(bytes as usize, 0);
        let fails = state.fails == Some(Fault::Resize);
        state.settle(fails)
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

fn store(heap: &Heap, value: u64) -> Result<()> {
    let mut transaction = heap.begin();
    let block = match heap.root() {
        0 => transaction.allocate(8)?,
        root => root,
    };
    transaction.write_u64(block, value)?;
    transaction.set_root(block)?;
    transaction.commit()
}

#[test]
fn a_failed_sync_poisons_until_the_heap_is_reopened() {
    for unit in [Unit::Page, Unit::Word] {
        for site in [Site::Log, Site::InPlace, Site::Head] {
            let backing = Failing::new(unit);
            let options = CreateOptions { bytes: 1 << 20, ..CreateOptions::default() };
            let heap = Heap::create_on(backing.clone(), &options).unwrap();
            store(&heap, 1).unwrap();
            backing.fail(Some(Fault::Sync(site)));
            let failed = match site {
                Site::Log => store(&heap, 2),
                _ => heap.checkpoint(),
            };
            let is_appended = unit == Unit::Page && site == Site::Log;
            let kind = if is_appended { ErrorKind::Unsettled } else { ErrorKind::Poisoned };
            assert_eq!(failed.unwrap_err().kind(), kind, "{unit:?} {site:?}");
            assert_eq!(heap.load_u64(heap.root()).unwrap(), 1 + u64::from(is_appended));
            // It works again, and proves nothing.
            backing.fail(None);
            for _ in 0..2 {
                let refused = store(&heap, 3).unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::Poisoned, "{unit:?} {site:?}");
                assert!(refused.to_string().contains("reopen"), "{refused}");
            }
            assert!(heap.load_u64(heap.root()).unwrap() <= 2, "reads go on, the rest is undone");
            assert_eq!(heap.sync().is_err(), site == Site::Log, "{unit:?} {site:?}");
            drop(heap);
            let again = backing.after_power_loss();
            let heap = Heap::open_on(again, &OpenOptions::default()).unwrap();
            assert_eq!(heap.load_u64(heap.root()).unwrap(), 1, "{unit:?} {site:?}");
            store(&heap, 4).unwrap();
        }
    }
}

#[test]
fn a_file_that_cannot_grow_leaves_the_heap_as_it_was() {
    let backing = Failing::new(Unit::Page);
    let options =
        CreateOptions { bytes: 1 << 20, limit_bytes: 4 << 20, ..CreateOptions::default() };
    let heap = Heap::create_on(backing.clone(), &options).unwrap();
    store(&heap, 1).unwrap();
    assert_eq!(heap.grow(8 << 20).unwrap_err().kind(), ErrorKind::Full);
    assert_eq!(heap.size_bytes(), 1 << 20);
    heap.grow(2 << 20).unwrap();
    assert_eq!(heap.size_bytes(), 2 << 20);
    store(&heap, 2).unwrap();
    heap.close().unwrap();
    let heap = Heap::open_on(backing, &OpenOptions::default()).unwrap();
    assert_eq!((heap.load_u64(heap.root()).unwrap(), heap.size_bytes()), (2, 2 << 20));
}

/// A checkpoint whose pages in place could not be synced was tried again by the next one, at the
/// latest by the close. What the system had marked clean looked written, the log's head moved on,
/// and commits that had been acknowledged were in neither place.
#[test]
fn what_a_failed_checkpoint_should_have_written_stays_in_the_log() {
    for unit in [Unit::Page, Unit::Word] {
        for site in [Site::DoubleWrite, Site::InPlace, Site::Head] {
            if unit == Unit::Word && site == Site::DoubleWrite {
                continue;
            }
            let backing = Failing::new(unit);
            let options = CreateOptions { bytes: 1 << 20, ..CreateOptions::default() };
            let heap = Heap::create_on(backing.clone(), &options).unwrap();
            store(&heap, 1).unwrap();
            backing.fail(Some(Fault::Sync(site)));
            assert_eq!(heap.checkpoint().unwrap_err().kind(), ErrorKind::Poisoned);
            backing.fail(None);
            assert_eq!(heap.checkpoint().unwrap_err().kind(), ErrorKind::Poisoned);
            let copied = heap.backup_on(&(Failing::new(Unit::Page) as Arc<dyn Backing>));
            assert_eq!(copied.unwrap_err().kind(), ErrorKind::Poisoned);
            assert_eq!(heap.close().unwrap_err().kind(), ErrorKind::Poisoned);
            let again = backing.after_power_loss();
            let heap = Heap::open_on(again, &OpenOptions::default()).unwrap();
            assert_ne!(heap.root(), 0, "{unit:?} {site:?}");
            assert_eq!(heap.load_u64(heap.root()).unwrap(), 1, "{unit:?} {site:?}");
        }
    }
}

/// The sync of a new length is one of the whole file: where it fails, records that were written
/// and not synced are lost, and a later sync that succeeds says nothing of them. Where the file was
/// shortened, its pages were given to others nevertheless, who found no file behind them.
#[test]
fn a_failed_sync_of_a_new_length_poisons() {
    const LARGE: u64 = 128 << 10;
    for step in ["large", "grow", "cut", "shrink"] {
        let backing = Failing::new(Unit::Page);
        let options = CreateOptions {
            bytes: 2 << 20,
            limit_bytes: 4 << 20,
            log_bytes: Some(64 << 10),
            durability: Durability::Buffered { epoch_ms: 1 << 30 },
            ..CreateOptions::default()
        };
        let heap = Heap::create_on(backing.clone(), &options).unwrap();
        let mut transaction = heap.begin();
        let large = transaction.allocate(LARGE).unwrap();
        transaction.commit().unwrap();
        let write_large = || {
            let mut transaction = heap.begin();
            transaction.write(large, &[7; LARGE as usize])?;
            transaction.commit()
        };
        if step == "cut" {
            write_large().unwrap();
        }
        store(&heap, 1).unwrap();
        backing.fail(Some(Fault::Resize));
        let failed = match step {
            "large" => write_large(),
            "grow" => heap.grow(3 << 20),
            "shrink" => heap.shrink(0).map(drop),
            _ => heap.checkpoint(),
        };
        assert_eq!(failed.unwrap_err().kind(), ErrorKind::Poisoned, "{step}");
        backing.fail(None);
        assert_eq!(store(&heap, 2).unwrap_err().kind(), ErrorKind::Poisoned, "{step}");
        let is_durable = ["cut", "shrink"].contains(&step);
        assert_eq!(heap.sync().is_err(), !is_durable, "{step}: what is durable is known");
        let mut transaction = heap.begin();
        while let Ok(block) = transaction.allocate(LARGE) {
            assert!(
                block + LARGE <= backing.bytes().unwrap(),
                "{step}: there is no file at {block}"
            );
        }
    }
}

/// A heap grows by an eighth of its size at least. Where the file system had no room for so much,
/// an allocation that would have fitted was refused.
#[test]
fn an_allocation_is_made_in_what_room_the_file_system_has() {
    let backing = Failing::new(Unit::Page);
    let options =
        CreateOptions { bytes: 16 << 20, limit_bytes: 64 << 20, ..CreateOptions::default() };
    let heap = Heap::create_on(backing.clone(), &options).unwrap();
    backing.state.lock().room = Some(17 << 20);
    let mut transaction = heap.begin();
    let full = loop {
        if let Err(error) = transaction.allocate(60_000) {
            break error;
        }
    };
    assert_eq!(full.kind(), ErrorKind::Full);
    assert!(heap.size_bytes() > (17 << 20) - (512 << 10), "{} bytes", heap.size_bytes());
}

/// The heap's thread syncs what was committed so; a heap without a thread left it to nobody.
#[test]
fn buffered_commits_are_synced_in_time_where_a_heap_has_no_thread() {
    let backing = Failing::new(Unit::Page);
    let options = CreateOptions {
        bytes: 1 << 20,
        durability: Durability::Buffered { epoch_ms: 0 },
        ..CreateOptions::default()
    };
    let heap = Heap::create_on(backing.clone(), &options).unwrap();
    store(&heap, 1).unwrap();
    let again = Heap::open_on(backing.after_power_loss(), &OpenOptions::default()).unwrap();
    assert_eq!(again.load_u64(again.root()).unwrap(), 1);
}

/// Pages were cut off that a transaction had freed beside the shrinking, before its record was
/// durable. Power loss then left the block allocated, and its bytes were gone.
#[test]
fn no_pages_are_cut_off_before_it_is_durable_that_they_are_free() {
    for unit in [Unit::Page, Unit::Word] {
        let backing = Failing::new(unit);
        let options = CreateOptions { bytes: 2 << 20, ..CreateOptions::default() };
        let heap = Heap::create_on(backing.clone(), &options).unwrap();
        store(&heap, 1).unwrap();
        let mut transaction = heap.begin();
        let block = transaction.allocate(100_000).unwrap();
        transaction.write(block, &[7; 100_000]).unwrap();
        transaction.commit().unwrap();
        let other = heap.clone();
        *backing.beside_head.lock() = Some(Box::new(move || {
            let mut transaction = other.begin();
            transaction.free(block).unwrap();
            transaction.commit_with(Durability::None).unwrap();
        }));
        assert!(heap.shrink(0).unwrap() < 2 << 20, "{unit:?}");
        assert!(backing.beside_head.lock().is_none() && !heap.is_live(block));
        let again = Heap::open_on(backing.after_power_loss(), &OpenOptions::default()).unwrap();
        if again.is_live(block) {
            let mut found = vec![0; 100_000];
            again.read(block, &mut found).unwrap();
            assert!(found.iter().all(|byte| *byte == 7), "{unit:?}");
        } else {
            assert_eq!(unit, Unit::Word, "a record that was not durable counts");
        }
    }
}
