//! redb: a copy-on-write B-tree in one file with a cache of its own.
//!
//! Loading puts 256 entries a transaction, afterwards one. Commits are not durable but for every
//! 256th, because pages freed by non-durable commits come back only with a durable one. In the
//! synced phase every commit is durable.

use std::sync::atomic::{AtomicU64, Ordering};

use redb::{Database, Durability, ReadableDatabase, TableDefinition};

use crate::contestant::{Blocking, Contestant, Result, Settings, VisitRow, play_blocking};
use crate::plan::Phase;
use crate::turn::Turn;

const TABLE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("records");
const COMMITS_PER_SYNC: u64 = 256;

struct Redb {
    database: Database,
    threads: usize,
    commits: AtomicU64,
}

/// Opens redb in the directory.
pub fn open(settings: &Settings) -> Result<Box<dyn Contestant>> {
    let mut builder = Database::builder();
    builder.set_cache_size(usize::try_from(settings.plan.cache_bytes)?);
    let database = builder.create(settings.directory.join("records.redb"))?;
    let transaction = database.begin_write()?;
    transaction.open_table(TABLE)?;
    transaction.commit()?;
    let threads = settings.plan.threads;
    Ok(Box::new(Redb { database, threads, commits: AtomicU64::new(0) }))
}

impl Contestant for Redb {
    fn workers(&self, phase: Phase) -> usize {
        match phase {
            phase if phase.is_write_of_rows() => 1,
            Phase::Synced => 64,
            _ => self.threads,
        }
    }

    fn play(&self, turns: Vec<Turn>) -> Result<Vec<Turn>> {
        play_blocking(self, turns)
    }

    fn flush(&self) -> Result<()> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(Durability::Immediate)?;
        Ok(transaction.commit()?)
    }
}

impl Blocking for Redb {
    fn get(&self, key: &[u8], visit: &mut dyn FnMut(Option<&[u8]>)) -> Result<()> {
        let table = self.database.begin_read()?.open_table(TABLE)?;
        let value = table.get(key)?;
        visit(value.as_ref().map(|value| value.value()));
        Ok(())
    }

    fn put(&self, entries: &[(&[u8], &[u8])], phase: Phase) -> Result<()> {
        self.change(phase, |table| {
            for (key, value) in entries {
                table.insert(key, value)?;
            }
            Ok(())
        })
    }

    fn scan(&self, key: &[u8], limit: usize, visit: VisitRow<'_>) -> Result<()> {
        let table = self.database.begin_read()?.open_table(TABLE)?;
        for row in table.range(key..)?.take(limit) {
            let (key, value) = row?;
            visit(key.value(), value.value());
        }
        Ok(())
    }

    fn remove(&self, key: &[u8]) -> Result<()> {
        self.change(Phase::Queue, |table| {
            table.remove(key)?;
            Ok(())
        })
    }

    fn load_batch(&self) -> usize {
        256
    }
}

type Records<'t> = redb::Table<'t, &'static [u8], &'static [u8]>;

impl Redb {
    /// One transaction.
    fn change(
        &self,
        phase: Phase,
        change: impl FnOnce(&mut Records<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut transaction = self.database.begin_write()?;
        let commit = self.commits.fetch_add(1, Ordering::Relaxed) + 1;
        if phase != Phase::Synced && !commit.is_multiple_of(COMMITS_PER_SYNC) {
            transaction.set_durability(Durability::None)?;
        }
        change(&mut transaction.open_table(TABLE)?)?;
        Ok(transaction.commit()?)
    }
}
