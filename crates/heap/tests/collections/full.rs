//! Collections in a heap without room: what takes entries away needs none.

use entresol_heap::collections::{AppendLog, Deque, RadixMap, RadixTree};
use entresol_heap::{ErrorKind, Heap};

use crate::bed::{Bed, committed};

/// Takes all room there is, down to the smallest size.
fn fill(heap: &Heap) {
    let mut transaction = heap.begin();
    let mut bytes = heap.statistics().largest_free_bytes.max(8);
    while bytes >= 8 {
        match transaction.allocate(bytes) {
            Ok(_) => {}
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Full);
                bytes = if bytes > 512 { bytes / 2 } else { bytes - 8 };
            }
        }
    }
    transaction.commit().unwrap();
}

/// Nodes with few children left become smaller ones. Where there was no room for those, keys could
/// not be removed, and a full heap stayed full.
#[test]
fn keys_are_removed_from_a_full_heap() {
    let heap = Bed::of(1 << 20);
    let tree = committed(&heap, |tx| RadixTree::create(tx).unwrap());
    let map = committed(&heap, |tx| RadixMap::create(tx).unwrap());
    let keys: Vec<[u8; 2]> = (0..600_u16).map(|number| (number * 109).to_be_bytes()).collect();
    committed(&heap, |tx| {
        for key in &keys {
            tree.put(tx, key, 7).unwrap();
            map.put(tx, key, b"a value").unwrap();
        }
    });
    fill(&heap);
    let mut transaction = heap.begin();
    assert_eq!(transaction.allocate(8).unwrap_err().kind(), ErrorKind::Full);
    for (at, key) in keys.iter().enumerate() {
        assert_eq!(tree.remove(&mut transaction, key).unwrap(), Some(7), "key {at}");
        assert_eq!(map.remove(&mut transaction, key).unwrap(), Some(b"a value".to_vec()));
        if at % 50 == 0 {
            assert_eq!(tree.verify().unwrap().entries, (keys.len() - at - 1) as u64);
            assert!(keys[at + 1..].iter().all(|key| tree.get(key).unwrap() == Some(7)));
        }
    }
    transaction.commit().unwrap();
    assert_eq!((tree.verify().unwrap().blocks, map.verify().unwrap().blocks), (1, 1));
}

/// A directory that is three quarters empty is made anew with half of the slots. Where there was
/// no room for that, words could not be taken off.
#[test]
fn words_are_taken_off_rows_in_a_full_heap() {
    for clears in [false, true] {
        let heap = Bed::of(1 << 20);
        let deque = committed(&heap, |tx| Deque::create(tx).unwrap());
        let log = committed(&heap, |tx| AppendLog::create(tx).unwrap());
        committed(&heap, |tx| {
            for number in 0..4000 {
                deque.push_back(tx, number).unwrap();
                log.append(tx, b"entry").unwrap();
            }
        });
        fill(&heap);
        let mut transaction = heap.begin();
        assert_eq!(transaction.allocate(8).unwrap_err().kind(), ErrorKind::Full);
        if clears {
            deque.clear(&mut transaction).unwrap();
            assert_eq!(log.truncate_front(&mut transaction, u64::MAX).unwrap(), 4000);
        } else {
            for number in 0..4000 {
                assert_eq!(deque.pop_front(&mut transaction).unwrap(), Some(number));
                assert_eq!(log.truncate_front(&mut transaction, number + 1).unwrap(), 1);
            }
        }
        transaction.commit().unwrap();
        assert_eq!(deque.verify().unwrap().entries, 0);
        assert_eq!(log.verify().unwrap().entries, 0);
    }
}
