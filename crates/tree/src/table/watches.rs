//! Which keys conditional writes wait to change, and the last change of each.
//!
//! A write marks its key here under the table's lock, together with the change itself. So whoever
//! watches a key and finds no mark knows that what was read of it since is still so.

use std::collections::HashMap;
use std::sync::Arc;

use entresol_planted::planted;

use super::{State, Table};
use crate::sequence::Sequence;

/// The keys of a table that are watched. A table whose keys nobody watches has nothing here.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    keys: HashMap<Box<[u8]>, Watched>,
}

#[derive(Debug, Default)]
struct Watched {
    watchers: u32,
    /// The last change since the key is watched.
    last: Sequence,
}

impl Watches {
    /// Whether no key is watched.
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// A change of `key` came.
    pub(crate) fn mark(&mut self, key: &[u8], sequence: Sequence) {
        if self.keys.is_empty() {
            return;
        }
        if let Some(watched) = self.keys.get_mut(key) {
            watched.last = watched.last.max(sequence);
        }
    }

    /// All rows are gone.
    pub(crate) fn mark_all(&mut self, sequence: Sequence) {
        for watched in self.keys.values_mut() {
            watched.last = watched.last.max(sequence);
        }
    }

    fn last(&self, key: &[u8]) -> Sequence {
        self.keys.get(key).map_or(Sequence(0), |watched| watched.last)
    }
}

/// Watches a key until it is dropped, which locks the table.
#[derive(Debug)]
pub(crate) struct Watch {
    table: Arc<Table>,
    key: Box<[u8]>,
    /// The key's last change when the watch was set anew.
    seen: Sequence,
}

impl Watch {
    /// Watches `key` from now on.
    pub(crate) fn new(table: &Arc<Table>, key: &[u8]) -> Watch {
        let mut watch = Watch { table: Arc::clone(table), key: Box::from(key), seen: Sequence(0) };
        let keys = &mut table.lock().watches.keys;
        let watched = keys.entry(watch.key.clone()).or_default();
        watched.watchers += 1;
        watch.seen = watched.last;
        watch
    }

    /// Forgets the changes that came: the key is read after this.
    pub(crate) fn renew(&mut self) {
        self.seen = self.table.lock().watches.last(&self.key);
    }

    /// Whether the key changed since the watch was set anew.
    pub(crate) fn is_marked(&self, state: &State) -> bool {
        state.watches.last(&self.key) != self.seen && !planted!("change-beside-a-condition")
    }

    pub(crate) fn table(&self) -> &Arc<Table> {
        &self.table
    }

    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let keys = &mut self.table.lock().watches.keys;
        if let Some(watched) = keys.get_mut(&self.key) {
            watched.watchers -= 1;
            if watched.watchers == 0 {
                keys.remove(&self.key);
            }
        }
    }
}
