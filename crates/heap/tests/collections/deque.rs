//! The deque against the standard library's.

use std::collections::VecDeque;

use entresol_heap::ErrorKind;
use entresol_heap::collections::{Deque, DequeView};
use entresol_sim::Random;

use crate::bed::{Bed, committed, ends, for_seeds};

fn same(view: &DequeView, model: &VecDeque<u64>) {
    let forwards: VecDeque<u64> = view.range(0..u64::MAX).map(Result::unwrap).collect();
    assert_eq!(&forwards, model);
    let backwards: Vec<u64> = view.range(0..u64::MAX).rev().map(Result::unwrap).collect();
    assert!(backwards.iter().eq(model.iter().rev()));
}

#[test]
fn random_changes_equal_those_of_a_model_and_views_stay() {
    for_seeds(20, |seed| {
        let mut random = Random::new(seed);
        let heap = Bed::new();
        let deque = committed(&heap, |tx| Deque::create(tx).unwrap());
        let mut model: VecDeque<u64> = VecDeque::new();
        let mut views: Vec<(DequeView, VecDeque<u64>)> = Vec::new();
        // Grows for a while, then shrinks, at either end.
        for round in 0..200 {
            let before = model.clone();
            let mut tx = heap.begin();
            let phase = if round / 50 % 2 == 0 { 6 } else { 3 };
            for _ in 0..random.below(60) {
                let value = random.next_u64();
                match (random.below(10) < phase, random.below(3)) {
                    (true, 0) => {
                        deque.push_front(&mut tx, value).unwrap();
                        model.push_front(value);
                    }
                    (true, _) => {
                        deque.push_back(&mut tx, value).unwrap();
                        model.push_back(value);
                    }
                    (false, 0) => {
                        assert_eq!(deque.pop_front(&mut tx).unwrap(), model.pop_front());
                    }
                    (false, 1) => {
                        assert_eq!(deque.pop_back(&mut tx).unwrap(), model.pop_back());
                    }
                    _ => {
                        let index = random.below(model.len() as u64 + 1);
                        match model.get_mut(index as usize) {
                            Some(there) => {
                                let old = std::mem::replace(there, value);
                                assert_eq!(deque.set(&mut tx, index, value).unwrap(), old);
                            }
                            None => {
                                let error = deque.set(&mut tx, index, value).unwrap_err();
                                assert_eq!(error.kind(), ErrorKind::InvalidInput);
                            }
                        }
                    }
                }
            }
            ends(tx, &mut random, &mut model, before);
            let index = random.below(model.len() as u64 + 2);
            assert_eq!(deque.get(index).unwrap(), model.get(index as usize).copied());
            assert_eq!(deque.front().unwrap(), model.front().copied());
            assert_eq!(deque.back().unwrap(), model.back().copied());
            if random.one_in(10) {
                views.push((deque.view().unwrap(), model.clone()));
            }
            if !views.is_empty() && random.one_in(12) {
                let (view, then) = views.swap_remove(random.below(views.len() as u64) as usize);
                same(&view, &then);
            }
        }
        views.iter().for_each(|(view, then)| same(view, then));
        same(&deque.view().unwrap(), &model);
        let checked = deque.verify().unwrap();
        heap.check(checked.blocks, |recovered| {
            let deque = Deque::open(recovered, deque.handle()).unwrap();
            assert_eq!(deque.verify().unwrap(), checked);
            same(&deque.view().unwrap(), &model);
        });
        let again = Deque::open(&heap, deque.handle()).unwrap();
        committed(&heap, |tx| again.clear(tx).unwrap());
        heap.check(1, |_| {});
        committed(&heap, |tx| again.destroy(tx).unwrap());
        heap.check(0, |_| {});
    });
}
