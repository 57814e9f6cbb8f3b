//! Appending to the journal of a shard, and cutting it.

use super::Shard;
use super::write::Written;
use crate::error::Result;
use crate::format::{Flags, OWNER_BYTES, RecordKind, owner_key};
use crate::log::{Attempt, Continued};
use crate::types::{JournalAppend, JournalContinuation, Key, SpaceId, Version};

/// An append to the journal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Appended {
    /// Its version is its sequence.
    pub written: Written,
    /// The sequence of the record that it continues; its own, if it is a record.
    pub head: u64,
}

impl Shard {
    /// Appends to the journal: what continues its last record, where that can be, else a record.
    pub(crate) fn append_journal(&mut self, append: &JournalAppend<'_>) -> Attempt<Appended> {
        self.log.check_poisoned()?;
        self.log.check_journal_room(FRAME_BYTES + append.bytes.len(), append.room)?;
        if let Some(continues) = &append.continues
            && let Some(appended) = self.continue_journal(continues)?
        {
            return Ok(appended);
        }
        self.append_journal_record(append.owner, append.bytes)
    }

    /// `None`: the last record is another one, or cannot be continued.
    fn continue_journal(
        &mut self,
        continues: &JournalContinuation<'_>,
    ) -> Attempt<Option<Appended>> {
        let JournalContinuation { after, bytes } = *continues;
        let (sequence, tag) = (self.sequence + 1, self.payloads.tag_bytes());
        let stored_bytes = if bytes.is_empty() { 0 } else { bytes.len() + tag };
        let Some(head) = self.log.continuable(after.0, sequence, stored_bytes) else {
            return Ok(None);
        };
        self.sequence = sequence;
        if !self.payloads.encrypts() {
            self.log.continue_journal(Continued { sequence, stored: bytes })?;
            return Ok(Some(self.appended(head)));
        }
        let key = Key { space: SpaceId(0), partition: 0, bytes: &[] };
        let header = self.header(Flags::of(RecordKind::Journal), sequence, key);
        let mut sealed = std::mem::take(&mut self.scratch);
        sealed.clear();
        sealed.extend_from_slice(bytes);
        self.payloads.encrypt(self.log.shape().shard, &header, &mut sealed)?;
        let continued = self.log.continue_journal(Continued { sequence, stored: &sealed });
        self.scratch = sealed;
        continued?;
        Ok(Some(self.appended(head)))
    }

    /// The last append, which continues the record `head` or is that.
    fn appended(&self, head: u64) -> Appended {
        let (version, stamp) = (Version(self.sequence), self.log.appended());
        Appended { written: Written { version, stamp }, head }
    }

    /// Appends a record of the caller's number `owner`; its version is its sequence.
    fn append_journal_record(&mut self, owner: u64, bytes: &[u8]) -> Attempt<Appended> {
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
        Ok(self.appended(self.sequence))
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
