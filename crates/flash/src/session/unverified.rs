//! Operations on a record that does not verify, or cannot be read: the footer of its segment says
//! whose it is, by 128 bits of hash, as a recovery believes it.

use super::pending::PendingKind;
use super::resolve::Present;
use super::{Session, Visit};
use crate::error::{Error, ErrorKind, Result};
use crate::format::FooterEntry;
use crate::format::SizeCode;
use crate::shard::{Ending, Plan};
use crate::types::{Condition, Lifespan, Pinning, Version};

impl Session {
    /// Goes on with an operation whose record brings `error`: to the next candidate if the record
    /// is another key's; else what needs nothing of it is done.
    pub(super) fn go_on_unverified(
        &mut self,
        slot: u32,
        plan: &Plan,
        error: Error,
        visit: Visit<'_>,
    ) -> Result<()> {
        let pending = &self.pending[slot as usize];
        let (hash, now) = (pending.hash, pending.now);
        let shard = self.engine.shard_of(hash);
        let condition = match pending.kind {
            PendingKind::Get | PendingKind::Touch(..) => None,
            PendingKind::Put(options) => Some(options.condition),
            PendingKind::Remove(condition) => Some(condition),
        };
        let needs_record = condition.is_none_or(|it| matches!(it, Condition::Version(_)));
        let line = self.engine.line_at(shard, plan);
        let others = |line: &FooterEntry| line.hash != hash;
        let Some(line) = line.filter(|line| others(line) || !needs_record) else {
            self.give_back(slot);
            return Err(error);
        };
        if error.kind() == ErrorKind::Corrupt {
            self.count(|c| &c.damaged);
        }
        if others(&line) {
            self.pending[slot as usize].tried.push(plan.location());
            return self.resolve(slot, visit);
        }
        let mut location = plan.location();
        let mut shard = self.engine.shards[shard].lock();
        if plan.hidden {
            location.place.size = SizeCode::covering(u64::from(line.record_bytes));
            shard.unhide(hash, location.place);
        }
        let ended = shard.is_over_at(
            hash,
            Ending { place: location.place, seconds: line.ends_seconds },
            now,
        );
        drop(shard);
        let present = Present {
            location,
            version: Version(line.sequence),
            ended,
            label: 0,
            pinning: Pinning::default(),
            lifespan: Lifespan::Learned,
        };
        self.decide(slot, Some(present), visit)
    }
}
