//! A caller in another language: a store by its address, rows of words, records read from memory.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use entresol_ffi::store::*;
use entresol_ffi::text::entresol_text_release;

pub(crate) const GET: u64 = 1;
pub(crate) const PUT: u64 = 2;
pub(crate) const REMOVE: u64 = 3;
pub(crate) const CONTAINS: u64 = 5;
/// Added where the call may wait for the device.
pub(crate) const WAITS: u64 = 16;
pub(crate) const FOUND: u64 = 1;
pub(crate) const MISSING: u64 = 2;
pub(crate) const STORED: u64 = 3;
pub(crate) const REFUSED: u64 = 4;
pub(crate) const REMOVED: u64 = 5;
pub(crate) const DONE: u64 = 7;
pub(crate) const ENTRY: u64 = 8;
pub(crate) const FAILED: u64 = 9;
pub(crate) const MIB: u64 = 1 << 20;

/// A folder that goes with the test.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("entresol-ffi-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.0.join("data")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

/// A record as a caller reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) token: u64,
    pub(crate) kind: u64,
    pub(crate) number: u64,
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
}

impl Record {
    pub(crate) fn sentence(&self) -> String {
        String::from_utf8(self.value.clone()).unwrap()
    }
}

/// A store by its address, and outcomes that were reaped for others than who asked.
pub(crate) struct Store {
    pub(crate) address: i64,
    pub(crate) reaped: HashMap<u64, Vec<Record>>,
    pub(crate) tokens: AtomicU64,
}

impl Store {
    pub(crate) fn open(file: &Path, options: &str) -> Result<Store, String> {
        let text = format!("devices={}\nmemory={}\n{options}", file.display(), 64 * MIB);
        // SAFETY: the text outlives the call.
        let address = unsafe { entresol_store_open(text.as_ptr() as i64, text.len() as i64) };
        if address < 0 {
            return Err(text_at(-address));
        }
        Ok(Store { address, reaped: HashMap::new(), tokens: AtomicU64::new(1) })
    }

    pub(crate) fn token(&self) -> u64 {
        self.tokens.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn begin(
        &self,
        words: &mut [u64; 16],
        key: &[u8],
        value: &[u8],
        out: &mut [u64],
    ) -> bool {
        words[1] = self.token();
        (words[4], words[5]) = (key.as_ptr() as u64, key.len() as u64);
        (words[6], words[7]) = (value.as_ptr() as u64, value.len() as u64);
        (words[14], words[15]) = (out.as_mut_ptr() as u64, out.len() as u64 * 8);
        // SAFETY: the row and what it names outlive the call.
        let answered = unsafe { entresol_store_submit(self.address, words.as_mut_ptr() as i64, 1) };
        assert_eq!(answered, words[0] as i64);
        answered == 1
    }

    pub(crate) fn run(
        &mut self,
        operation: u64,
        partition: u64,
        key: &[u8],
        value: &[u8],
    ) -> Record {
        self.run_with(operation, (partition, key), value, |_| ())
    }

    pub(crate) fn run_with(
        &mut self,
        operation: u64,
        (partition, key): (u64, &[u8]),
        value: &[u8],
        change: impl FnOnce(&mut [u64; 16]),
    ) -> Record {
        let mut words = [0; 16];
        words[0] = operation;
        words[3] = partition << 16;
        change(&mut words);
        let mut out = [0; 64];
        if self.begin(&mut words, key, value, &mut out) {
            return records(out.as_ptr() as u64, out[0]).remove(0);
        }
        self.wait(words[1]).remove(0)
    }

    pub(crate) fn job(&mut self, job: i64, argument: i64) -> Record {
        let token = self.begin_job(job, argument);
        self.wait(token).remove(0)
    }

    pub(crate) fn begin_job(&self, job: i64, argument: i64) -> u64 {
        let token = self.token();
        // SAFETY: the store is open.
        assert_eq!(unsafe { entresol_store_begin(self.address, token as i64, job, argument) }, 0);
        token
    }

    /// The records of `token` up to one that ends it.
    pub(crate) fn wait(&mut self, token: u64) -> Vec<Record> {
        loop {
            let ended =
                self.reaped.get(&token).is_some_and(|r| r.last().is_some_and(|r| r.kind != ENTRY));
            if ended {
                return self.reaped.remove(&token).unwrap();
            }
            assert!(self.reap() > 0, "closed before {token} had an outcome");
        }
    }

    pub(crate) fn reap(&mut self) -> i64 {
        let mut out = [0_u64; 2];
        // SAFETY: two words fit.
        let count = unsafe { entresol_store_reap(self.address, out.as_mut_ptr() as i64) };
        assert!(count >= 0, "{}", text_at(-count));
        let found = records(out[0], out[1]);
        assert_eq!(found.len() as i64, count);
        for record in found {
            self.reaped.entry(record.token).or_default().push(record);
        }
        count
    }

    pub(crate) fn scan(&mut self, partitions: Option<&[u16]>, limit: i64) -> Vec<Record> {
        self.scan_to_its_end(partitions, limit).0
    }

    /// The entries of partitions, and what is said of those that are damaged.
    pub(crate) fn scan_with_damage(&mut self, partitions: &[u16]) -> (Vec<Record>, Vec<String>) {
        self.scan_to_its_end(Some(partitions), 1000)
    }

    fn scan_to_its_end(
        &mut self,
        partitions: Option<&[u16]>,
        limit: i64,
    ) -> (Vec<Record>, Vec<String>) {
        let mut damage = Vec::new();
        let (address, count) = partitions.map_or((0, -1), |p| (p.as_ptr() as i64, p.len() as i64));
        // SAFETY: the numbers outlive the call.
        let scan = unsafe { entresol_scan_open(self.address, 0, address, count, 0) };
        let mut entries = Vec::new();
        loop {
            let token = self.token();
            // SAFETY: the scan is open.
            unsafe { entresol_scan_next(self.address, scan, token as i64, limit, 0) };
            let mut page = self.wait(token);
            let end = page.pop().unwrap();
            assert_eq!(end.kind, DONE, "{}", end.sentence());
            entries.extend(page);
            damage.extend(Some(end.sentence()).filter(|sentence| !sentence.is_empty()));
            if end.number == 0 {
                break;
            }
        }
        // SAFETY: used for the last time.
        unsafe { entresol_scan_close(scan) };
        (entries, damage)
    }

    pub(crate) fn count(&self, partition: Option<u64>) -> i64 {
        let place = partition.unwrap_or(0) << 16;
        // SAFETY: the store is open.
        unsafe { entresol_store_count(self.address, place as i64, i64::from(partition.is_none())) }
    }

    pub(crate) fn close(&self) {
        // SAFETY: the store is not released.
        assert_eq!(unsafe { entresol_store_close(self.address) }, 0);
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // SAFETY: used for the last time.
        assert_eq!(unsafe { entresol_store_release(self.address) }, 0);
    }
}

pub(crate) fn text_at(address: i64) -> String {
    let first = address as *const u64;
    // SAFETY: a text that the library gave, not yet released.
    let bytes = unsafe {
        let length = first.add(1).read() as usize;
        std::slice::from_raw_parts(first.add(2).cast::<u8>(), length).to_vec()
    };
    // SAFETY: used for the last time.
    unsafe { entresol_text_release(address) };
    String::from_utf8(bytes).unwrap()
}

pub(crate) fn records(address: u64, bytes: u64) -> Vec<Record> {
    let mut found = Vec::new();
    let mut at = address;
    while at < address + bytes {
        // SAFETY: records of the library, or of this test's own memory.
        let head = unsafe { *(at as *const [u64; 8]) };
        let part = |start: u64, length: u64| {
            // SAFETY: as above.
            unsafe { std::slice::from_raw_parts(start as *const u8, length as usize) }.to_vec()
        };
        let value = at + 64 + head[6].next_multiple_of(8);
        found.push(Record {
            token: head[1],
            kind: head[2],
            number: head[3],
            key: part(at + 64, head[6]),
            value: part(value, head[7]),
        });
        at += head[0];
    }
    found
}

pub(crate) fn value_of(number: usize, length: usize) -> Vec<u8> {
    (0..length).map(|index| (index * 31 + number * 7) as u8).collect()
}
