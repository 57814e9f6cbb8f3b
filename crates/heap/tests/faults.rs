//! Writes and syncs that fail.

use std::sync::Arc;

use entresol_heap::backing::{Backing, Counters, Site, Survival, Unit};
use entresol_heap::{CreateOptions, Error, ErrorKind, Heap, OpenOptions, Result};
use parking_lot::Mutex;

/// Memory whose syncs at one site fail, and lose what they should have covered.
struct Failing {
    unit: Unit,
    bytes: Mutex<(Vec<u8>, Vec<u8>)>,
    fails: Mutex<Option<Site>>,
    counters: Counters,
}

impl Failing {
    fn new(unit: Unit) -> Arc<Failing> {
        let (bytes, fails) = (Mutex::default(), Mutex::default());
        Arc::new(Failing { unit, bytes, fails, counters: Counters::default() })
    }

    /// What survives.
    fn after_power_loss(&self) -> Arc<Failing> {
        let durable = self.bytes.lock().1.clone();
        let bytes = Mutex::new((durable.clone(), durable));
        let counters = Counters::default();
        Arc::new(Failing { unit: self.unit, bytes, fails: Mutex::default(), counters })
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
        Ok(self.bytes.lock().0.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let from = offset as usize;
        out.copy_from_slice(&self.bytes.lock().0[from..from + out.len()]);
        Ok(())
    }

    fn write(&self, _: Site, offset: u64, bytes: &[u8]) -> Result<()> {
        let from = offset as usize;
        self.bytes.lock().0[from..from + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn zero(&self, site: Site, offset: u64, length: u64) -> Result<()> {
        self.write(site, offset, &vec![0; length as usize])
    }

    fn sync(&self, site: Site) -> Result<()> {
        if *self.fails.lock() == Some(site) {
            return Err(Error::new(ErrorKind::Io, "the medium failed"));
        }
        let mut bytes = self.bytes.lock();
        bytes.1 = bytes.0.clone();
        Ok(())
    }

    fn resize(&self, bytes: u64) -> Result<()> {
        let mut both = self.bytes.lock();
        both.0.resize(bytes as usize, 0);
        both.1.resize(bytes as usize, 0);
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
            *backing.fails.lock() = Some(site);
            let failed = match site {
                Site::Log => store(&heap, 2),
                _ => heap.checkpoint(),
            };
            assert_eq!(failed.unwrap_err().kind(), ErrorKind::Poisoned, "{unit:?} {site:?}");
            // It works again, and proves nothing.
            *backing.fails.lock() = None;
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
