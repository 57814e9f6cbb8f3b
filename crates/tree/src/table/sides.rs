//! Which values of rows are being written or removed.
//!
//! Whoever writes or removes a value holds its side of the row meanwhile. So nobody removes what
//! another one has just written and not entered, and nobody writes where another one removes.

use std::collections::HashMap;

use crate::format::Side;

/// The sides of a table's rows that are held.
#[derive(Debug, Default)]
pub(crate) struct Sides {
    rows: HashMap<Box<[u8]>, u8>,
}

fn bit(side: Side) -> u8 {
    1 << side as u8
}

impl Sides {
    /// Takes a side of the row, unless somebody holds it.
    pub(crate) fn take(&mut self, key: &[u8], side: Side) -> bool {
        let held = self.rows.entry(Box::from(key)).or_default();
        let is_free = *held & bit(side) == 0;
        *held |= bit(side);
        is_free
    }

    /// Gives back what `take` took.
    pub(crate) fn give_back(&mut self, key: &[u8], side: Side) {
        if let Some(held) = self.rows.get_mut(key) {
            *held &= !bit(side);
            if *held == 0 {
                self.rows.remove(key);
            }
        }
    }
}
