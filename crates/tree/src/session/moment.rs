//! A table as of one moment, for a scan that shows batches whole or not at all.
//!
//! The changes that wait for the scan's range are copied at once, while nobody writes: the *view*.
//! Then leaves are read one after the other. A leaf whose sequence is not above that of the view
//! has none of the later changes, and the view has what the leaf lacks. A leaf that was merged
//! later may have later changes, and then the scan begins anew. A leaf is merged once in a sweep,
//! so that this is seldom where the range has few leaves.
//!
//! Writers wait while changes are copied, so a view has few of them: the scan ends where it does.

use entresol_flash::{Error, ErrorKind, Result};
use entresol_planted::planted;

use crate::sequence::Sequence;
use crate::shared::Shared;
use crate::table::{Copied, Keys, Quota, Side, Table};

/// Keys whose waiting changes make rows, most of them in a view.
const VIEW_ROWS_MAX: usize = 4096;
/// So often a scan begins anew, since a leaf was merged meanwhile.
const VIEWS_MAX: u32 = 64;

/// What a scan of one moment keeps.
#[derive(Debug)]
pub(super) struct Moment {
    /// The range that was asked for.
    low: Vec<u8>,
    high: Option<Vec<u8>>,
    view: Option<View>,
    views: u32,
}

/// The moment.
#[derive(Debug)]
struct View {
    /// All changes up to this one are seen, and no other.
    through: Sequence,
    /// As of the directory: a table that was dropped meanwhile is another one.
    created: Sequence,
    /// What waited.
    copied: Copied,
}

/// The range that a view has.
pub(super) struct Viewed {
    pub low: Vec<u8>,
    pub high: Option<Vec<u8>>,
    /// It ends before the range that was asked for.
    pub is_cut: bool,
}

impl Moment {
    pub(super) fn new(low: &[u8], high: Option<&[u8]>) -> Moment {
        Moment { low: low.to_vec(), high: high.map(<[u8]>::to_vec), view: None, views: 0 }
    }

    pub(super) fn has_view(&self) -> bool {
        self.view.is_some()
    }

    /// The scan begins anew.
    pub(super) fn forget_view(&mut self) {
        self.view = None;
    }

    /// Copies what waits for `limit` rows from that side on, as of now.
    pub(super) fn look(
        &mut self,
        shared: &Shared,
        table: &Table,
        side: Side,
        limit: usize,
    ) -> Result<Viewed> {
        self.views += 1;
        if self.views > VIEWS_MAX {
            let detail = format!(
                "leaves of a scan's range were merged meanwhile, {VIEWS_MAX} times; scan fewer \
                 rows, or try again"
            );
            return Err(Error::new(ErrorKind::Busy, detail));
        }
        let most = Quota::of_rows(limit.min(VIEW_ROWS_MAX));
        let keys = Keys { low: &self.low, high: self.high.as_deref() };
        let mut copied = Copied::default();
        // Changes of a batch are entered one by one, under this lock.
        let journal = shared.journal.lock();
        let state = table.read();
        let arena = shared.arena.read();
        let end = match side {
            Side::Low => copied.copy_range(&state.pending, &arena, keys, most),
            Side::High => copied.copy_range_back(&state.pending, &arena, keys, most),
        };
        let (through, created) = (journal.last(), state.directory.created());
        self.view = Some(View { through, created, copied });
        let (mut low, mut high) = (self.low.clone(), self.high.clone());
        let is_cut = end.is_some();
        match (side, end) {
            (_, None) => {}
            (Side::Low, end) => high = end,
            (Side::High, Some(end)) => low = end,
        }
        Ok(Viewed { low, high, is_cut })
    }

    /// Whether a leaf has no change that the view lacks.
    pub(super) fn admits(&self, leaf: Sequence) -> bool {
        let is_seen = |view: &View| leaf <= view.through || planted!("moment-of-later-leaves");
        self.view.as_ref().is_some_and(is_seen)
    }

    pub(super) fn is_of(&self, created: Sequence) -> bool {
        self.view.as_ref().is_some_and(|view| view.created == created)
    }

    /// What waited for some keys.
    pub(super) fn waiting(&self, keys: Keys<'_>) -> Copied {
        self.view.as_ref().map(|view| view.copied.between(keys)).unwrap_or_default()
    }
}
