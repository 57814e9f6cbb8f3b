//! LMDB through heed: a B+tree in a memory map. Its cache is the page cache, so it gets all that
//! the memory cap leaves, more than the others' caches.
//!
//! No sync per commit and no read-ahead (random reads); 256 puts a transaction while loading, one a
//! transaction afterwards. In the synced phase every commit syncs.

use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};

use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions, FlagSetMode, WithoutTls};

use crate::contestant::{Blocking, Contestant, Result, Settings, VisitRow, play_blocking};
use crate::plan::Phase;
use crate::turn::Turn;

struct Lmdb {
    env: Env<WithoutTls>,
    table: Database<Bytes, Bytes>,
    threads: usize,
    syncing: AtomicBool,
}

/// Opens LMDB in the directory.
pub fn open(settings: &Settings) -> Result<Box<dyn Contestant>> {
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    let map_bytes = (settings.plan.data_bytes() * 4).next_multiple_of(1 << 20);
    options.map_size(usize::try_from(map_bytes)?).max_readers(256);
    // SAFETY: no other environment is open on these files, they lie on a local file system, and
    // NO_SYNC only gives up durability.
    let env = unsafe {
        options.flags(EnvFlags::NO_SYNC | EnvFlags::NO_READ_AHEAD);
        options.open(&settings.directory)?
    };
    let mut transaction = env.write_txn()?;
    let table = env.create_database(&mut transaction, None)?;
    transaction.commit()?;
    let syncing = AtomicBool::new(false);
    Ok(Box::new(Lmdb { env, table, threads: settings.plan.threads, syncing }))
}

impl Contestant for Lmdb {
    fn workers(&self, phase: Phase) -> usize {
        match phase {
            // There is one writer at a time; more would only wait for its lock.
            phase if phase.is_write_of_rows() => 1,
            Phase::Synced => 64,
            _ => self.threads,
        }
    }

    fn play(&self, turns: Vec<Turn>) -> Result<Vec<Turn>> {
        let synced = turns.first().is_some_and(|turn| turn.phase() == Phase::Synced);
        if self.syncing.swap(synced, Ordering::Relaxed) != synced {
            self.flush()?;
            let mode = if synced { FlagSetMode::Disable } else { FlagSetMode::Enable };
            // SAFETY: no other thread uses the environment between two phases.
            unsafe { self.env.set_flags(EnvFlags::NO_SYNC, mode)? };
        }
        play_blocking(self, turns)
    }

    fn flush(&self) -> Result<()> {
        Ok(self.env.force_sync()?)
    }
}

impl Blocking for Lmdb {
    fn get(&self, key: &[u8], visit: &mut dyn FnMut(Option<&[u8]>)) -> Result<()> {
        let transaction = self.env.read_txn()?;
        visit(self.table.get(&transaction, key)?);
        Ok(())
    }

    fn put(&self, entries: &[(&[u8], &[u8])], _phase: Phase) -> Result<()> {
        let mut transaction = self.env.write_txn()?;
        for (key, value) in entries {
            self.table.put(&mut transaction, key, value)?;
        }
        Ok(transaction.commit()?)
    }

    fn scan(&self, key: &[u8], limit: usize, visit: VisitRow<'_>) -> Result<()> {
        let transaction = self.env.read_txn()?;
        let from = (Bound::Included(key), Bound::Unbounded);
        for row in self.table.range(&transaction, &from)?.take(limit) {
            let (key, value) = row?;
            visit(key, value);
        }
        Ok(())
    }

    fn remove(&self, key: &[u8]) -> Result<()> {
        let mut transaction = self.env.write_txn()?;
        self.table.delete(&mut transaction, key)?;
        Ok(transaction.commit()?)
    }

    fn load_batch(&self) -> usize {
        256
    }
}
