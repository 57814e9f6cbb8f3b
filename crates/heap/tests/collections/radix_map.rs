//! The ordered map to bytes against `BTreeMap`.

use std::collections::BTreeMap;
use std::ops::Bound;

use entresol_heap::collections::RadixMap;
use entresol_sim::Random;

use crate::bed::{Bed, for_seeds, key};

#[test]
fn random_changes_equal_those_of_a_model() {
    for_seeds(10, |seed| {
        let mut random = Random::new(seed);
        let heap = Bed::new();
        let mut transaction = heap.begin();
        let map = RadixMap::create(&mut transaction).unwrap();
        transaction.commit().unwrap();
        let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        for _ in 0..300 {
            let mut transaction = heap.begin();
            let before = model.clone();
            for _ in 0..random.below(10) {
                let key = key(&mut random);
                if random.one_in(3) {
                    assert_eq!(map.remove(&mut transaction, &key).unwrap(), model.remove(&key));
                } else {
                    let mut value = vec![0; random.below(40) as usize];
                    random.fill(&mut value);
                    let old = map.put(&mut transaction, &key, &value).unwrap();
                    assert_eq!(old, model.insert(key, value));
                }
            }
            match random.one_in(4) {
                true => {
                    transaction.abort();
                    model = before;
                }
                false => transaction.commit().unwrap(),
            }
            let probe = key(&mut random);
            assert_eq!(map.get(&probe).unwrap(), model.get(&probe).cloned());
        }
        let view = map.view().unwrap();
        let range = view.range(Bound::Unbounded, Bound::Unbounded);
        let found: Vec<_> =
            range.map(|e| e.map(|(k, v)| (k.to_vec(), v.to_vec())).unwrap()).collect();
        assert_eq!(found, model.into_iter().collect::<Vec<_>>());
        let checked = map.verify().unwrap();
        heap.check(checked.blocks, |recovered| {
            let map = RadixMap::open(recovered, map.handle()).unwrap();
            assert_eq!(map.verify().unwrap(), checked);
            assert!(found.iter().all(|(k, v)| map.get(k).unwrap().as_ref() == Some(v)));
        });
    });
}

#[test]
fn a_slice_read_under_a_guard_keeps_its_bytes() {
    let heap = Bed::new();
    let mut transaction = heap.begin();
    let map = RadixMap::create(&mut transaction).unwrap();
    map.put(&mut transaction, b"key", b"before").unwrap();
    transaction.commit().unwrap();
    let reader = map.reader();
    let slice = reader.get(b"key").unwrap().unwrap();
    for round in 0..50u8 {
        let mut transaction = heap.begin();
        map.put(&mut transaction, b"key", &[round; 6]).unwrap();
        transaction.commit().unwrap();
    }
    assert_eq!(slice, b"before");
    assert_eq!(reader.get(b"key").unwrap(), Some([49; 6].as_slice()));
}
