//! The linked list against a vector.

use entresol_heap::ErrorKind;
use entresol_heap::collections::LinkedList;
use entresol_sim::Random;

use crate::bed::{Bed, committed, ends, for_seeds};

#[test]
fn random_changes_equal_those_of_a_model() {
    for_seeds(20, |seed| {
        let mut random = Random::new(seed);
        let heap = Bed::new();
        let list = committed(&heap, |tx| LinkedList::create(tx).unwrap());
        let mut model: Vec<u64> = Vec::new();
        for _ in 0..200 {
            let before = model.clone();
            let mut tx = heap.begin();
            for _ in 0..random.below(8) {
                let value = random.below(1000);
                let index = random.below(model.len() as u64 + 1);
                let at = index as usize;
                match random.below(9) {
                    0..=1 => {
                        list.insert(&mut tx, index, value).unwrap();
                        model.insert(at, value);
                    }
                    2 => {
                        list.push_front(&mut tx, value).unwrap();
                        model.insert(0, value);
                    }
                    3 => {
                        list.push_back(&mut tx, value).unwrap();
                        model.push(value);
                    }
                    4 => {
                        let popped = (!model.is_empty()).then(|| model.remove(0));
                        assert_eq!(list.pop_front(&mut tx).unwrap(), popped);
                    }
                    5 => assert_eq!(list.pop_back(&mut tx).unwrap(), model.pop()),
                    6 if at < model.len() => {
                        let old = std::mem::replace(&mut model[at], value);
                        assert_eq!(list.set(&mut tx, index, value).unwrap(), old);
                    }
                    _ if at < model.len() => {
                        assert_eq!(list.remove(&mut tx, index).unwrap(), model.remove(at));
                    }
                    _ => {
                        let error = list.remove(&mut tx, index).unwrap_err();
                        assert_eq!(error.kind(), ErrorKind::InvalidInput);
                    }
                }
            }
            assert_eq!(list.copy_in(&tx).unwrap(), model);
            ends(tx, &mut random, &mut model, before);
            let index = random.below(model.len() as u64 + 2);
            assert_eq!(list.get(index).unwrap(), model.get(index as usize).copied());
            assert_eq!(list.elements().unwrap(), model.len() as u64);
        }
        assert_eq!(list.copy().unwrap(), model);
        let checked = list.verify().unwrap();
        heap.check(checked.blocks, |recovered| {
            let list = LinkedList::open(recovered, list.handle()).unwrap();
            assert_eq!(list.verify().unwrap(), checked);
            assert_eq!(list.copy().unwrap(), model);
        });
        let again = LinkedList::open(&heap, list.handle()).unwrap();
        committed(&heap, |tx| again.clear(tx).unwrap());
        heap.check(1, |_| {});
        committed(&heap, |tx| again.destroy(tx).unwrap());
        heap.check(0, |_| {});
    });
}
