//! A write with memory of its own.

use std::sync::Arc;

use super::{Action, Write};
use crate::table::Table;

/// A write of a batch that waits.
pub(super) struct OwnedWrite {
    pub table: Arc<Table>,
    pub key: Vec<u8>,
    action: Action<'static>,
    pub value: Vec<u8>,
}

impl OwnedWrite {
    pub(super) fn new(write: &Write<'_>) -> OwnedWrite {
        let (action, value) = match write.action {
            Action::Put(value) => (Action::Put(&[]), value),
            Action::Add(value) => (Action::Add(&[]), value),
            Action::Remove => (Action::Remove, &[][..]),
        };
        let (table, key) = (Arc::clone(write.table), write.key.to_vec());
        OwnedWrite { table, key, action, value: value.to_vec() }
    }

    pub(super) fn borrow(&self) -> Write<'_> {
        let action = match self.action {
            Action::Put(_) => Action::Put(&self.value),
            Action::Add(_) => Action::Add(&self.value),
            Action::Remove => Action::Remove,
        };
        Write { table: &self.table, key: &self.key, action }
    }
}
