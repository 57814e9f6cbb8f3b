//! The append log against a vector.

use entresol_heap::collections::AppendLog;
use entresol_sim::Random;

use crate::bed::{Bed, committed, ends, for_seeds};

#[test]
fn random_changes_equal_those_of_a_model_and_views_stay() {
    for_seeds(20, |seed| {
        let mut random = Random::new(seed);
        let heap = Bed::new();
        let log = committed(&heap, |tx| AppendLog::create(tx).unwrap());
        // The entries, and how many were cut off before them.
        let mut model: (Vec<Vec<u8>>, u64) = (Vec::new(), 0);
        let mut views = Vec::new();
        for _ in 0..100 {
            let before = model.clone();
            let mut tx = heap.begin();
            for _ in 0..random.below(12) {
                let mut entry = vec![0; random.below(100) as usize];
                random.fill(&mut entry);
                let number = log.append(&mut tx, &entry).unwrap();
                assert_eq!(number, model.1 + model.0.len() as u64);
                model.0.push(entry);
            }
            if random.one_in(3) {
                let number = (model.1 + random.below(model.0.len() as u64 + 3)).saturating_sub(1);
                let cut = number.saturating_sub(model.1).min(model.0.len() as u64);
                assert_eq!(log.truncate_front(&mut tx, number).unwrap(), cut);
                model = (model.0.split_off(cut as usize), model.1 + cut);
            }
            ends(tx, &mut random, &mut model, before);
            let number = model.1 + random.below(model.0.len() as u64 + 1);
            let expected = model.0.get((number - model.1) as usize).cloned();
            assert_eq!(log.get(number).unwrap(), expected);
            assert_eq!(log.numbers().unwrap(), model.1..model.1 + model.0.len() as u64);
            if random.one_in(8) {
                views.push((log.view().unwrap(), model.clone()));
            }
            if views.len() > 4 {
                views.remove(0);
            }
            for (view, then) in &views {
                let numbered = (then.1..).zip(then.0.iter().map(Vec::as_slice));
                let found: Vec<_> = view.range(0..u64::MAX).map(Result::unwrap).collect();
                assert_eq!(found, numbered.collect::<Vec<_>>());
                let mut backwards: Vec<_> =
                    view.range(0..u64::MAX).rev().map(Result::unwrap).collect();
                backwards.reverse();
                assert_eq!(found, backwards);
            }
        }
        views.clear();
        let checked = log.verify().unwrap();
        heap.check(checked.blocks, |recovered| {
            let log = AppendLog::open(recovered, log.handle()).unwrap();
            assert_eq!(log.verify().unwrap(), checked);
            let view = log.view().unwrap();
            let found = view.range(0..u64::MAX).map(|entry| entry.unwrap().1);
            assert!(found.eq(model.0.iter().map(Vec::as_slice)));
        });
        let again = AppendLog::open(&heap, log.handle()).unwrap();
        committed(&heap, |tx| again.destroy(tx).unwrap());
        heap.check(0, |_| {});
    });
}
