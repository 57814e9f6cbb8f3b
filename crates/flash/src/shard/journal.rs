//! Appending to the journal of a shard, and cutting it.

use super::Shard;
use super::write::Written;
use crate::error::Result;
use crate::format::{Flags, OWNER_BYTES, RecordKind, owner_key};
use crate::log::Attempt;
use crate::types::{Key, SpaceId, Version};

impl Shard {
    /// Appends a record of the caller's number `owner`; its version is its sequence.
    pub(crate) fn append_journal(&mut self, owner: u64, bytes: &[u8]) -> Attempt<Written> {
        self.log.check_poisoned()?;
        self.sequence += 1;
        let owner = owner_key(owner);
        let key = Key { space: SpaceId(0), partition: 0, bytes: &owner };
        let mut header = self.header(Flags::of(RecordKind::Journal), self.sequence, key);
        let mut sealed = std::mem::take(&mut self.scratch);
        let payload = if self.payloads.encrypts() {
            sealed.clear();
            sealed.extend_from_slice(&owner);
            sealed.extend_from_slice(bytes);
            header.flags.encrypted = true;
            self.payloads.encrypt(self.log.shape().shard, &header, &mut sealed)?;
            sealed.split_at(OWNER_BYTES)
        } else {
            (&owner[..], bytes)
        };
        header.value_bytes = payload.1.len() as u32;
        header.raw_bytes = header.value_bytes;
        header.payload_crc = crc32c::crc32c_append(crc32c::crc32c(payload.0), payload.1);
        let appended = self.log.append_journal(header, payload.0, payload.1);
        self.scratch = sealed;
        appended?;
        let version = Version(self.sequence);
        Ok(Written { version, stamp: self.log.appended() })
    }

    /// Most bytes of a record of the journal: two of them fit a segment.
    pub(crate) fn journal_bytes_max(&self) -> usize {
        let half = self.log.shape().segment_bytes as usize / 2;
        half - FRAME_BYTES - OWNER_BYTES - self.payloads.tag_bytes()
    }

    /// Records of the journal below the sequence `below` are superseded, for good.
    pub(crate) fn trim_journal(&mut self, below: u64) -> Result<()> {
        // Sequences beyond are of records to come.
        self.log.trim_journal(below.min(self.sequence + 1))
    }
}

/// More than header, trailer and a record's header take of a segment for each of two records.
const FRAME_BYTES: usize = 256;
