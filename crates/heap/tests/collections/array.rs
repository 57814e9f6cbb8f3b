//! Arrays against vectors.

use entresol_heap::ErrorKind;
use entresol_heap::collections::{Array, Width};
use entresol_sim::Random;

use crate::bed::{Bed, committed, ends, for_seeds};

#[test]
fn random_changes_equal_those_of_a_model() {
    for width in [Width::U8, Width::U16, Width::U32, Width::U64] {
        for_seeds(5, |seed| {
            let mut random = Random::new(seed);
            let heap = Bed::new();
            let count = 1 + random.below(100);
            let array = committed(&heap, |tx| Array::create(tx, width, count).unwrap());
            let most = u64::MAX >> (64 - 8 * width.bytes());
            let mut model = vec![0; count as usize];
            for _ in 0..200 {
                let before = model.clone();
                let mut transaction = heap.begin();
                for _ in 0..random.below(5) {
                    let index = random.below(count);
                    let length = random.below(count - index + 1);
                    let value = random.next_u64() & most;
                    let range = index as usize..(index + length) as usize;
                    match random.below(3) {
                        0 => {
                            let old = array.set(&mut transaction, index, value).unwrap();
                            assert_eq!(old, std::mem::replace(&mut model[index as usize], value));
                        }
                        1 => {
                            array.fill(&mut transaction, index, length, value).unwrap();
                            model[range].fill(value);
                        }
                        _ => {
                            let values: Vec<u64> =
                                (0..length).map(|_| random.next_u64() & most).collect();
                            array.set_all(&mut transaction, index, &values).unwrap();
                            model[range].copy_from_slice(&values);
                        }
                    }
                }
                ends(transaction, &mut random, &mut model, before);
                let index = random.below(count);
                assert_eq!(array.get(index).unwrap(), model[index as usize]);
            }
            let again = Array::open(&heap, array.handle()).unwrap();
            assert_eq!(again.copy(0, count).unwrap(), model);
            assert_eq!((again.width(), again.elements()), (width, count));
            heap.check(again.verify().unwrap().blocks, |recovered| {
                let array = Array::open(recovered, array.handle()).unwrap();
                assert_eq!(array.copy(0, count).unwrap(), model);
            });
        });
    }
}

#[test]
fn indices_and_values_outside_are_refused_without_overflow() {
    let heap = Bed::new();
    let array = committed(&heap, |tx| Array::create(tx, Width::U16, 10).unwrap());
    let mut transaction = heap.begin();
    let refused = |result: Result<u64, entresol_heap::Error>| {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::InvalidInput);
    };
    refused(array.get(10));
    refused(array.get(u64::MAX));
    refused(array.copy(5, u64::MAX - 2).map(|_| 0));
    refused(array.set(&mut transaction, 10, 0));
    refused(array.set(&mut transaction, 0, 65_536));
    refused(array.fill(&mut transaction, u64::MAX, 2, 0).map(|()| 0));
    refused(Array::create(&mut transaction, Width::U64, u64::MAX / 4).map(|_| 0));
    transaction.commit().unwrap();
    assert_eq!(array.copy(0, 10).unwrap(), [0; 10]);
}
