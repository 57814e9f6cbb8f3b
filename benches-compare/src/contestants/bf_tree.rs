//! bf-tree: a tree whose leaves are cached by parts in a ring of its own, written in place.
//!
//! It has no log here, so that what is not written to its file is lost with the process; its file
//! has no page cache. What is in the ring at the end of a phase is not written: it has no call for
//! that but a snapshot of everything. So its bytes are less than the work that was done.

use bf_tree::{BfTree, Config, LeafInsertResult, LeafReadResult, ScanReturnField, StorageBackend};

use crate::contestant::{
    Blocking, Contestant, Result, Settings, VisitRow, play_blocking, play_workers,
};
use crate::plan::{KEY_BYTES, Phase};
use crate::turn::Turn;

/// Memory of the program, of the threads and of the table of pages.
const REST_BYTES: u64 = 24 << 20;
/// Bytes of the largest row.
const ROW_BYTES_MAX: usize = 4096;

struct Tree {
    tree: BfTree,
    threads: usize,
}

/// Opens bf-tree in the directory.
pub fn open(settings: &Settings) -> Result<Box<dyn Contestant>> {
    let plan = &settings.plan;
    // The ring must have a power of two.
    let ring = settings.memory_bytes.saturating_sub(REST_BYTES).max(4 << 20);
    let ring = usize::try_from(1u64 << ring.ilog2())?;
    let mut config = Config::new(settings.directory.join("rows.bftree"), ring);
    config.storage_backend(StorageBackend::StdDirect);
    config.cb_min_record_size(KEY_BYTES + plan.value_bytes.min(16));
    let tree = BfTree::with_config(config, None).map_err(|error| format!("{error:?}"))?;
    Ok(Box::new(Tree { tree, threads: plan.threads }))
}

impl Contestant for Tree {
    fn workers(&self, phase: Phase) -> usize {
        // It waits for locks and for room by spinning.
        play_workers(phase, self.threads.min(4))
    }

    fn play(&self, turns: Vec<Turn>) -> Result<Vec<Turn>> {
        play_blocking(self, turns)
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }
}

impl Blocking for Tree {
    fn get(&self, key: &[u8], visit: &mut dyn FnMut(Option<&[u8]>)) -> Result<()> {
        let mut value = [0; ROW_BYTES_MAX];
        match self.tree.read(key, &mut value) {
            LeafReadResult::Found(bytes) => visit(Some(&value[..bytes as usize])),
            _ => visit(None),
        }
        Ok(())
    }

    fn put(&self, entries: &[(&[u8], &[u8])], _phase: Phase) -> Result<()> {
        for (key, value) in entries {
            if let LeafInsertResult::InvalidKV(why) = self.tree.insert(key, value) {
                return Err(why.into());
            }
        }
        Ok(())
    }

    fn scan(&self, key: &[u8], limit: usize, visit: VisitRow<'_>) -> Result<()> {
        let fields = ScanReturnField::KeyAndValue;
        let rows = self.tree.scan_with_count(key, limit, fields);
        let mut rows = rows.map_err(|error| format!("{error:?}"))?;
        let mut row = [0; ROW_BYTES_MAX];
        while let Some((key, value)) = rows.next(&mut row) {
            visit(&row[..key], &row[key..key + value]);
        }
        Ok(())
    }

    fn remove(&self, key: &[u8]) -> Result<()> {
        self.tree.delete(key);
        Ok(())
    }
}
