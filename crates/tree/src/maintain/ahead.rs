//! Pages that merges are about to ask for, read ahead of them: the device answers many side by
//! side, one call hands many over, and merges go on meanwhile.
//!
//! Invariant: a page that was read ahead is the one that is there. Nobody but merges writes pages,
//! and within a round they write none that was there before.

use std::collections::BTreeMap;
use std::sync::Arc;

use entresol_flash::{Error, Operation, Outcome, Result, Timestamp};
use entresol_planted::planted;
use entresol_tier::{Session, SessionOptions, Tiered};

use crate::format::PAGE_KEY_BYTES;
use crate::shared::{PageRead, Shared};
use crate::statistics::Counters;

/// Most pages that are read ahead, in flight or at hand: so many keep a device busy.
const PAGES_MAX: usize = 48;
/// A leaf fits, with what stands around it in its record and in the blocks of the device.
const READ_BUFFER_BYTES: usize = 12 << 10;
/// Most bytes of changes that are copied for leaves whose pages are read ahead. With the pages they
/// take less than the store need not be told of.
const COPIED_BYTES_MAX: usize = 256 << 10;

/// The key of a page's record.
pub(super) type PageKey = [u8; PAGE_KEY_BYTES];

/// Reads ahead.
pub(super) struct Ahead {
    /// It does nothing else: whoever writes meanwhile has another one.
    session: Session,
    pages: Pages,
    token: u64,
    /// Bytes of changes that were copied for the pages.
    copied_bytes: usize,
}

#[derive(Debug, Default)]
struct Pages {
    /// In flight, by their tokens.
    asked: BTreeMap<u64, PageKey>,
    /// At hand. `None`: the record is not there.
    found: BTreeMap<PageKey, Option<PageRead>>,
    failed: Option<Error>,
}

impl Pages {
    fn arrive(&mut self, token: u64, outcome: Result<Outcome<'_>>) {
        let key = self.asked.remove(&token).expect("a page that was asked for");
        let page = match outcome {
            Ok(Outcome::Found(entry)) => Some(PageRead::of(&entry)),
            Ok(_) => None,
            Err(error) => return self.failed = Some(error),
        };
        self.found.insert(key, page);
    }
}

impl Ahead {
    pub(super) fn new(store: &Arc<Tiered>) -> Result<Ahead> {
        let (depth, read_buffer_bytes) = (PAGES_MAX, READ_BUFFER_BYTES);
        let options = SessionOptions { depth, read_buffer_bytes, ..SessionOptions::default() };
        let session = store.session(options)?;
        Ok(Ahead { session, pages: Pages::default(), token: 0, copied_bytes: 0 })
    }

    /// Whether pages may be asked for.
    pub(super) fn has_room(&self) -> bool {
        self.pages_held() < PAGES_MAX && self.copied_bytes < COPIED_BYTES_MAX
    }

    /// Whether it is worth a call to the device to ask for more.
    pub(super) fn is_low(&self) -> bool {
        self.pages_held() <= PAGES_MAX * 2 / 3
    }

    fn pages_held(&self) -> usize {
        self.pages.asked.len() + self.pages.found.len()
    }

    /// So many bytes of changes were copied beside pages.
    pub(super) fn hold_copied(&mut self, bytes: usize) {
        self.copied_bytes += bytes;
    }

    /// So many of them are no longer kept.
    pub(super) fn release_copied(&mut self, bytes: usize) {
        self.copied_bytes -= bytes;
    }

    /// Asks for a page. The device gets to know of it by [`Ahead::hand_over`].
    pub(super) fn ask(&mut self, shared: &Shared, now: Timestamp, page: PageKey) {
        let Ahead { session, pages, token, .. } = self;
        if planted!("page-read-ahead-kept") && pages.found.contains_key(&page) {
            return;
        }
        Counters::add(&shared.counters.merge_reads, 1);
        let key = shared.key(&page);
        if !session.may_hold(key) {
            pages.found.insert(page, None);
            return;
        }
        *token += 1;
        pages.asked.insert(*token, page);
        let operation = Operation::Get { key };
        session.submit(*token, now, operation, &mut |token, found| pages.arrive(token, found));
    }

    /// Hands over what was asked for.
    pub(super) fn hand_over(&mut self) -> Result<()> {
        self.session.flush()
    }

    /// The page, once it is there. `None`: nobody asked for it. It is not kept.
    pub(super) fn take(
        &mut self,
        now: Timestamp,
        key: &PageKey,
    ) -> Result<Option<Option<PageRead>>> {
        let Ahead { session, pages, .. } = self;
        loop {
            if planted!("page-read-ahead-kept") && pages.found.contains_key(key) {
                let kept = pages.found.get(key).and_then(Option::as_ref);
                let copy = kept.map(|page| PageRead { bytes: page.bytes.clone(), found: None });
                return Ok(Some(copy));
            }
            if let Some(page) = pages.found.remove(key) {
                return Ok(Some(page));
            }
            if let Some(error) = pages.failed.take() {
                return Err(error);
            }
            if !pages.asked.values().any(|asked| asked == key) {
                return Ok(None);
            }
            // A batch of pages costs one trip to the kernel; one alone costs the same.
            let wait = (session.in_flight() / 4).max(1);
            session.poll(wait, now, &mut |token, found| pages.arrive(token, found))?;
        }
    }

    /// Forgets what nobody took: it is not the same after the round.
    pub(super) fn clear(&mut self, now: Timestamp) -> Result<()> {
        let Ahead { session, pages, .. } = self;
        while session.in_flight() > 0 {
            let wait = session.in_flight();
            session.poll(wait, now, &mut |token, found| pages.arrive(token, found))?;
        }
        pages.found.retain(|_, _| planted!("page-read-ahead-kept"));
        (pages.failed, self.copied_bytes) = (None, 0);
        Ok(())
    }
}
