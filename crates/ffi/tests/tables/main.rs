//! Ordered tables through the functions that C and Java call.
#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]
#![expect(unsafe_code, reason = "what callers in other languages do")]

mod caller;
mod gets;
mod moments;
#[expect(dead_code, reason = "what callers of stores need")]
#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use caller::{
    ABSENT, ADD, Batch, Cut, DESCENDING, MEMORY, PRESENT, PUT, REMOVE, Row, SYNCED, Table, VALUE,
    checked, figures, held_back, open, plain,
};
use entresol_ffi::tables::*;
use support::{Folder, MIB, Store};

#[test]
fn rows_are_found_by_key_and_in_order_both_ways_also_after_an_opening() {
    let folder = Folder::new("tables");
    let key = |number: u32| format!("row {number:06}").into_bytes();
    let value = |number: u32| vec![number as u8; number as usize % 300];
    let (count, mut expected) = (5000_u32, Vec::new());
    let mut store = open(&folder, "tables-waiting=100000");
    for life in 0..2 {
        let table = Table::open(&store, b"rows").unwrap();
        if life == 0 {
            for first in (0..count).step_by(50) {
                let numbers = (first..first + 50).map(|number| number * 37 % count);
                let batch = numbers.fold(Batch::default(), |batch, number| {
                    batch.with(&table, PUT, &key(number), &value(number))
                });
                batch.must(&store, MEMORY);
            }
            Batch::default().with(&table, REMOVE, &key(17), b"").must(&store, SYNCED);
            let numbers = (0..count).filter(|number| *number != 17);
            expected = numbers.map(|number| plain(&key(number), &value(number))).collect();
        }
        for row in expected.iter().step_by(97) {
            assert_eq!(table.get(&row.key).unwrap().as_ref(), Some(row));
        }
        assert_eq!(table.get(&key(17)).unwrap(), None);
        for room in [1000, 64 << 10, 4 << 20] {
            assert!(table.scan(0, room) == expected, "upwards in {room} bytes");
            let mut down = table.scan(DESCENDING, room);
            down.reverse();
            assert!(down == expected, "downwards in {room} bytes");
        }
        let bounds = (&key(100)[..], Some(&key(200)[..]));
        let (rows, goes_on, _) = table.page(bounds, 0, (u64::MAX, 1 << 20)).unwrap();
        assert_eq!((rows.as_slice(), goes_on), (&expected[99..199], false));
        let (rows, goes_on, _) = table.page(bounds, DESCENDING, (3, 1 << 20)).unwrap();
        assert!(goes_on && rows[0] == expected[198] && rows.len() == 3);
        // No room: nothing is written, and what is needed is said.
        let (bytes, out) = table.get_with(&key(299), 40).unwrap();
        assert_eq!((bytes, out), (8 + 299, vec![0; 40]));
        let bounds = (&key(299)[..], None);
        assert_eq!(table.page(bounds, 0, (9, 20)).unwrap(), (vec![], true, 8 + 10 + 8 + 299));
        drop(table);
        store.close();
        drop(store);
        store = open(&folder, "");
    }
    let table = Table::open(&store, b"rows").unwrap();
    table.drop_rows();
    assert_eq!((table.get(&key(1)).unwrap(), table.scan(0, 1000)), (None, vec![]));
    Batch::default().with(&table, PUT, b"new", b"row").must(&store, 0);
    assert_eq!(table.scan(0, 1000), [plain(b"new", b"row")]);
}

#[test]
fn a_table_that_keeps_counts_tells_counts_and_finds_rows_by_rank() {
    let folder = Folder::new("tables-counted");
    let key = |number: u32| format!("row {number:06}").into_bytes();
    let mut store = open(&folder, "tables-waiting=100000");
    for life in 0..2 {
        let table = Table::open_counted(&store, b"counted").unwrap();
        if life == 0 {
            for number in 0..2000 {
                Batch::default().with(&table, PUT, &key(number), b"a value").must(&store, MEMORY);
            }
            Batch::default().with(&table, REMOVE, &key(500), b"").must(&store, SYNCED);
        }
        assert_eq!(table.count(&[], &[]), Ok(1999));
        assert_eq!(table.count(&[], &key(1000)), Ok(999));
        assert_eq!(table.count(&key(400), &key(600)), Ok(199));
        assert_eq!(table.count(&key(1990), &[]), Ok(10));
        let (rows, error) = table.estimate(&key(400), &key(1600));
        assert!(rows.abs_diff(1199) <= error.unwrap() && error.unwrap() < 1000, "{rows} {error:?}");
        assert_eq!(table.keys_from(999, 0, 2), [key(1000), key(1001)]);
        assert_eq!(table.keys_from(0, DESCENDING, 5), [key(0)]);
        assert_eq!(table.keys_from(500, DESCENDING, 2), [key(501), key(499)]);
        assert_eq!(table.keys_from(1999, 0, 1), Vec::<Vec<u8>>::new());
        // It is opened by its name alone as well.
        assert_eq!(Table::open(&store, b"counted").unwrap().count(&[], &[]), Ok(1999));
        drop(table);
        store.close();
        drop(store);
        store = open(&folder, "");
    }
    let plain = Table::open(&store, b"plain").unwrap();
    Batch::default().with(&plain, PUT, b"key", b"value").must(&store, MEMORY);
    let why = "ordered table `plain` keeps no counts; expected one that keeps them";
    assert!(plain.count(&[], &[]).unwrap_err().contains(why));
    assert!(Table::open_counted(&store, b"plain").map(drop).unwrap_err().contains(why));
}

#[test]
fn batches_are_written_over_tables_if_all_conditions_hold() {
    let folder = Folder::new("tables-conditions");
    let store = open(&folder, "");
    let (left, right) = (Table::open(&store, b"left").unwrap(), Table::open(&store, b"right"));
    let right = right.unwrap();
    let both = |first: u32, expected: &[u8], value: &[u8]| {
        Batch::default()
            .with(&left, first, b"k", expected)
            .with(&right, ABSENT, b"nobody", b"")
            .with(&left, PUT, b"k", value)
            .with(&right, PUT, b"k", value)
    };
    assert_eq!(both(PRESENT, b"", b"1").write(&store, 0).unwrap(), Err(0));
    assert_eq!((left.get(b"k").unwrap(), right.get(b"k").unwrap()), (None, None));
    assert!(both(ABSENT, b"", b"1").write(&store, 0).unwrap().is_ok());
    assert!(both(VALUE, b"1", b"2").write(&store, 0).unwrap().is_ok());
    assert_eq!(both(VALUE, b"1", b"3").write(&store, 0).unwrap(), Err(0));
    Batch::default().with(&right, PUT, b"nobody", b"").must(&store, 0);
    assert_eq!(both(PRESENT, b"", b"3").write(&store, 0).unwrap(), Err(1));
    for table in [&left, &right] {
        assert_eq!(table.get(b"k").unwrap(), Some(plain(b"k", b"2")));
    }
}

#[test]
fn what_is_wrong_is_refused_with_a_sentence() {
    let folder = Folder::new("tables-misuse");
    let store = open(&folder, "");
    let table = Table::open(&store, b"t").unwrap();
    let other_folder = Folder::new("tables-misuse-other");
    let other = open(&other_folder, "");
    let refused = |batch: &Batch| batch.write(&store, 0).unwrap_err();
    assert!(refused(&Batch::default()).contains("without a change"));
    let good = Batch::default().with(&table, PUT, b"key", b"value");
    for cut in 1..good.0.len() {
        assert!(refused(&Batch(good.0[..cut].to_vec())).contains("byte 0 of a batch"), "{cut}");
    }
    for kind in [0, 7, u32::MAX] {
        let wrong = Batch::default().with(&table, PUT, b"k", b"v").with(&table, kind, b"k", b"v");
        assert!(refused(&wrong).contains("byte 26 of a batch: expected kind 1 to 6"));
    }
    let removal = Batch::default().with(&table, REMOVE, b"key", b"value");
    assert!(refused(&removal).contains("found kind 2 with 5 bytes"));
    assert!(refused(&Batch::default().with(&table, PUT, b"", b"v")).contains("1 to "));
    let long = vec![7; 70_000];
    assert!(refused(&Batch::default().with(&table, PUT, &long, b"v")).contains("70000 bytes"));
    let foreign = good.write(&other, 0).unwrap_err();
    assert!(foreign.contains("a table of another one"), "{foreign}");
    let nowhere = Batch(std::iter::repeat_n(0, 24).collect());
    assert!(refused(&nowhere).contains("expected the address of a table, found 0"));
    assert!(table.get(b"").unwrap_err().contains("0 bytes"));
    assert!(Table::open(&store, b"").err().unwrap().contains("name has 0 bytes"));
    assert!(Table::open(&store, &long).err().unwrap().contains("70000"));
    assert_eq!(table.scan(0, 100), []);
    let plain = Folder::new("tables-without-journal");
    let plain = Store::open(&plain.file(), &format!("capacity={}", 64 * MIB)).unwrap();
    let said = Table::open(&plain, b"t").err().unwrap();
    assert!(said.contains("no journal"), "{said}");
    store.close();
    for said in [
        table.get(b"k").unwrap_err(),
        good.write(&store, 0).unwrap_err(),
        table.page((b"", None), 0, (1, 100)).unwrap_err(),
        Table::open(&store, b"t").err().unwrap(),
    ] {
        assert!(said.contains("closed"), "{said}");
    }
}

/// What one thread of a caller's does for merges, as its `fold` says, until the store is closed.
fn listen(store: i64, mut fold: impl FnMut(u64, Vec<Row>) -> Result<Vec<u8>, String>) -> usize {
    let (mut words, mut questions) = ([0_u64; 8], 0);
    loop {
        // SAFETY: the words and the answers outlive the call.
        let rows = unsafe { entresol_tables_fold(store, words.as_mut_ptr() as i64) };
        let rows = checked(rows).unwrap() as usize;
        if rows == 0 {
            return questions;
        }
        questions += 1;
        // SAFETY: the question's bytes stay until the next call.
        let bytes = unsafe { std::slice::from_raw_parts(words[4] as *const u8, words[5] as usize) };
        let asked = Cut(bytes).records();
        assert_eq!(asked.len(), rows);
        let (kind, answer) = match fold(words[6], asked) {
            Ok(answers) => (1, answers),
            Err(why) => (2, why.into_bytes()),
        };
        (words[1], words[3]) = (kind, answer.len() as u64);
        words[2] = Box::leak(answer.into_boxed_slice()).as_ptr() as u64;
    }
}

/// Closes a store.
struct Closing<'s>(&'s Store);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

fn answer(kind: u32, value: &[u8]) -> Vec<u8> {
    let mut bytes = kind.to_le_bytes().to_vec();
    bytes.extend((value.len() as u32).to_le_bytes());
    bytes.extend(value);
    bytes
}

#[test]
fn merges_ask_the_callers_function_and_wait_where_it_fails() {
    let folder = Folder::new("tables-folds");
    let store = open(&folder, "tables-waiting=60000");
    let table = Table::open(&store, b"sums").unwrap();
    let (refusals, answers) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let listening = std::thread::scope(|scope| {
        let (refusals, answers, address) = (&refusals, &answers, store.address);
        // Where something fails the listener is not waited for in vain.
        let closing = Closing(&store);
        let listener = scope.spawn(move || {
            listen(address, |function, rows| {
                assert_eq!(function, 9);
                if refusals.fetch_add(1, Ordering::Relaxed) < 2 {
                    return Err("it is not in the mood".to_owned());
                }
                Ok(rows
                    .into_iter()
                    .flat_map(|row| {
                        answers.fetch_add(1, Ordering::Relaxed);
                        let sum: usize = row.parts.iter().map(Vec::len).sum();
                        let base = row.base.map_or(0, |base| base.len());
                        match (row.parts.len(), base + sum) {
                            (0, _) => answer(0, b""),
                            (_, sum) if sum > 400 => answer(2, b""),
                            (_, sum) => answer(1, &vec![b'+'; sum]),
                        }
                    })
                    .collect())
            })
        });
        // SAFETY: the table is open.
        checked(unsafe { entresol_table_merge(table.0, 9, 1) }).unwrap();
        let mut model = BTreeMap::<Vec<u8>, usize>::new();
        let mut told = String::new();
        for turn in 0..40_000_usize {
            let key = format!("{:03}", turn * 7 % 900).into_bytes();
            let sum = model.entry(key.clone()).or_default();
            *sum += turn % 9;
            let part = vec![b'.'; turn % 9];
            let batch = Batch::default().with(&table, ADD, &key, &part);
            // A writer whose own merges met each failure is told so, and comes again. Before the
            // listener's thread begins there is one more.
            while let Err(why) = batch.write(&store, MEMORY) {
                assert!(why.contains("its merge function failed"), "{why}");
                told = why;
            }
            if !told.contains("mood") && turn % 100 == 0 {
                told = held_back(&store);
            }
            if *sum > 400 {
                // As the function does, and before it may.
                Batch::default().with(&table, REMOVE, &key, b"").must(&store, MEMORY);
                model.remove(&key);
            }
        }
        assert!(told.contains("it is not in the mood"), "{told}");
        assert!(told.contains("`sums`"), "{told}");
        for row in table.scan(0, 5000) {
            let sum = row.base.map_or(0, |base| base.len()) + row.parts.concat().len();
            assert_eq!(model.remove(&row.key), Some(sum), "{:?}", row.key);
        }
        assert_eq!(model, BTreeMap::new());
        drop(closing);
        listener.join().unwrap()
    });
    assert!(listening > 10 && answers.load(Ordering::Relaxed) > 1000, "{listening} questions");
}

#[test]
fn each_table_has_figures_of_its_own_by_its_name() {
    let folder = Folder::new("tables-figures");
    let store = open(&folder, "");
    assert_eq!(figures(&store), serde_json::json!([]));
    let (one, other) =
        (Table::open(&store, b"one").unwrap(), Table::open(&store, &[0xff]).unwrap());
    Batch::default().with(&one, PUT, b"key", &[1; 7]).must(&store, MEMORY);
    Batch::default().with(&other, PUT, b"a", b"").with(&other, PUT, b"b", b"").must(&store, MEMORY);
    let found = figures(&store);
    let of = |name: &str, figure: &str| {
        let table = found.as_array().unwrap().iter().find(|table| table["name"] == name).unwrap();
        table[figure].as_u64().unwrap()
    };
    assert_eq!((of("6f6e65", "changes"), of("6f6e65", "change_bytes")), (1, 10));
    assert_eq!(
        (of("ff", "changes"), of("ff", "waiting_changes"), of("ff", "page_bytes")),
        (2, 2, 0)
    );
    assert!(of("ff", "memory_bytes") > 0);
}

#[test]
fn without_a_listener_parts_wait_and_writers_are_told_why_they_cannot_go_on() {
    let folder = Folder::new("tables-nobody");
    let store = open(&folder, "tables-waiting=20000");
    let table = Table::open(&store, b"parts").unwrap();
    // SAFETY: the table is open.
    checked(unsafe { entresol_table_merge(table.0, 1, 0) }).unwrap();
    let batch = Batch::default().with(&table, ADD, b"key", &[1; 500]);
    let (mut written, mut said) = (0, None);
    while said.is_none() && written < 1000 {
        said = batch.write(&store, MEMORY).err();
        written += usize::from(said.is_none());
    }
    let said = said.unwrap();
    assert!(said.contains("no thread listens"), "{said}");
    let row = table.get(b"key").unwrap().unwrap();
    assert_eq!((row.base, row.parts.len()), (None, written));
    store.close();
    drop(table);
    drop(store);
    let store = open(&folder, "");
    let table = Table::open(&store, b"parts").unwrap();
    assert_eq!(table.get(b"key").unwrap().unwrap().parts.len(), written);
}

#[test]
fn threads_share_tables_until_the_store_is_closed_beneath_them() {
    let folder = Folder::new("tables-threads");
    let store = open(&folder, "tables-waiting=200000\ndurability=synced");
    let table = Table::open(&store, b"t").unwrap();
    let acknowledged: Vec<AtomicUsize> = (0..40).map(|_| AtomicUsize::new(0)).collect();
    std::thread::scope(|scope| {
        for (thread, acknowledged) in acknowledged.iter().enumerate() {
            let (store, table) = (&store, &table);
            scope.spawn(move || {
                for number in 0.. {
                    let key = format!("{thread:02} {number:06}").into_bytes();
                    match Batch::default().with(table, PUT, &key, &key).write(store, 0) {
                        Ok(written) => assert!(written.unwrap() > 0),
                        Err(said) => return assert!(said.contains("closed"), "{said}"),
                    }
                    acknowledged.store(number + 1, Ordering::Relaxed);
                    match table.get(&key) {
                        Ok(row) => assert_eq!(row, Some(plain(&key, &key))),
                        Err(said) => return assert!(said.contains("closed"), "{said}"),
                    }
                }
            });
        }
        while acknowledged.iter().any(|count| count.load(Ordering::Relaxed) < 20) {
            std::thread::yield_now();
        }
        store.close();
    });
    drop((table, store));
    let store = open(&folder, "");
    let table = Table::open(&store, b"t").unwrap();
    for (thread, acknowledged) in acknowledged.iter().enumerate() {
        let low = format!("{thread:02} ").into_bytes();
        let high = format!("{thread:02}!").into_bytes();
        let bounds = (&low[..], Some(&high[..]));
        let (rows, _, _) = table.page(bounds, 0, (u64::MAX, 4 << 20)).unwrap();
        let least = acknowledged.load(Ordering::Relaxed);
        assert!((least..=least + 1).contains(&rows.len()), "{} of {least}", rows.len());
    }
}
