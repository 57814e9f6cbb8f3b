//! All ordered tables of a store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use entresol_flash::{Budget, Error, ErrorKind, OpenMode, Result, Timestamp};
use entresol_tier::{SessionOptions, Tiered};
use parking_lot::{Mutex, RwLock};

use crate::maintain::{Maintainer, Progress};
use crate::memory::{Memory, check_reservable, has_room};
use crate::options::TreeOptions;
use crate::orphans::remove_orphans;
use crate::recovery::recover;
use crate::session::Session;
use crate::shared::{Dropped, Shared, SharedMerge};
use crate::statistics::{Counters, TreeStatistics};
use crate::table::{Table, TableFigures};
use crate::values::Values;

/// The ordered tables of a store.
pub struct Tree {
    pub(crate) shared: Arc<Shared>,
    maintainer: Mutex<Maintainer>,
}

impl std::fmt::Debug for Tree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tree").field("options", &self.shared.options).finish_non_exhaustive()
    }
}

impl Tree {
    /// Opens the ordered tables of `store`, and reads what its journal has of them.
    ///
    /// Tables of a store that is open for reads alone are as they were when it was opened, and
    /// nothing is merged.
    ///
    /// A store opened by [`Tiered::open_reserving`] with [`TreeOptions::memory_bytes_max`] has one
    /// cap for all: its cache does without what tables take. Else tables come on top of its cap.
    ///
    /// Errors: `Corrupt`, if the journal is damaged; `InvalidInput`, if the store has no journal,
    /// or may reserve less than tables may take.
    pub fn open(store: Arc<Tiered>, options: TreeOptions, now: Timestamp) -> Result<Tree> {
        let state = store.store().journal_state(options.lane)?;
        if state.segments_max == 0 && !is_read_only(&store) {
            let detail = "the store has no journal; ordered tables need `journal_bytes` above 0";
            return Err(Error::new(ErrorKind::InvalidInput, detail));
        }
        check_reservable(&store, &options)?;
        let (mut recovered, journal, arena) = recover(&store, &options, now)?;
        let maintainer = Maintainer::new(&store, recovered.is_exact)?;
        let counters = Counters::default();
        let memory = Memory::default();
        memory.set_recovered(recovered.memory_bytes());
        memory.tell(&store, arena.bytes_taken());
        let position = recovered.values.position.clone();
        let values = Values::found(recovered.values.confirmed, position.clone());
        recovered.values.take_dropped().into_iter().for_each(|row| values.push_replaced(row));
        let dropped = recovered.all_dropped().into_iter();
        let dropped = dropped.map(|(id, (sequence, created))| (id, Dropped { sequence, created }));
        let dropped = dropped.collect();
        let shared = Shared {
            store,
            options,
            journal: Mutex::new(journal),
            arena: RwLock::new(arena),
            tables: Mutex::default(),
            recovered: Mutex::new(recovered),
            dropped: Mutex::new(dropped),
            emptied: Mutex::default(),
            merges: RwLock::default(),
            has_merges: AtomicBool::new(false),
            memory,
            joining: Mutex::default(),
            counters,
            values: Arc::new(values),
            held_back: Mutex::default(),
        };
        let shared = Arc::new(shared);
        if let Some(position) = position.filter(|_| !is_read_only(&shared.store)) {
            let mut session = shared.store.session(SessionOptions::default())?;
            remove_orphans(&shared, &mut session, &position, now)?;
        }
        Ok(Tree { shared, maintainer: Mutex::new(maintainer) })
    }

    /// A session for the calling thread.
    pub fn session(&self, options: SessionOptions) -> Result<Session> {
        Session::new(&self.shared, options)
    }

    /// Gives the table `name` its merge function. Its parts are folded from now on.
    pub fn set_merge(&self, name: &[u8], merge: SharedMerge) {
        self.shared.merges.write().insert(Box::from(name), merge);
        self.shared.has_merges.store(true, Ordering::Release);
    }

    /// Merges changes that wait into pages, as far as memory or the journal ask for it. Never waits
    /// for a sync; call it again and again.
    pub fn maintain(&self, now: Timestamp, budget: Budget) -> Result<Progress> {
        let done = self.shared.store.maintain(now, budget)?;
        let merged = self.maintain_tables(now)?;
        Ok(Progress {
            did_work: merged.did_work || done.more,
            awaits_device: merged.awaits_device || done.awaits_device,
        })
    }

    /// As [`Tree::maintain`], for whoever maintains the store below: it is left alone.
    pub fn maintain_tables(&self, now: Timestamp) -> Result<Progress> {
        if is_read_only(&self.shared.store) {
            return Ok(Progress::default());
        }
        self.maintainer.lock().step(&self.shared, now)
    }

    /// Whether memory has room for a change.
    pub fn has_room(&self) -> bool {
        has_room(&self.shared.arena.read(), &self.shared.options)
    }

    /// Why the last sweep of merges let a leaf keep its changes, if it did: such changes fill
    /// memory and journal. Maintenance has told it once.
    pub fn held_back(&self) -> Option<String> {
        self.shared.held_back.lock().clone()
    }

    /// Merges all changes and writes all inner nodes, so that the next opening finds all that is
    /// known now. Changes that come meanwhile are not lost, but not merged.
    pub fn settle(&self, now: Timestamp) -> Result<()> {
        if is_read_only(&self.shared.store) {
            return Ok(());
        }
        self.maintainer.lock().settle(&self.shared, now)
    }

    /// Figures of each table in memory, in the order of their names. A table that left memory
    /// begins anew when somebody asks for it again.
    pub fn table_figures(&self) -> Vec<TableFigures> {
        // No table is locked under the lock of their list.
        let open: Vec<Arc<Table>> = self.shared.tables.lock().open.values().cloned().collect();
        let mut figures: Vec<_> = open.iter().map(|table| table.figures()).collect();
        figures.sort_by(|one, other| one.name.cmp(&other.name));
        figures
    }

    /// Figures since the tables were opened.
    pub fn statistics(&self) -> TreeStatistics {
        let counters = &self.shared.counters;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (waiting_bytes, arena_bytes) = {
            let arena = self.shared.arena.read();
            (arena.bytes_in_use(), arena.bytes_taken())
        };
        let (memory, (gets, get_reads)) = (&self.shared.memory, counters.all_reads());
        TreeStatistics {
            waiting_bytes,
            arena_bytes,
            gets,
            get_reads,
            merge_reads: read(&counters.merge_reads),
            delta_writes: read(&counters.delta_writes),
            leaf_writes: read(&counters.leaf_writes),
            node_writes: read(&counters.node_writes),
            page_bytes: read(&counters.page_bytes),
            journal_bytes: read(&counters.journal_bytes),
            changes: read(&counters.changes),
            change_bytes: read(&counters.change_bytes),
            pages_cleared: read(&counters.pages_cleared),
            tables_departed: read(&counters.tables_departed),
            nodes_departed: read(&counters.nodes_departed),
            values_put: read(&counters.values_put),
            values_moved: read(&counters.values_moved),
            values_removed: read(&counters.values_removed),
            directory_bytes: memory.directory_bytes(),
            recovered_bytes: memory.recovered_bytes(),
            open_tables: memory.tables(),
            leaves_absorbed: read(&counters.leaves_absorbed),
            nodes_absorbed: read(&counters.nodes_absorbed),
        }
    }
}

fn is_read_only(store: &Tiered) -> bool {
    store.store().options().mode == OpenMode::ReadOnly
}
