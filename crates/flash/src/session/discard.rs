//! Removing an entry that may be there, without looking whose it is.

use super::pending::PendingKind;
use super::{Session, Visit};
use crate::error::Result;
use crate::record::{HashedKey, hash_key};
use crate::shard::Discarded;
use crate::types::{Condition, Key, Outcome, Timestamp};

impl Session {
    /// Begins to remove what may be of `key`. It is answered once that is appended.
    pub(super) fn begin_discard(
        &mut self,
        token: u64,
        now: Timestamp,
        key: Key<'_>,
        visit: Visit<'_>,
    ) -> Result<()> {
        self.check_key(key)?;
        let hash = hash_key(self.engine.hash_seed, key);
        let discarded = self.engine.discard(HashedKey { key, hash }, now, self.waits)?;
        if discarded == Discarded::Done {
            self.finish(token, Ok(Outcome::Missing), visit);
            return Ok(());
        }
        let slot = self.take_pending(token, now, key, PendingKind::Remove(Condition::Always));
        if discarded == Discarded::Awaits {
            self.put_off(slot);
            return Ok(());
        }
        self.resolve(slot, visit)
    }
}
