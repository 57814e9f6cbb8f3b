//! Changes of a table that came in sorted parts, and are in no map so far.
//!
//! Parts of about one length are made one: so each change is looked at a few times only, and of the
//! changes of one key few stay that a later one took the place of.

use crate::pending::arena::Arena;
use crate::pending::gathered::Sorted;

/// A part has at least so many times as many keys as the one behind it: all parts together have
/// half as many again as the first one at most.
const LONGER: usize = 3;

/// Sorted parts, the longest first.
#[derive(Default)]
pub struct Runs {
    parts: Vec<Sorted>,
}

impl Runs {
    /// Adds a part.
    pub fn push(&mut self, arena: &mut Arena, part: Sorted) {
        self.parts.push(part);
        while let [.., before, last] = &self.parts[..]
            && before.keys() < LONGER.saturating_mul(last.keys())
        {
            self.join(arena);
        }
    }

    /// All of them as one; `None`: there are none.
    pub fn joined(mut self, arena: &mut Arena) -> Option<Sorted> {
        while self.parts.len() > 1 {
            self.join(arena);
        }
        self.parts.pop()
    }

    /// Makes one of the last two.
    fn join(&mut self, arena: &mut Arena) {
        let (last, before) = (self.parts.pop(), self.parts.pop());
        if let (Some(last), Some(before)) = (last, before) {
            self.parts.push(before.with(arena, last));
        }
    }
}
