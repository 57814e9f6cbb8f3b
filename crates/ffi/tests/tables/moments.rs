//! Scans of one moment: a batch over several rows is seen whole or not at all.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::caller::{
    AT_ONE_MOMENT, BY_RANK, Batch, DESCENDING, MEMORY, PUT, REMOVE, Table, checked, open,
};
use crate::support::Folder;
use entresol_ffi::tables::entresol_table_scan;

const PLACES: u32 = 50;
const MOVES: u32 = 3000;
const SCANS_MIN: u32 = 200;

/// Both rows of a pair, far from each other.
fn pair(place: u32) -> [Vec<u8>; 2] {
    [format!("a {place:02}").into_bytes(), format!("z {place:02}").into_bytes()]
}

#[test]
fn a_pair_of_rows_that_a_batch_moves_is_never_seen_half() {
    let folder = Folder::new("tables-moments");
    // Merges come again and again, and take the pair from leaf to leaf.
    let store = open(&folder, "tables-waiting=60000");
    let table = Table::open(&store, b"pairs").unwrap();
    for number in 0..400 {
        let key = format!("m {number:03}").into_bytes();
        Batch::default().with(&table, PUT, &key, &[7; 100]).must(&store, MEMORY);
    }
    let first = pair(0);
    let put = first.iter().fold(Batch::default(), |batch, key| batch.with(&table, PUT, key, b"0"));
    put.must(&store, MEMORY);
    let has_ended = AtomicBool::new(false);
    let scans = std::thread::scope(|scope| {
        let scanner = scope.spawn(|| {
            let mut scans = 0;
            while scans < SCANS_MIN || !has_ended.load(Ordering::Relaxed) {
                let flags = AT_ONE_MOMENT | if scans % 2 == 0 { 0 } else { DESCENDING };
                let bounds = (&b""[..], None);
                let page = table.page(bounds, flags, (u64::MAX, 1 << 20));
                let (mut rows, goes_on, _) = page.unwrap();
                rows.retain(|row| !row.key.starts_with(b"m"));
                rows.sort_by(|left, right| left.key.cmp(&right.key));
                let [left, right] = &rows[..] else { panic!("{rows:?}") };
                assert!(!goes_on && left.key[1..] == right.key[1..], "{rows:?}");
                assert_eq!(left.base, right.base);
                scans += 1;
            }
            scans
        });
        for number in 0..MOVES {
            let mut batch = Batch::default();
            for key in pair(number % PLACES) {
                batch = batch.with(&table, REMOVE, &key, b"");
            }
            for key in pair((number + 1) % PLACES) {
                batch = batch.with(&table, PUT, &key, &number.to_le_bytes());
            }
            // Others wait for merges with the pair.
            let key = format!("m {:03}", number * 37 % 400).into_bytes();
            batch.with(&table, PUT, &key, &[9; 100]).must(&store, MEMORY);
        }
        has_ended.store(true, Ordering::Relaxed);
        scanner.join().unwrap()
    });
    assert!(scans >= SCANS_MIN);
}

#[test]
fn a_page_by_rank_is_of_no_one_moment() {
    let folder = Folder::new("tables-moments-rank");
    let store = open(&folder, "");
    let table = Table::open_counted(&store, b"counted").unwrap();
    let mut page = [0_u8; 1000];
    let (out, room) = (page.as_mut_ptr() as u64, page.len() as u64);
    let mut words = [0, 0, 0, 0, BY_RANK | AT_ONE_MOMENT, 1, out, room, 0, 0];
    // SAFETY: the words and the page outlive the call.
    let scanned = unsafe { entresol_table_scan(table.0, words.as_mut_ptr() as i64) };
    assert!(checked(scanned).unwrap_err().contains("a rank or one moment, found both"));
}
