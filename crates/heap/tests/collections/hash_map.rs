//! The hash map against the standard library's.

use std::collections::BTreeMap;

use entresol_heap::collections::HashMap;
use entresol_sim::Random;

use crate::bed::{Bed, committed, ends, for_seeds, key};

#[test]
fn random_changes_equal_those_of_a_model() {
    for_seeds(10, |seed| {
        let mut random = Random::new(seed);
        let heap = Bed::new();
        let map = committed(&heap, |transaction| HashMap::create(transaction, seed).unwrap());
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
            ends(transaction, &mut random, &mut model, before);
            let probe = key(&mut random);
            assert_eq!(map.get(&probe).unwrap(), model.get(&probe).cloned());
        }
        let view = map.view().unwrap();
        committed(&heap, |transaction| map.put(transaction, b"later", b"").unwrap());
        let mut found: Vec<_> =
            view.iter().map(|e| e.map(|(k, v)| (k.to_vec(), v.to_vec())).unwrap()).collect();
        found.sort();
        assert_eq!(view.entries(), found.len() as u64);
        for (key, value) in &model {
            assert_eq!(view.get(key).unwrap(), Some(value.as_slice()));
        }
        assert_eq!(found, model.into_iter().collect::<Vec<_>>());
        drop(view);
        let checked = map.verify().unwrap();
        heap.check(checked.blocks, |recovered| {
            let map = HashMap::open(recovered, map.handle()).unwrap();
            assert_eq!(map.verify().unwrap(), checked);
            assert!(found.iter().all(|(k, v)| map.get(k).unwrap().as_ref() == Some(v)));
        });
        let mut count = 0;
        committed(&heap, |transaction| map.clear(transaction, |_, _| count += 1).unwrap());
        assert_eq!(count, found.len() + 1);
        let again = HashMap::open(&heap, map.handle()).unwrap();
        committed(&heap, |transaction| again.destroy(transaction).unwrap());
        heap.check(0, |_| {});
    });
}
