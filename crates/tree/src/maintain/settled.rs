//! What the journal keeps once all is merged: the sequence of the last change, and nothing else.

use entresol_flash::{Durability, JournalAppend, JournalRoom, Result, Timestamp};

use crate::journal::journaled;
use crate::shared::Shared;

/// Puts a batch without changes at the end of the journal, and lets go of all before it, where all
/// changes are in durable pages. The last record of the journal stays in any case, since it tells
/// how far sequences are, and what continues it would be read again at the next opening.
pub(super) fn leave_sequence(
    shared: &Shared,
    session: &mut entresol_tier::Session,
    now: Timestamp,
) -> Result<()> {
    let mut journal = shared.journal.lock();
    if !journal.is_merged() || !journal.continues() {
        return Ok(());
    }
    journal.builder.clear();
    let (lane, bytes) = (shared.options.lane, journal.build().whole);
    let durability = Some(Durability::Memory);
    let append = JournalAppend {
        lane,
        owner: 0,
        bytes,
        durability,
        continues: None,
        room: JournalRoom::Leaving(0),
    };
    let mut place = None;
    session.submit_journal(0, now, append, &mut |_, outcome| {
        place = outcome.ok().map(journaled);
    });
    // It has no change that the next batch could go on from.
    journal.appended(None);
    while session.in_flight() > 0 {
        session.poll(1, now, &mut |_, outcome| place = outcome.ok().map(journaled))?;
    }
    // Without room for it the journal stays as it is.
    let Some(place) = place else { return Ok(()) };
    shared.store.store().trim_journal(lane, place.head)
}
