//! Reads of pages, many at a time.

use std::sync::Arc;

use entresol_flash::{
    Entry, EntryName, Error, ErrorKind, Operation, Outcome, Result, SpaceId, Timestamp,
};
use entresol_tier::{Session, SessionOptions, Tiered};

use super::{TableDamage, Tell, Told, key_parts};
use crate::format::{FIRST_RECORDS, PAGE_KEY_BYTES, record_key};

/// Device reads in flight.
const DEPTH: usize = 64;
/// A page is read at once.
const READ_BUFFER_BYTES: usize = 16 << 10;

/// What a record is: its bytes, that it is not there, or why it cannot be read.
pub(super) type Found = FoundOf<Vec<u8>>;
/// The same of what is wanted of a record.
pub(super) type FoundOf<T> = std::result::Result<Option<T>, Error>;

/// Reads records of tables.
pub(super) struct Reader {
    session: Session,
    space: SpaceId,
    pub now: Timestamp,
    /// Pages that were read and not told of.
    pub read: u64,
}

impl Reader {
    pub(super) fn new(store: &Arc<Tiered>, space: SpaceId, now: Timestamp) -> Result<Reader> {
        let options = SessionOptions {
            depth: DEPTH,
            read_buffer_bytes: READ_BUFFER_BYTES,
            ..SessionOptions::default()
        };
        Ok(Reader { session: store.session(options)?, space, now, read: 0 })
    }

    /// Whether a record of the key may be there.
    pub(super) fn may_hold(&self, key: &[u8]) -> bool {
        self.session.may_hold(record_key(self.space, key))
    }

    /// Reads records, in the order of `keys`.
    pub(super) fn read_all(&mut self, keys: &[[u8; PAGE_KEY_BYTES]]) -> Result<Vec<Found>> {
        let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        self.read_each(&keys, &|entry| entry.value.to_vec())
    }

    /// The versions of records, in the order of `keys`.
    pub(super) fn versions(&mut self, keys: &[&[u8]]) -> Result<Vec<FoundOf<u64>>> {
        self.read_each(keys, &|entry| entry.version.0)
    }

    fn read_each<T>(
        &mut self,
        keys: &[&[u8]],
        take: &dyn Fn(&Entry<'_>) -> T,
    ) -> Result<Vec<FoundOf<T>>> {
        let mut found: Vec<FoundOf<T>> = keys.iter().map(|_| Ok(None)).collect();
        let Reader { session, space, now, read } = self;
        let mut visit = |token: u64, outcome: Result<Outcome<'_>>| {
            *read += 1;
            found[token as usize] = match outcome {
                Ok(Outcome::Found(entry)) => Ok(Some(take(&entry))),
                Ok(_) => Ok(None),
                Err(error) => Err(error),
            };
        };
        for (token, key) in keys.iter().enumerate() {
            let key = record_key(*space, key);
            if !session.may_hold(key) {
                continue;
            }
            session.submit(token as u64, *now, Operation::Get { key }, &mut visit);
            while session.in_flight() >= DEPTH {
                session.poll(1, *now, &mut visit)?;
            }
        }
        while session.in_flight() > 0 {
            session.poll(1, *now, &mut visit)?;
        }
        let is_lost = |error: &Error| error.kind() != ErrorKind::Corrupt;
        match found.iter().position(|one| one.as_ref().is_err_and(is_lost)) {
            Some(at) => match found.swap_remove(at) {
                Err(error) => Err(error),
                Ok(_) => unreachable!("it is an error"),
            },
            None => Ok(found),
        }
    }

    /// Reads one record that verifies; `None` where there is none.
    pub(super) fn read(&mut self, key: &[u8; PAGE_KEY_BYTES]) -> Result<Option<Vec<u8>>> {
        self.read_all(&[*key])?.swap_remove(0).or(Ok(None))
    }

    /// Reads first records by their names, and tells of those that are damaged: numbers of tables,
    /// and the records.
    pub(super) fn first_records(
        &mut self,
        names: &[EntryName],
        tell: Tell<'_>,
    ) -> Result<Vec<(u64, Vec<u8>)>> {
        let mut found = Vec::new();
        let of_first = |partition: u16| partition == FIRST_RECORDS;
        self.session.visit_named((self.space, &of_first), names, self.now, &mut |entry| {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    tell(Told::Damage(&TableDamage {
                        table: None,
                        place: "a table's first record".to_owned(),
                        what: "its bytes".to_owned(),
                        expected: "those that were written".to_owned(),
                        found: error.to_string(),
                    }));
                    return;
                }
            };
            match key_parts(entry.key) {
                Some((id, 1)) => found.push((id, entry.value.to_vec())),
                _ => tell(Told::Damage(&TableDamage {
                    table: None,
                    place: format!("record with the key {}", entry.key.escape_ascii()),
                    what: "its partition".to_owned(),
                    expected: "one of its kind".to_owned(),
                    found: "that of first records".to_owned(),
                })),
            }
        })?;
        self.read += found.len() as u64;
        Ok(found)
    }

    /// Visits keys and values of records.
    pub(super) fn visit(
        &mut self,
        names: &[EntryName],
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<()> {
        self.session.visit_named((self.space, &|_| true), names, self.now, &mut |entry| {
            // Damaged records were told of where they were read, or are told of by the store.
            if let Ok(entry) = entry {
                visit(entry.key, entry.value);
            }
        })
    }
}
