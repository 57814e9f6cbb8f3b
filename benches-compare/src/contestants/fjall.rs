//! fjall: an LSM tree with values of 512 bytes and more in files of their own.
//!
//! No compression (the values have none to give); its journal is not synced but in the synced
//! phase, where every put waits for one. Reads go through the page cache besides its own.

use fjall::{
    CompressionType, Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions, PersistMode,
};

use crate::contestant::{
    Blocking, Contestant, Result, Settings, VisitRow, play_blocking, play_workers,
};
use crate::plan::Phase;
use crate::turn::Turn;

struct Fjall {
    database: Database,
    records: Keyspace,
    threads: usize,
}

/// Opens fjall in the directory.
pub fn open(settings: &Settings) -> Result<Box<dyn Contestant>> {
    let (memory, plan) = (settings.memory_bytes, &settings.plan);
    // Of rows in order as RocksDB.
    let (memtable, cache) = match plan.course.is_ordered() {
        false => (memory / 20, plan.cache_bytes),
        true => (plan.waiting_bytes / 3, plan.cache_bytes + (8 << 20)),
    };
    let database = Database::builder(settings.directory.join("fjall"))
        .cache_size(cache)
        .max_journaling_size((memory / 2).max(64 << 20))
        .worker_threads(2)
        .open()?;
    let options = || {
        let separation = KvSeparationOptions::default()
            .separation_threshold(512)
            .compression(CompressionType::None);
        KeyspaceCreateOptions::default()
            .max_memtable_size(memtable)
            .with_kv_separation(Some(separation))
    };
    let records = database.keyspace("records", options)?;
    Ok(Box::new(Fjall { database, records, threads: settings.plan.threads }))
}

impl Contestant for Fjall {
    fn workers(&self, phase: Phase) -> usize {
        play_workers(phase, self.threads)
    }

    fn play(&self, turns: Vec<Turn>) -> Result<Vec<Turn>> {
        play_blocking(self, turns)
    }

    fn flush(&self) -> Result<()> {
        self.records.rotate_memtable_and_wait()?;
        Ok(self.database.persist(PersistMode::SyncAll)?)
    }

    fn quiesce(&self) -> Result<()> {
        for _ in 0..100 {
            std::thread::sleep(std::time::Duration::from_millis(100));
            if self.database.active_compactions() == 0 && self.database.outstanding_flushes() == 0 {
                break;
            }
        }
        Ok(())
    }
}

impl Blocking for Fjall {
    fn get(&self, key: &[u8], visit: &mut dyn FnMut(Option<&[u8]>)) -> Result<()> {
        visit(self.records.get(key)?.as_deref());
        Ok(())
    }

    fn put(&self, entries: &[(&[u8], &[u8])], phase: Phase) -> Result<()> {
        for (key, value) in entries {
            self.records.insert(*key, *value)?;
        }
        if phase == Phase::Synced {
            self.database.persist(PersistMode::SyncData)?;
        }
        Ok(())
    }

    fn scan(&self, key: &[u8], limit: usize, visit: VisitRow<'_>) -> Result<()> {
        for row in self.records.range(key..).take(limit) {
            let (key, value) = row.into_inner()?;
            visit(&key, &value);
        }
        Ok(())
    }

    fn remove(&self, key: &[u8]) -> Result<()> {
        Ok(self.records.remove(key)?)
    }
}
