//! What was given to tables, and what a map makes of it.

use std::collections::BTreeMap;

use entresol_tree::Expected;

/// Rows of one table.
pub(crate) type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// A change of the model: table, key, action.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub table: usize,
    pub key: Vec<u8>,
    pub action: Owned,
}

#[derive(Debug, Clone)]
pub(crate) enum Owned {
    Put(Vec<u8>),
    Remove,
    Add(Vec<u8>),
    /// Of the whole table.
    Drop,
}

/// What a conditional batch of the model expects of a row; `None`: any value.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub table: usize,
    pub key: Vec<u8>,
    pub is_there: bool,
    pub value: Option<Vec<u8>>,
}

impl Wanted {
    pub(crate) fn expected(&self) -> Expected<'_> {
        match (self.is_there, &self.value) {
            (false, _) => Expected::Absent,
            (true, None) => Expected::Present,
            (true, Some(value)) => Expected::Value(value),
        }
    }

    pub(crate) fn is_met_by(&self, model: &[Rows; 3]) -> bool {
        let row = model[self.table].get(&self.key);
        let is_same = self.value.as_ref().is_none_or(|value| row == Some(value));
        row.is_some() == self.is_there && is_same
    }
}

/// How a batch ended: it was written, or a condition did not hold, and the row had this value.
#[derive(Debug)]
pub(crate) enum Ended {
    Done,
    Refused(usize, Option<Vec<u8>>),
}

/// Brings a batch to the model.
pub(crate) fn apply(tables: &mut [Rows; 3], batch: &[Change]) {
    for Change { table, key, action } in batch {
        let rows = &mut tables[*table];
        match action {
            Owned::Put(value) => drop(rows.insert(key.clone(), value.clone())),
            Owned::Remove => drop(rows.remove(key)),
            Owned::Drop => rows.clear(),
            Owned::Add(part) => rows.entry(key.clone()).or_default().extend_from_slice(part),
        }
    }
}
