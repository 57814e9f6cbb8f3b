//! Ordered tables as longs. Each call does its work in the caller's thread and returns once it is
//! done: many threads call at once, and share the syncs that they wait for.
//!
//! Rows are given unfolded, a base and parts (`entresol.h` draws them): the caller folds what it
//! reads. Only merges ask for folds, in `entresol_tables_fold`, which one thread of the caller's
//! calls again and again.

mod batch;
mod figures;
mod folding;
mod gets;

use std::sync::Arc;

use entresol_host::{now, run_on_tables as run};
use entresol_tier::{Durability, Error, ErrorKind, Result as StoreResult};
use entresol_tree::{
    CountRange, Order, Outcome, RankRange, Reading, RowAt, RowBuffer, RowCounts, RowForm, RowRange,
    Session, Table, TableOptions, Visit,
};

use crate::store::{Hosted, durability, store_at};
use crate::text;
use crate::text::Failure;
use batch::Batch;
pub(crate) use folding::Folds;
use folding::{Question, RemoteMerge, Reply};
use gets::Gets;

/// Of a page, kept for the row that passes the limit.
const LAST_ROW_BYTES: usize = 8 << 10;
/// Words of a scan.
const SCAN_WORDS: usize = 10;
/// Words of a batch.
const WRITE_WORDS: usize = 5;
/// Words of an estimate.
const ESTIMATE_WORDS: usize = 5;
/// Words of several gets.
const GET_WORDS: usize = 5;
/// Words of a question.
const FOLD_WORDS: usize = 8;
/// Flags of a scan.
const HAS_HIGH: u64 = 1;
const DESCENDING: u64 = 2;
const BY_RANK: u64 = 4;
const AT_ONE_MOMENT: u64 = 8;

/// A table as a caller's address leads to it.
#[derive(Debug)]
pub(crate) struct TableHandle {
    host: Arc<Hosted>,
    folds: Arc<Folds>,
    table: Arc<Table>,
}

export! {
    /// The ordered table that `length` bytes at `name` name; its address. It comes into being with
    /// its first row.
    entresol_table_open, Java_io_entresol_heap_engine_Jni_tableOpen(store, name, length) {
        // SAFETY: the caller's promise.
        let (store, name) = unsafe { (store_at(store), text::bytes(name, length)) };
        let table = store.host.with_tables(|session| session.table(now(), name));
        let table = table?.map_err(entresol_host::Failure::from)?;
        let (host, folds) = (Arc::clone(&store.host), Arc::clone(&store.folds));
        Ok(Box::into_raw(Box::new(TableHandle { host, folds, table })) as i64)
    }
}

export! {
    /// The same, of a table that keeps counts; an error if it exists and keeps none.
    entresol_table_open_counted,
    Java_io_entresol_heap_engine_Jni_tableOpenCounted(store, name, length) {
        // SAFETY: the caller's promise.
        let (store, name) = unsafe { (store_at(store), text::bytes(name, length)) };
        let options = TableOptions { counts: RowCounts::Kept };
        let table = store.host.with_tables(|session| session.table_with(now(), name, options));
        let table = table?.map_err(entresol_host::Failure::from)?;
        let (host, folds) = (Arc::clone(&store.host), Arc::clone(&store.folds));
        Ok(Box::into_raw(Box::new(TableHandle { host, folds, table })) as i64)
    }
}

export! {
    /// How many rows a table that keeps counts has from a key on and below another one; lengths of
    /// 0: from the first one on, to the last one.
    entresol_table_count,
    Java_io_entresol_heap_engine_Jni_tableCount(table, low, low_length, high, high_length) {
        // SAFETY: the caller's promise.
        let (handle, low, high) = unsafe {
            (table_at(table), text::bytes(low, low_length), text::bytes(high, high_length))
        };
        let high = Some(high).filter(|high| !high.is_empty());
        let range = CountRange { table: &handle.table, low, high };
        let mut counted = Ok(0);
        handle.with_session(|session| {
            run(session, |session, visit| session.count(0, now(), range, visit), &mut |outcome| {
                counted = outcome.map(|outcome| match outcome {
                    Outcome::Count(rows) => rows,
                    _ => 0,
                });
            })
        })?;
        Ok(counted.map_err(entresol_host::Failure::from)? as i64)
    }
}

export! {
    /// About how many rows a table has in a range, as five words say, whether it keeps counts or
    /// not.
    entresol_table_estimate, Java_io_entresol_heap_engine_Jni_tableEstimate(table, words) {
        // SAFETY: the caller's promise.
        let words = unsafe { &mut *(words as *mut [u64; ESTIMATE_WORDS]) };
        let [low, low_length, high, high_length, _] = *words;
        // SAFETY: the caller's promise.
        let (handle, low, high) = unsafe {
            let bytes = |address: u64, length: u64| text::bytes(address as i64, length as i64);
            (table_at(table), bytes(low, low_length), bytes(high, high_length))
        };
        let high = Some(high).filter(|high| !high.is_empty());
        let range = CountRange { table: &handle.table, low, high };
        let estimate = handle.host.with_tables(|session| session.estimate(range))?;
        words[4] = estimate.error.unwrap_or(u64::MAX);
        Ok(i64::try_from(estimate.rows).unwrap_or(i64::MAX))
    }
}

export! {
    /// Releases the address of a table.
    entresol_table_close, Java_io_entresol_heap_engine_Jni_tableClose(table) {
        // SAFETY: given out by `entresol_table_open`, and used for the last time.
        drop(unsafe { Box::from_raw(table as *mut TableHandle) });
        Ok(0)
    }
}

export! {
    /// Bytes of the row of a key, 0 if there is none. The row is at `out`, unless it has more than
    /// `capacity` bytes: call again with room for it.
    entresol_table_get,
    Java_io_entresol_heap_engine_Jni_tableGet(table, key, length, out, capacity) {
        // SAFETY: the caller's promise.
        let (handle, key) = unsafe { (table_at(table), text::bytes(key, length)) };
        let row = RowAt { table: &handle.table, key };
        let mut found = Ok(0);
        handle.with_session(|session| {
            run(session, |session, visit| session.get(0, now(), row, visit), &mut |outcome| {
                found = outcome.map(|outcome| match outcome {
                    // SAFETY: the caller's promise: so many bytes fit.
                    Outcome::Found(bytes) => unsafe { copy_out(bytes, out, capacity) },
                    _ => 0,
                });
            })
        })?;
        Ok(found.map_err(entresol_host::Failure::from)? as i64)
    }
}

export! {
    /// Gets several rows of any tables, as five words say; how many there are. All are read side by
    /// side. The last word becomes the bytes of the answers: they are there if they have room.
    entresol_tables_get, Java_io_entresol_heap_engine_Jni_tablesGet(store, words) {
        // SAFETY: the caller's promise.
        let (store, words) = unsafe { (store_at(store), &mut *(words as *mut [u64; GET_WORDS])) };
        let [keys, length, out, capacity, _] = *words;
        // SAFETY: as above.
        let keys = unsafe { text::bytes(keys as i64, length as i64) };
        // SAFETY: the caller's promise, for the addresses of tables.
        let gets = unsafe { Gets::parse(keys, &store.host) }?;
        let reading = Reading { form: RowForm::Unfolded, ..Reading::default() };
        let answers = store.host.with_tables(|session| {
            session.set_reading(reading);
            gets.run(session)
        })?;
        let answers = answers.map_err(entresol_host::Failure::from)?;
        words[4] = answers.bytes() as u64;
        if answers.bytes() <= capacity as usize {
            // SAFETY: the caller's promise: so many bytes fit.
            unsafe { copy_out(&answers.concat(), out as i64, capacity as i64) };
        }
        Ok(answers.found() as i64)
    }
}

export! {
    /// A page of rows, as ten words say; how many.
    entresol_table_scan, Java_io_entresol_heap_engine_Jni_tableScan(table, words) {
        // SAFETY: the caller's promise.
        let (handle, words) = unsafe { (table_at(table), &mut *(words as *mut [u64; SCAN_WORDS])) };
        // SAFETY: as above.
        let page = unsafe { scan(handle, words) }?;
        words[8] = if page.count == 0 { page.wanted } else { page.bytes } as u64;
        words[9] = u64::from(page.goes_on);
        Ok(page.count as i64)
    }
}

export! {
    /// Writes a batch, as five words say; the number of its last change. 0: a condition does not
    /// hold, its number is in the last word.
    entresol_tables_write, Java_io_entresol_heap_engine_Jni_tablesWrite(store, words) {
        // SAFETY: the caller's promise.
        let (store, words) = unsafe { (store_at(store), &mut *(words as *mut [u64; WRITE_WORDS])) };
        let [bytes, length, level, period, _] = *words;
        // SAFETY: as above.
        let bytes = unsafe { text::bytes(bytes as i64, length as i64) };
        // SAFETY: the caller's promise, for the addresses of tables.
        let batch = unsafe { Batch::parse(bytes, &store.host) }?;
        match write(&store.host, &batch, durability(level, period))? {
            Written::At(sequence) => Ok(sequence as i64),
            Written::Refused(condition) => {
                words[4] = condition as u64;
                Ok(0)
            }
        }
    }
}

export! {
    /// Removes all rows of a table: at once for readers, durable on return.
    entresol_table_drop, Java_io_entresol_heap_engine_Jni_tableDrop(table) {
        // SAFETY: the caller's promise.
        let handle = unsafe { table_at(table) };
        handle.host.change_tables(|session| {
            let begin = |session: &mut Session, visit: entresol_tree::Visit<'_>| {
                session.drop_table(0, now(), &handle.table, visit);
            };
            let mut ended = Ok(());
            run(session, begin, &mut |outcome| ended = outcome.map(drop))?;
            ended
        })?;
        Ok(0)
    }
}

export! {
    /// Says that the parts of a table are folded by function `function` of those who call
    /// `entresol_tables_fold`; flag 1: rows without parts are shown to it, too.
    entresol_table_merge, Java_io_entresol_heap_engine_Jni_tableMerge(table, function, flags) {
        // SAFETY: the caller's promise.
        let handle = unsafe { table_at(table) };
        let merge = RemoteMerge {
            folds: Arc::clone(&handle.folds),
            function: function as u64,
            folds_all: flags & 1 > 0,
        };
        handle.host.tree()?.set_merge(handle.table.name(), Arc::new(merge));
        Ok(0)
    }
}

export! {
    /// Takes the answers to the last question and waits for the next, as eight words say; how many
    /// rows it asks about. 0: the store is closed.
    entresol_tables_fold, Java_io_entresol_heap_engine_Jni_tablesFold(store, words) {
        // SAFETY: the caller's promise.
        let (store, words) = unsafe { (store_at(store), &mut *(words as *mut [u64; FOLD_WORDS])) };
        let [ticket, kind, bytes, length, ..] = *words;
        // SAFETY: as above.
        let bytes = unsafe { text::bytes(bytes as i64, length as i64) };
        let question = store.folds.next(ticket, &Reply::of(kind, bytes))?;
        let Some(Question { ticket, function, address, bytes, rows }) = question else {
            return Ok(0);
        };
        words[0] = ticket;
        words[4..].copy_from_slice(&[address, bytes, function, 0]);
        Ok(rows as i64)
    }
}

export! {
    /// Text: why the last sweep of merges let changes of a table wait, as where its merge function
    /// failed; 0 if it let none wait.
    entresol_tables_held_back, Java_io_entresol_heap_engine_Jni_tablesHeldBack(store) {
        // SAFETY: the caller's promise.
        let store = unsafe { store_at(store) };
        Ok(store.host.tree()?.held_back().map_or(0, |why| text::leak(0, &why)))
    }
}

export! {
    /// Text: the figures of each table in memory, as a JSON array.
    entresol_tables_figures, Java_io_entresol_heap_engine_Jni_tablesFigures(store) {
        // SAFETY: the caller's promise.
        let store = unsafe { store_at(store) };
        Ok(text::leak(0, &figures::all(&store.host.table_figures())))
    }
}

impl TableHandle {
    fn with_session<T>(
        &self,
        work: impl FnOnce(&mut Session) -> StoreResult<T>,
    ) -> Result<T, Failure> {
        let done = self.host.with_tables(|session| {
            let reading = Reading { form: RowForm::Unfolded, ..Reading::default() };
            session.set_reading(reading);
            work(session)
        })?;
        Ok(done.map_err(entresol_host::Failure::from)?)
    }
}

/// # Safety
/// `address` is that of a table that was not released.
unsafe fn table_at<'a>(address: i64) -> &'a TableHandle {
    // SAFETY: the caller's promise.
    unsafe { &*(address as *const TableHandle) }
}

/// Scans as the words of a page say, into the page.
///
/// # Safety
/// The words name bytes that are readable, and a page that is writable.
unsafe fn scan(handle: &TableHandle, words: &[u64; SCAN_WORDS]) -> Result<Page, Failure> {
    let [first, low_length, high, high_length, flags, limit, out, capacity, ..] = *words;
    let (is_by_rank, is_whole) = (flags & BY_RANK > 0, flags & AT_ONE_MOMENT > 0);
    if is_by_rank && is_whole {
        let sentence = "flags of a scan: expected a rank or one moment, found both".to_owned();
        return Err(Failure { kind: 2, sentence });
    }
    // SAFETY: the caller's promise.
    let (low, high) = unsafe {
        let bytes = |address: u64, length: u64| text::bytes(address as i64, length as i64);
        let low = if is_by_rank { &[] } else { bytes(first, low_length) };
        (low, (flags & HAS_HIGH > 0).then(|| bytes(high, high_length)))
    };
    let order = if flags & DESCENDING > 0 { Order::Descending } else { Order::Ascending };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let table = &handle.table;
    let rows = RowRange { table, low, high, limit, order };
    let begin = |session: &mut Session, visit: Visit<'_>| match (is_by_rank, is_whole) {
        (true, _) => {
            session.select(0, now(), RankRange { table, rank: first, limit, order }, visit)
        }
        (_, true) => session.scan_at_one_moment(0, now(), rows, visit),
        _ => session.scan(0, now(), rows, visit),
    };
    let kept = LAST_ROW_BYTES.min(capacity as usize / 4);
    let scan_bytes_max = (capacity as usize - kept).max(1);
    let work = |session: &mut Session| {
        session.set_reading(Reading { form: RowForm::Unfolded, scan_bytes_max });
        let mut page = Ok(Page::default());
        run(session, begin, &mut |outcome| {
            page = outcome.map(|outcome| match outcome {
                Outcome::Rows(rows) => {
                    let page = Page::of(rows, capacity as usize);
                    let bytes = &rows.bytes()[..page.bytes];
                    // SAFETY: the caller's promise: so many bytes fit.
                    unsafe { copy_out(bytes, out as i64, capacity as i64) };
                    page
                }
                _ => Page::default(),
            });
        })?;
        page
    };
    match is_whole {
        // Merges that come between again and again are helped to an end.
        true => Ok(handle.host.change_tables(work)?),
        false => handle.with_session(work),
    }
}

/// Copies bytes to the caller's memory, if they fit; how many they are.
///
/// # Safety
/// `capacity` bytes are writable at `out`.
unsafe fn copy_out(bytes: &[u8], out: i64, capacity: i64) -> usize {
    if bytes.len() <= capacity as usize && !bytes.is_empty() {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), out as *mut u8, bytes.len()) };
    }
    bytes.len()
}

/// What of the rows of a scan goes to the caller's page.
#[derive(Debug, Default)]
struct Page {
    count: usize,
    bytes: usize,
    /// Bytes of the first row.
    wanted: usize,
    goes_on: bool,
}

impl Page {
    /// As many rows as have room in `capacity` bytes.
    fn of(rows: &RowBuffer, capacity: usize) -> Page {
        let mut page = Page { goes_on: rows.goes_on(), ..Page::default() };
        for (index, record) in records(rows).enumerate() {
            if index == 0 {
                page.wanted = record;
            }
            if page.bytes + record > capacity {
                page.goes_on = true;
                break;
            }
            page.bytes += record;
            page.count += 1;
        }
        page
    }
}

/// The bytes of each record of unfolded rows.
fn records(rows: &RowBuffer) -> impl Iterator<Item = usize> {
    let mut rest = rows.bytes();
    std::iter::from_fn(move || {
        let (word, _) = rest.split_first_chunk()?;
        let bytes = u32::from_le_bytes(*word) as usize;
        rest = &rest[bytes..];
        Some(bytes)
    })
}

/// How a batch ended.
#[derive(Debug, Clone, Copy)]
enum Written {
    /// Its last change has this number.
    At(u64),
    /// This condition does not hold.
    Refused(usize),
}

fn write(host: &Hosted, batch: &Batch<'_>, level: Option<Durability>) -> Result<Written, Failure> {
    let written = host.change_tables(|session| {
        let mut ended = Err(Error::new(ErrorKind::InvalidInput, "a batch that did not end"));
        let begin = |session: &mut Session, visit: entresol_tree::Visit<'_>| {
            batch.begin(session, level, visit);
        };
        run(session, begin, &mut |outcome| {
            ended = outcome.map(|outcome| match outcome {
                Outcome::Done(sequence) => Written::At(sequence.0),
                Outcome::Refused { condition, .. } => Written::Refused(condition),
                _ => Written::At(0),
            });
        })?;
        ended
    })?;
    Ok(written)
}
