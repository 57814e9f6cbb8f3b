//! Ordered tables as a caller in another language has them: addresses, words, records of bytes.

use entresol_ffi::tables::*;

use serde_json::Value;

use crate::support::{Folder, MIB, Store, text_at};

pub(crate) const PUT: u32 = 1;
pub(crate) const REMOVE: u32 = 2;
pub(crate) const ADD: u32 = 3;
pub(crate) const ABSENT: u32 = 4;
pub(crate) const PRESENT: u32 = 5;
pub(crate) const VALUE: u32 = 6;
pub(crate) const HAS_HIGH: u64 = 1;
pub(crate) const DESCENDING: u64 = 2;
pub(crate) const BY_RANK: u64 = 4;
pub(crate) const AT_ONE_MOMENT: u64 = 8;
pub(crate) const SYNCED: u64 = 5;
pub(crate) const MEMORY: u64 = 1;

/// A row as a caller reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) key: Vec<u8>,
    pub(crate) base: Option<Vec<u8>>,
    pub(crate) parts: Vec<Vec<u8>>,
}

/// Bytes that are taken from the front.
pub(crate) struct Cut<'a>(pub(crate) &'a [u8]);

impl<'a> Cut<'a> {
    pub(crate) fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (cut, rest) = self.0.split_at(count);
        self.0 = rest;
        cut
    }

    pub(crate) fn word(&mut self) -> u32 {
        u32::from_le_bytes(self.bytes(4).try_into().unwrap())
    }

    pub(crate) fn row(&mut self, key: &[u8]) -> Row {
        let (base, count) = (self.word(), self.word());
        let base = (base != u32::MAX).then(|| self.bytes(base as usize).to_vec());
        let mut part = || {
            let length = self.word();
            self.bytes(length as usize).to_vec()
        };
        let parts = (0..count).map(|_| part()).collect();
        Row { key: key.to_vec(), base, parts }
    }

    pub(crate) fn record(&mut self) -> Row {
        let (before, bytes) = (self.0.len(), self.word());
        let key = self.word();
        let key = self.bytes(key as usize);
        let row = self.row(key);
        assert_eq!(before - self.0.len(), bytes as usize);
        row
    }

    pub(crate) fn records(mut self) -> Vec<Row> {
        let mut rows = Vec::new();
        while !self.0.is_empty() {
            rows.push(self.record());
        }
        rows
    }
}

pub(crate) fn plain(key: &[u8], value: &[u8]) -> Row {
    Row { key: key.to_vec(), base: Some(value.to_vec()), parts: Vec::new() }
}

pub(crate) fn checked(result: i64) -> Result<i64, String> {
    if result < 0 { Err(text_at(-result)) } else { Ok(result) }
}

pub(crate) struct Table(pub(crate) i64);

impl Table {
    pub(crate) fn open(store: &Store, name: &[u8]) -> Result<Table, String> {
        // SAFETY: the store is not released; the name outlives the call.
        let opened =
            unsafe { entresol_table_open(store.address, name.as_ptr() as i64, name.len() as i64) };
        checked(opened).map(Table)
    }

    pub(crate) fn open_counted(store: &Store, name: &[u8]) -> Result<Table, String> {
        let (name, length) = (name.as_ptr() as i64, name.len() as i64);
        // SAFETY: the store is not released; the name outlives the call.
        let opened = unsafe { entresol_table_open_counted(store.address, name, length) };
        checked(opened).map(Table)
    }

    pub(crate) fn count(&self, low: &[u8], high: &[u8]) -> Result<i64, String> {
        let (low, low_length) = (low.as_ptr() as i64, low.len() as i64);
        let (high, high_length) = (high.as_ptr() as i64, high.len() as i64);
        // SAFETY: the keys outlive the call.
        checked(unsafe { entresol_table_count(self.0, low, low_length, high, high_length) })
    }

    /// About how many rows there are, and how far off that may be.
    pub(crate) fn estimate(&self, low: &[u8], high: &[u8]) -> (u64, Option<u64>) {
        let (low, low_length) = (low.as_ptr() as u64, low.len() as u64);
        let mut words = [low, low_length, high.as_ptr() as u64, high.len() as u64, 0];
        // SAFETY: the words and the keys outlive the call.
        let rows = unsafe { entresol_table_estimate(self.0, words.as_mut_ptr() as i64) };
        let error = Some(words[4]).filter(|error| *error < u64::MAX);
        (checked(rows).unwrap() as u64, error)
    }

    /// The keys of rows from that rank on.
    pub(crate) fn keys_from(&self, rank: u64, flags: u64, limit: u64) -> Vec<Vec<u8>> {
        let mut out = vec![0_u8; 64 << 10];
        let (page, room) = (out.as_mut_ptr() as u64, out.len() as u64);
        let mut words = [rank, 0, 0, 0, flags | BY_RANK, limit, page, room, 0, 0];
        // SAFETY: the words and the page outlive the call.
        let count = unsafe { entresol_table_scan(self.0, words.as_mut_ptr() as i64) };
        let rows = Cut(&out[..words[8] as usize]).records();
        assert_eq!(rows.len() as i64, checked(count).unwrap());
        rows.into_iter().map(|row| row.key).collect()
    }

    pub(crate) fn get_with(&self, key: &[u8], room: usize) -> Result<(i64, Vec<u8>), String> {
        let mut out = vec![0_u8; room];
        let (key, length) = (key.as_ptr() as i64, key.len() as i64);
        // SAFETY: key and room outlive the call.
        let bytes = unsafe {
            entresol_table_get(self.0, key, length, out.as_mut_ptr() as i64, room as i64)
        };
        checked(bytes).map(|bytes| (bytes, out))
    }

    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Row>, String> {
        let (mut bytes, mut out) = self.get_with(key, 1 << 10)?;
        if bytes as usize > out.len() {
            (bytes, out) = self.get_with(key, bytes as usize)?;
        }
        Ok((bytes > 0).then(|| Cut(&out[..bytes as usize]).row(key)))
    }

    /// One page: its rows, whether more may follow, or how many bytes the first row needs.
    pub(crate) fn page(
        &self,
        (low, high): (&[u8], Option<&[u8]>),
        flags: u64,
        (limit, room): (u64, usize),
    ) -> Result<(Vec<Row>, bool, u64), String> {
        let mut out = vec![0_u8; room];
        let flags = flags | if high.is_some() { HAS_HIGH } else { 0 };
        let high = high.unwrap_or_default();
        let mut words = [
            low.as_ptr() as u64,
            low.len() as u64,
            high.as_ptr() as u64,
            high.len() as u64,
            flags,
            limit,
            out.as_mut_ptr() as u64,
            room as u64,
            0,
            0,
        ];
        // SAFETY: the words and what they name outlive the call.
        let count = unsafe { entresol_table_scan(self.0, words.as_mut_ptr() as i64) };
        let count = checked(count)? as usize;
        if count == 0 {
            return Ok((Vec::new(), words[9] == 1, words[8]));
        }
        let rows = Cut(&out[..words[8] as usize]).records();
        assert_eq!(rows.len(), count);
        Ok((rows, words[9] == 1, 0))
    }

    /// All rows, in pages.
    pub(crate) fn scan(&self, flags: u64, room: usize) -> Vec<Row> {
        let (mut low, mut high, mut rows) = (Vec::new(), None::<Vec<u8>>, Vec::<Row>::new());
        loop {
            let bounds = (&low[..], high.as_deref());
            let (page, goes_on, _) = self.page(bounds, flags, (u64::MAX, room)).unwrap();
            rows.extend(page);
            if !goes_on {
                return rows;
            }
            let last = rows.last().unwrap().key.clone();
            if flags & DESCENDING > 0 {
                high = Some(last)
            } else {
                low = [&last[..], &[0]].concat()
            }
        }
    }

    pub(crate) fn drop_rows(&self) {
        // SAFETY: the table is open.
        checked(unsafe { entresol_table_drop(self.0) }).unwrap();
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // SAFETY: used for the last time.
        unsafe { entresol_table_close(self.0) };
    }
}

#[derive(Default)]
pub(crate) struct Batch(pub(crate) Vec<u8>);

impl Batch {
    pub(crate) fn with(mut self, table: &Table, kind: u32, key: &[u8], value: &[u8]) -> Batch {
        self.0.extend(table.0.to_le_bytes());
        for word in [kind, key.len() as u32, value.len() as u32, 0] {
            self.0.extend(word.to_le_bytes());
        }
        self.0.extend(key);
        self.0.extend(value);
        self
    }

    /// The number of the last change, or that of a condition.
    pub(crate) fn write(&self, store: &Store, level: u64) -> Result<Result<i64, u64>, String> {
        let mut words = [self.0.as_ptr() as u64, self.0.len() as u64, level, 0, u64::MAX];
        // SAFETY: the words and the batch outlive the call.
        let written = unsafe { entresol_tables_write(store.address, words.as_mut_ptr() as i64) };
        Ok(match checked(written)? {
            0 => Err(words[4]),
            sequence => Ok(sequence),
        })
    }

    pub(crate) fn must(&self, store: &Store, level: u64) {
        assert!(self.write(store, level).unwrap().unwrap() > 0);
    }
}

pub(crate) fn open(folder: &Folder, more: &str) -> Store {
    let options = format!("capacity={}\njournal={}\n{more}", 96 * MIB, 16 * MIB);
    Store::open(&folder.file(), &options).unwrap()
}

pub(crate) fn figures(store: &Store) -> Value {
    // SAFETY: the store is open.
    let text = text_at(checked(unsafe { entresol_tables_figures(store.address) }).unwrap());
    serde_json::from_str(&text).unwrap()
}

pub(crate) fn held_back(store: &Store) -> String {
    // SAFETY: the store is open.
    match checked(unsafe { entresol_tables_held_back(store.address) }).unwrap() {
        0 => String::new(),
        text => text_at(text),
    }
}
