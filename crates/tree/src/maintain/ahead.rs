//! Pages that merges are about to ask for, read many at a time: the device answers them side by
//! side, and one call hands them over.
//!
//! Invariant: a page that was read ahead is the one that is there. Nobody but merges writes pages,
//! and between the read and its use they write none that was there before.

use std::collections::BTreeMap;

use entresol_flash::{Operation, Outcome, Result, Timestamp};
use entresol_planted::planted;
use entresol_tier::Session;

use crate::format::PAGE_KEY_BYTES;
use crate::shared::Shared;
use crate::statistics::Counters;

/// Most pages that are read ahead: so many keep a device busy, and so many the session may have in
/// flight.
pub(super) const PAGES_AHEAD_MAX: usize = 32;

/// The key of a page's record.
pub(super) type PageKey = [u8; PAGE_KEY_BYTES];

/// Pages that were read ahead.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// `None`: the record is not there.
    pages: BTreeMap<PageKey, Option<Vec<u8>>>,
}

impl Ahead {
    /// The page, if it was read ahead. It is not kept.
    pub(super) fn take(&mut self, key: &PageKey) -> Option<Option<Vec<u8>>> {
        if planted!("page-read-ahead-kept") {
            return self.pages.get(key).cloned();
        }
        self.pages.remove(key)
    }

    /// Reads the pages `wanted`, all at once, in place of those that were read before.
    pub(super) fn read(
        &mut self,
        shared: &Shared,
        session: &mut Session,
        now: Timestamp,
        mut wanted: Vec<PageKey>,
    ) -> Result<()> {
        let pages = &mut self.pages;
        // What merges did not take after all is not the same after the round.
        pages.retain(|_, _| planted!("page-read-ahead-kept"));
        wanted.retain(|key| !pages.contains_key(key));
        Counters::add(&shared.counters.merge_reads, wanted.len());
        let mut failed = None;
        let mut take = |token: u64, outcome: Result<Outcome<'_>>| {
            let page = match outcome {
                Ok(Outcome::Found(entry)) => Some(entry.value.to_vec()),
                Ok(_) => None,
                Err(error) => return failed = Some(error),
            };
            pages.insert(wanted[token as usize], page);
        };
        for (token, key) in (0..).zip(&wanted) {
            let key = shared.key(key);
            match session.may_hold(key) {
                true => session.submit(token, now, Operation::Get { key }, &mut take),
                false => take(token, Ok(Outcome::Missing)),
            }
        }
        while session.in_flight() > 0 {
            session.poll(session.in_flight(), now, &mut take)?;
        }
        failed.map_or(Ok(()), Err)
    }
}
