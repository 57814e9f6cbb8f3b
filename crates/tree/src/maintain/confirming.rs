//! Confirmation of values: once a sync has made batches and their values durable, the values that
//! they replaced are removed, and a record says up to which change an opening need not look.

use entresol_flash::{LogPosition, Result, SyncPoint, Timestamp};
use entresol_planted::planted;

use crate::shared::Shared;
use crate::values::{Confirmation, confirmed_key, encode_confirmed};

/// The confirmation that is under way.
#[derive(Default)]
pub(super) struct Confirming {
    waiting: Option<(SyncPoint, Confirmation)>,
    /// What the last confirmation found. It may be written once the removals of that one are
    /// durable, too.
    position: Option<LogPosition>,
}

impl Confirming {
    /// Goes on, if old values wait and what is waited for is durable. Whether it did anything.
    pub(super) fn step(
        &mut self,
        shared: &Shared,
        session: &mut entresol_tier::Session,
        now: Timestamp,
    ) -> Result<bool> {
        if self.waiting.is_none() {
            let bytes = u64::from(shared.store.store().options().segment_bytes);
            if !shared.values.are_asked_for(bytes) {
                return Ok(false);
            }
            self.begin(shared, session);
        }
        let Some((point, confirmation)) = self.waiting.take() else { return Ok(false) };
        if !planted!("value-removed-before-the-sync") && !session.reach(&point)? {
            self.waiting = Some((point, confirmation));
            return Ok(false);
        }
        self.end(shared, session, now, confirmation)?;
        Ok(true)
    }

    /// Whether it waits for the device.
    pub(super) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Confirms all that was written before.
    pub(super) fn settle(
        &mut self,
        shared: &Shared,
        session: &mut entresol_tier::Session,
        now: Timestamp,
    ) -> Result<()> {
        if !shared.values.is_watched() {
            return Ok(());
        }
        // Twice, so that the position of the first one is written.
        for _ in 0..2 {
            self.begin(shared, session);
            shared.store.sync()?;
            if let Some((_, confirmation)) = self.waiting.take() {
                self.end(shared, session, now, confirmation)?;
            }
        }
        Ok(())
    }

    fn begin(&mut self, shared: &Shared, session: &entresol_tier::Session) {
        let confirmation = shared.values.begin_confirmation(shared.store.store(), &shared.journal);
        // Taken behind the last change: it has all batches up to that one, and their values.
        self.waiting = Some((session.sync_point(), confirmation));
    }

    fn end(
        &mut self,
        shared: &Shared,
        session: &mut entresol_tier::Session,
        now: Timestamp,
        confirmation: Confirmation,
    ) -> Result<()> {
        let Confirmation { through, position } = confirmation;
        shared.values.confirm(through);
        let before = self.position.clone();
        self.position = position.or(self.position.take());
        let before = before.unwrap_or_else(|| shared.values.first_position());
        shared.write(session, now, &confirmed_key(), &encode_confirmed(through, &before))?;
        shared.remove_replaced(session, now, through)
    }
}
