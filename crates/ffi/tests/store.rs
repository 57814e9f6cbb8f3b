//! The functions for flash stores and their console, called as C calls them.
#![expect(unsafe_code, clippy::unwrap_used, reason = "a caller in another language")]

mod console;
mod support;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use entresol_ffi::store::*;

use support::*;

#[test]
fn operations_have_their_outcomes_and_survive_a_close() {
    let folder = Folder::new("operations");
    let capacity = format!("capacity={}", 64 * MIB);
    let mut store = Store::open(&folder.file(), &capacity).unwrap();
    assert_eq!(store.run(GET, 0, b"absent", b"").kind, MISSING);
    let first = store.run(PUT, 0, b"key", b"value");
    assert_eq!(first.kind, STORED);
    let found = store.run(GET, 0, b"key", b"");
    assert_eq!((found.kind, found.number, &*found.value), (FOUND, first.number, &b"value"[..]));
    let there = store.run(CONTAINS, 0, b"key", b"");
    assert_eq!((there.kind, there.value.len()), (FOUND, 0));
    // Condition 1: absent.
    assert_eq!(store.run_with(PUT, (0, b"key"), b"other", |row| row[10] = 1).kind, REFUSED);
    assert_eq!(store.run_with(PUT, (0, b"new"), b"other", |row| row[10] = 1).kind, STORED);
    assert_eq!(store.count(None), 2);
    assert_eq!(store.run(REMOVE, 0, b"new", b"").kind, REMOVED);
    assert_eq!(store.run(REMOVE, 0, b"new", b"").kind, MISSING);
    // Larger than the place for outcomes, and than a segment.
    for length in [1000, 3 << 20] {
        let value = value_of(1, length);
        assert_eq!(store.run(PUT, 0, b"large", &value).kind, STORED);
        let found = store.run(GET, 0, b"large", b"");
        assert_eq!((found.kind, found.value), (FOUND, value));
    }
    let refused = store.run(PUT, 0, b"", b"");
    assert_eq!((refused.kind, refused.number), (FAILED, 2));
    assert!(refused.sentence().contains("a key of 0 bytes"), "{}", refused.sentence());
    store.close();
    let late = store.run(GET, 0, b"key", b"");
    assert_eq!((late.kind, late.number), (FAILED, 5));
    assert_eq!(store.reap(), 0);
    drop(store);
    let mut again = Store::open(&folder.file(), "").unwrap();
    assert_eq!(again.run(GET, 0, b"key", b"").value, b"value");
    assert_eq!(again.run(GET, 0, b"large", b"").value, value_of(1, 3 << 20));
}

#[test]
fn every_level_of_durability_acknowledges_and_reads_come_from_the_device() {
    for level in ["memory", "process", "flushed", "periodic:20", "synced"] {
        let folder = Folder::new(&format!("level-{}", level.split(':').next().unwrap()));
        let options = format!("capacity={}\ndurability={level}\ncache=0", 96 * MIB);
        let mut store = Store::open(&folder.file(), &options).unwrap();
        let count = 4000;
        let mut waiting = Vec::new();
        for number in 0..count {
            let mut words = [0; 16];
            words[0] = PUT;
            let (key, value) = (number.to_string(), value_of(number, 8000));
            if !store.begin(&mut words, key.as_bytes(), &value, &mut [0; 16]) {
                waiting.push(words[1]);
            }
        }
        for token in waiting {
            assert_eq!(store.wait(token)[0].kind, STORED);
        }
        assert_eq!(store.job(1, 0).kind, DONE);
        for number in 0..count {
            let found = store.run(GET, 0, number.to_string().as_bytes(), b"");
            assert_eq!(found.value, value_of(number, 8000), "{level} {number}");
        }
        // SAFETY: the store is open.
        let figures = text_at(unsafe { entresol_store_statistics(store.address) });
        let flash = figures.split("\"flash_hits\":").nth(1).unwrap();
        let flash: u64 = flash.split(',').next().unwrap().parse().unwrap();
        assert!(flash > 100, "{figures}");
    }
}

#[test]
fn figures_tell_for_how_long_the_device_has_not_answered() {
    let folder = Folder::new("pending");
    let options = format!("capacity={}\ndurability=synced", 96 * MIB);
    let mut store = Store::open(&folder.file(), &options).unwrap();
    assert_eq!(store.run(PUT, 0, b"k", b"v").kind, STORED);
    assert_eq!(figure(&store, "oldest_pending_io_seconds"), 0);
}

/// A figure of the store's.
fn figure(store: &Store, name: &str) -> u64 {
    // SAFETY: the store is open.
    let figures = text_at(unsafe { entresol_store_statistics(store.address) });
    let (_, rest) = figures.split_once(&format!("\"{name}\":")).unwrap();
    rest.split([',', '}']).next().unwrap().parse().unwrap()
}

#[test]
fn gets_that_may_wait_are_answered_in_the_call_if_there_is_room_for_the_answer() {
    let folder = Folder::new("waiting");
    let options = format!("capacity={}\ndurability=flushed\ncache=0", 96 * MIB);
    let mut store = Store::open(&folder.file(), &options).unwrap();
    let count = 4000;
    for number in 0..count {
        let written = store.run(PUT, 0, number.to_string().as_bytes(), &value_of(number, 8000));
        assert_eq!(written.kind, STORED);
    }
    let before = figure(&store, "flash_hits");
    for number in 0..count {
        let (key, mut out, mut words) = (number.to_string(), [0; 1100], [0; 16]);
        words[0] = GET | WAITS;
        assert!(store.begin(&mut words, key.as_bytes(), b"", &mut out), "{number}");
        let found = records(out.as_ptr() as u64, out[0]).remove(0);
        assert_eq!((found.token, found.value), (words[1], value_of(number, 8000)));
        let small = store.run(GET | WAITS, 0, key.as_bytes(), b"");
        assert_eq!(small.value, value_of(number, 8000), "reaped: the place is too small");
        assert_eq!(store.run(CONTAINS | WAITS, 0, key.as_bytes(), b"").value, b"");
    }
    assert!(figure(&store, "flash_hits") > before + 100);
    assert_eq!(store.run(GET | WAITS, 0, b"nobody", b"").kind, MISSING);
    store.close();
    let late = store.run(GET | WAITS, 0, b"1", b"");
    assert!(late.sentence().contains("closed"), "{}", late.sentence());
}

#[test]
fn more_callers_than_may_wait_at_once_get_their_answers_while_the_store_is_closed() {
    let folder = Folder::new("callers");
    let options = format!("capacity={}\ndurability=flushed\ncache=0", 96 * MIB);
    let mut store = Store::open(&folder.file(), &options).unwrap();
    for number in 0..1000 {
        store.run(PUT, 0, number.to_string().as_bytes(), &value_of(number, 8000));
    }
    let (callers, rounds) = (48, 50);
    let reaped = std::thread::scope(|scope| {
        let store = &store;
        let callers: Vec<_> = (0..callers)
            .map(|caller| {
                scope.spawn(move || {
                    let mut left = Vec::new();
                    for round in 0..rounds {
                        let number = (caller * 31 + round * 17) % 1000;
                        let (key, mut out, mut words) = (number.to_string(), [0; 1100], [0; 16]);
                        words[0] = GET | WAITS;
                        if !store.begin(&mut words, key.as_bytes(), b"", &mut out) {
                            left.push((words[1], number));
                            continue;
                        }
                        let found = records(out.as_ptr() as u64, out[0]).remove(0);
                        let closed = found.kind == FAILED && found.sentence().contains("closed");
                        assert!(closed || found.value == value_of(number, 8000), "{found:?}");
                    }
                    left
                })
            })
            .collect();
        store.close();
        callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect::<Vec<_>>()
    });
    for (token, number) in reaped {
        let found = store.wait(token).remove(0);
        let closed = found.kind == FAILED && found.sentence().contains("closed");
        assert!(closed || found.value == value_of(number, 8000), "{found:?}");
    }
}

#[test]
fn gets_that_wait_and_follow_the_log_are_read_ahead() {
    let folder = Folder::new("ahead");
    let options = format!("capacity={}\ndurability=flushed\nsegment={MIB}", 256 * MIB);
    let mut store = Store::open(&folder.file(), &options).unwrap();
    let count = 40_000;
    for number in 0..count {
        store.run(PUT, 0, number.to_string().as_bytes(), &value_of(number, 3000));
    }
    let before = figure(&store, "flash_hits");
    for number in 0..count {
        let found = store.run(GET | WAITS, 0, number.to_string().as_bytes(), b"");
        assert_eq!(found.value, value_of(number, 3000));
    }
    assert!(figure(&store, "segments_ahead") > 10);
    assert!(figure(&store, "flash_hits") - before < count as u64 / 2);
}

#[test]
fn scans_give_the_wanted_partitions_and_drops_take_them() {
    let folder = Folder::new("scans");
    let mut store = Store::open(&folder.file(), &format!("capacity={}", 64 * MIB)).unwrap();
    for number in 0..3000_u64 {
        let value = value_of(number as usize, 100);
        assert_eq!(store.run(PUT, number % 7, &number.to_be_bytes(), &value).kind, STORED);
    }
    let numbers = |entries: &[Record]| {
        let mut found: Vec<u64> = entries
            .iter()
            .map(|entry| {
                let number = u64::from_be_bytes(entry.key.as_slice().try_into().unwrap());
                assert_eq!(entry.value, value_of(number as usize, 100));
                number
            })
            .collect();
        found.sort_unstable();
        found
    };
    let all: Vec<u64> = (0..3000).collect();
    assert_eq!(numbers(&store.scan(None, 50)), all);
    let some = |wanted: &dyn Fn(u64) -> bool| -> Vec<u64> {
        all.iter().copied().filter(|number| wanted(number % 7)).collect()
    };
    assert_eq!(numbers(&store.scan(Some(&[2, 5]), 1000)), some(&|p| p == 2 || p == 5));
    assert_eq!(store.scan(Some(&[]), 10), []);
    assert_eq!(store.count(Some(2)), some(&|p| p == 2).len() as i64);
    assert_eq!(store.job(2, 2 << 16).kind, DONE);
    assert_eq!(store.count(Some(2)), 0);
    assert_eq!(numbers(&store.scan(None, 100)), some(&|p| p != 2));
    assert_eq!(store.run(GET, 2, &2_u64.to_be_bytes(), b"").kind, MISSING);
    assert_eq!(store.job(3, 0).kind, DONE);
    assert_eq!((store.count(None), store.scan(None, 10)), (0, vec![]));
}

#[test]
fn partitions_scanned_one_after_another_read_each_entry_twice_at_most() {
    let folder = Folder::new("partitions");
    let options = format!("capacity={}\ndurability=flushed\ncache=0", 96 * MIB);
    let mut store = Store::open(&folder.file(), &options).unwrap();
    let (partitions, each) = (64, 100);
    let value = |partition: u64, number: u64| value_of((partition * 1000 + number) as usize, 3000);
    for number in 0..each {
        for partition in 0..partitions {
            let key = format!("{partition} {number}");
            store.run(PUT, partition, key.as_bytes(), &value(partition, number));
        }
    }
    let before = figure(&store, "device_reads");
    for partition in 0..partitions {
        let mut found: Vec<(Vec<u8>, Vec<u8>)> = store
            .scan(Some(&[partition as u16]), 40)
            .into_iter()
            .map(|entry| (entry.key, entry.value))
            .collect();
        found.sort();
        let numbers = (0..each).filter(|number| partition == 0 || *number != 7);
        let new = if partition == 0 { None } else { Some(each) };
        let mut expected: Vec<(Vec<u8>, Vec<u8>)> = numbers
            .chain(new)
            .map(|number| {
                let key = format!("{partition} {number}").into_bytes();
                (key, value(partition, if number == 9 && partition > 0 { 10 } else { number }))
            })
            .collect();
        expected.sort();
        assert!(found == expected, "partition {partition}");
        // The next one changes after the entries of all were seen.
        let next = partition + 1;
        store.run(REMOVE, next, format!("{next} 7").as_bytes(), b"");
        store.run(PUT, next, format!("{next} 9").as_bytes(), &value(next, 10));
        store.run(PUT, next, format!("{next} {each}").as_bytes(), &value(next, each));
    }
    let reads = figure(&store, "device_reads") - before;
    assert!(reads < 5 * partitions * each / 2, "{reads} reads");
}

/// The scan of another partition before it noted the names of all but those.
#[test]
fn entries_that_are_damaged_are_told_of_by_each_scan_of_their_partition() {
    let folder = Folder::new("damaged-partition");
    let options = format!("capacity={}\ndurability=flushed\ncache=0", 64 * MIB);
    let mut store = Store::open(&folder.file(), &options).unwrap();
    for number in 0..20 {
        for partition in [3, 5] {
            let value = format!("{partition} {number:02} of the entries ").repeat(20);
            let key = format!("{partition} {number}");
            store.run(PUT, partition, key.as_bytes(), value.as_bytes());
        }
    }
    store.close();
    drop(store);
    let mut bytes = std::fs::read(folder.file()).unwrap();
    let value = b"5 07 of the entries 5 07 of";
    let at = bytes.windows(value.len()).position(|window| window == value).unwrap();
    bytes[at + 9] ^= 1;
    std::fs::write(folder.file(), bytes).unwrap();
    let mut store = Store::open(&folder.file(), "cache=0").unwrap();
    for partition in [5, 3, 5, 3, 5] {
        let (entries, damage) = store.scan_with_damage(&[partition]);
        let (expected, told) = if partition == 5 { (19, 1) } else { (20, 0) };
        assert_eq!((entries.len(), damage.len()), (expected, told), "{partition}: {damage:?}");
    }
}

#[test]
fn what_was_answered_before_a_partition_is_scanned_is_in_its_scan() {
    let folder = Folder::new("scanned-meanwhile");
    let options = format!("capacity={}\ndurability=process", 128 * MIB);
    let mut store = Store::open(&folder.file(), &options).unwrap();
    let partitions = 16;
    for number in 0..3000 {
        store.run(PUT, number % partitions, format!("old {number}").as_bytes(), &[1; 2000]);
    }
    let answered: Vec<AtomicU64> = (0..partitions).map(|_| AtomicU64::new(0)).collect();
    let ended = std::sync::atomic::AtomicBool::new(false);
    let writer = std::mem::ManuallyDrop::new(Store {
        address: store.address,
        reaped: HashMap::new(),
        tokens: AtomicU64::new(1 << 40),
    });
    std::thread::scope(|scope| {
        let (answered, ended) = (&answered, &ended);
        scope.spawn(move || {
            for number in 0.. {
                let partition = number % partitions;
                let place = &answered[partition as usize];
                let mut words = [0; 16];
                (words[0], words[3]) = (PUT, partition << 16);
                let key = format!("new {partition} {}", place.load(Ordering::Acquire));
                if ended.load(Ordering::Acquire) || number > 40_000 {
                    return;
                }
                if writer.begin(&mut words, key.as_bytes(), &[2; 100], &mut [0; 16]) {
                    place.fetch_add(1, Ordering::Release);
                }
            }
        });
        for round in 0..4 {
            for partition in 0..partitions as u16 {
                let expected = answered[usize::from(partition)].load(Ordering::Acquire);
                let found = store.scan(Some(&[partition]), 100);
                let found: std::collections::HashSet<Vec<u8>> =
                    found.into_iter().map(|entry| entry.key).collect();
                for number in 0..expected {
                    let key = format!("new {partition} {number}");
                    assert!(found.contains(key.as_bytes()), "{round}, {partition}: {key}");
                }
            }
        }
        ended.store(true, Ordering::Release);
    });
}

#[test]
fn writes_that_do_not_wait_for_a_drop_come_after_it_and_in_their_order() {
    let folder = Folder::new("order");
    let mut store = Store::open(&folder.file(), &format!("capacity={}", 64 * MIB)).unwrap();
    for round in 0..500_usize {
        let mut waiting = vec![store.begin_job(2, 3 << 16)];
        for number in 0..20 {
            let mut words = [0; 16];
            (words[0], words[3]) = (PUT, 3 << 16);
            let (key, value) = ([number % 4], value_of(round + usize::from(number), 300));
            if !store.begin(&mut words, &key, &value, &mut [0; 16]) {
                waiting.push(words[1]);
            }
        }
        for token in waiting {
            assert!([STORED, DONE].contains(&store.wait(token)[0].kind), "round {round}");
        }
        for number in 0..4_u8 {
            let found = store.run(GET, 3, &[number], b"");
            assert_eq!(found.value, value_of(round + 16 + usize::from(number), 300), "{round}");
        }
    }
}

#[test]
fn entries_end_by_the_clock_of_the_caller() {
    let folder = Folder::new("clock");
    let mut store = Store::open(&folder.file(), &format!("capacity={}", 64 * MIB)).unwrap();
    let at = |now: u64, expiry: u64| move |row: &mut [u64; 16]| (row[2], row[8]) = (now, expiry);
    assert_eq!(store.run_with(PUT, (0, b"key"), b"value", at(1_000, 2_000)).kind, STORED);
    assert_eq!(store.run_with(GET, (0, b"key"), b"", at(1_999, 0)).kind, FOUND);
    assert_eq!(store.run_with(GET, (0, b"key"), b"", at(2_000, 0)).kind, MISSING);
}

#[test]
fn writers_of_a_crowded_store_lose_nothing_and_a_full_one_says_so() {
    let folder = Folder::new("crowded");
    let options = format!("capacity={}\nshards=1\nsegment={MIB}", 48 * MIB);
    let mut store = Store::open(&folder.file(), &options).unwrap();
    let mut latest = HashMap::new();
    for round in 0..12_000_usize {
        let key = (round * 7919) % 1500;
        let value = value_of(round, 16_000);
        let record = store.run(PUT, 0, key.to_string().as_bytes(), &value);
        assert_eq!(record.kind, STORED, "{round}: {}", record.sentence());
        latest.insert(key, round);
    }
    for (key, round) in &latest {
        let found = store.run(GET, 0, key.to_string().as_bytes(), b"");
        assert_eq!(found.value, value_of(*round, 16_000), "key {key}");
    }
    let full = (0..3000).map(|number| {
        store.run(PUT, 0, format!("more {number}").as_bytes(), &value_of(number, 16_000))
    });
    let refused = full.into_iter().find(|record| record.kind == FAILED).unwrap();
    assert_eq!(refused.number, 1, "{}", refused.sentence());
    assert!(refused.sentence().contains("full"), "{}", refused.sentence());
    let key = latest.keys().next().unwrap().to_string();
    assert_eq!(store.run(GET, 0, key.as_bytes(), b"").kind, FOUND);
}

#[test]
fn a_store_that_cannot_be_opened_says_why() {
    let folder = Folder::new("refused");
    let missing = Store::open(&folder.file(), "").err().unwrap();
    assert!(missing.contains("exists"), "{missing}");
    let wrong = Store::open(&folder.file(), "durability=forever").err().unwrap();
    assert!(wrong.contains("found 'forever'"), "{wrong}");
    let small = Store::open(&folder.file(), &format!("capacity={}\nmemory=1", 64 * MIB));
    assert!(small.err().unwrap().contains("a memory cap of 1 bytes"));
    assert!(!folder.file().exists(), "made for nothing");
    let _open = Store::open(&folder.file(), &format!("capacity={}", 64 * MIB)).unwrap();
    assert!(Store::open(&folder.file(), "").err().unwrap().contains("in use"));
}
