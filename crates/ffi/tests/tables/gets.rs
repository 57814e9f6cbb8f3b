//! Several gets of one call.

use entresol_ffi::tables::entresol_tables_get;

use crate::caller::{ADD, Batch, Cut, MEMORY, PUT, Row, Table, checked, open, plain};
use crate::support::{Folder, Store};

#[derive(Default)]
struct Gets(Vec<u8>);

impl Gets {
    fn with(mut self, table: &Table, key: &[u8]) -> Gets {
        self.0.extend(table.0.to_le_bytes());
        self.0.extend((key.len() as u32).to_le_bytes());
        self.0.extend(0_u32.to_le_bytes());
        self.0.extend(key);
        self
    }

    /// How many rows there are, how many bytes the answers have, and those that had room.
    fn run(&self, store: &Store, room: usize) -> Result<(i64, usize, Vec<u8>), String> {
        let mut out = vec![0_u8; room];
        let (keys, length) = (self.0.as_ptr() as u64, self.0.len() as u64);
        let mut words = [keys, length, out.as_mut_ptr() as u64, room as u64, 0];
        // SAFETY: the words, the keys and the place outlive the call.
        let found = unsafe { entresol_tables_get(store.address, words.as_mut_ptr() as i64) };
        Ok((checked(found)?, words[4] as usize, out))
    }
}

/// The answers to these keys.
fn answers(bytes: &[u8], keys: &[Vec<u8>]) -> Vec<Option<Row>> {
    let mut cut = Cut(bytes);
    let mut answer = |key: &Vec<u8>| match cut.word() {
        0 => None,
        length => Some(Cut(cut.bytes(length as usize)).row(key)),
    };
    let answers = keys.iter().map(&mut answer).collect();
    assert!(cut.0.is_empty(), "{} bytes are left", cut.0.len());
    answers
}

fn key(number: usize) -> Vec<u8> {
    format!("row {number:05}").into_bytes()
}

fn value(number: usize) -> Vec<u8> {
    // Some are records of their own.
    vec![number as u8; if number.is_multiple_of(97) { 20_000 } else { number % 200 }]
}

#[test]
fn several_gets_answer_as_single_ones_do_in_the_order_of_their_keys() {
    let folder = Folder::new("tables-gets");
    let mut store = open(&folder, "tables-waiting=100000");
    for life in 0..2 {
        let (heads, rows) = (Table::open(&store, b"heads"), Table::open(&store, b"rows"));
        let (heads, rows) = (heads.unwrap(), rows.unwrap());
        if life == 0 {
            for number in (0..3000).filter(|number| number % 7 > 0) {
                let batch = Batch::default().with(&rows, PUT, &key(number), &value(number));
                batch.with(&heads, PUT, &key(number), b"head").must(&store, MEMORY);
            }
            Batch::default().with(&heads, ADD, &key(37), b"part").must(&store, MEMORY);
        }
        for (first, count) in [(0, 2), (500, 1), (7, 0), (3, 3000)] {
            // In no order, and of both tables by turns.
            let keys: Vec<_> = (first..first + count).map(|place| key(place * 37 % 3001)).collect();
            let table = |place: usize| if place.is_multiple_of(2) { &heads } else { &rows };
            let asked = keys.iter().enumerate();
            let gets =
                asked.fold(Gets::default(), |gets, (place, key)| gets.with(table(place), key));
            let single: Vec<_> = keys
                .iter()
                .enumerate()
                .map(|(place, key)| table(place).get(key).unwrap())
                .collect();
            let (found, bytes, out) = gets.run(&store, 8 << 20).unwrap();
            assert!(answers(&out[..bytes], &keys) == single, "{count} keys from {first} on");
            assert_eq!(found as usize, single.iter().flatten().count());
            // No room: nothing is written, and what is needed is said.
            if bytes > 0 {
                let (again, needed, out) = gets.run(&store, bytes - 1).unwrap();
                assert_eq!((again, needed, out), (found, bytes, vec![0; bytes - 1]));
            }
        }
        drop((heads, rows));
        store.close();
        drop(store);
        store = open(&folder, "");
    }
}

#[test]
fn gets_of_what_is_none_are_refused_with_a_sentence() {
    let folder = Folder::new("tables-gets-misuse");
    let (store, other_folder) = (open(&folder, ""), Folder::new("tables-gets-other"));
    let other = open(&other_folder, "");
    let (table, foreign) = (Table::open(&store, b"t").unwrap(), Table::open(&other, b"t").unwrap());
    Batch::default().with(&table, PUT, b"key", b"value").must(&store, MEMORY);
    let good = Gets::default().with(&table, b"key");
    let refused = |gets: &Gets| gets.run(&store, 1000).unwrap_err();
    for cut in 1..good.0.len() {
        assert!(refused(&Gets(good.0[..cut].to_vec())).contains("byte 0 of gets"), "{cut}");
    }
    assert!(refused(&Gets(vec![0; 16])).contains("expected the address of a table, found 0"));
    let mixed = Gets(good.0.clone()).with(&foreign, b"key");
    assert!(refused(&mixed).contains("byte 19 of gets: expected a table of this store"));
    // One that cannot be read fails them all, and the session is as before.
    let with_empty = Gets(good.0.clone()).with(&table, b"").with(&table, b"key");
    assert!(refused(&with_empty).contains("0 bytes"));
    let (found, bytes, out) = good.run(&store, 1000).unwrap();
    let expected = [Some(plain(b"key", b"value"))];
    assert_eq!((found, answers(&out[..bytes], &[b"key".to_vec()])), (1, expected.to_vec()));
    store.close();
    assert!(refused(&good).contains("closed"));
}
