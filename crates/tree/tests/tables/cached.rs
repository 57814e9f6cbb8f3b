//! Gets of rows whose leaves are in memory.

use entresol_sim::{SimDevice, SimOptions};
use entresol_tree::{Action, TableOptions};
use entresol_workload::Random;

use crate::nodes::{Kind, Model, Tall};
use crate::seeds;

const KEYS: u64 = 2_000;
const STEPS: usize = 20_000;

#[test]
fn a_get_of_a_leaf_in_memory_finds_the_newest_row() {
    for seed in seeds(2) {
        for absent_filter_bits in [0, 4] {
            let kind =
                Kind { absent_filter_bits, table: TableOptions::default(), cache_bytes: 8 << 20 };
            let device = SimDevice::new(SimOptions { place: 1, ..SimOptions::new(seed, 10 << 20) });
            let mut tall = Tall::open(&device, kind);
            change_and_get(&mut tall, &mut Random::new(seed));
            let hits = tall.tiered.statistics().memory_hits;
            assert!(hits > STEPS as u64 / 10, "ENTRESOL_SEED={seed}: {hits} pages from memory");
        }
    }
}

/// Half of the steps are gets; some of the others make a merge do a part of its work.
fn change_and_get(tall: &mut Tall, random: &mut Random) {
    let mut model = Model::new();
    for _ in 0..STEPS {
        let key = format!("row {:06}", random.below(KEYS)).into_bytes();
        match random.below(8) {
            0 => {
                tall.write(&key, Action::Remove);
                model.remove(&key);
            }
            1 | 2 => {
                let value = vec![b'a' + random.below(26) as u8; 20 + random.below(30) as usize];
                tall.write(&key, Action::Put(&value));
                model.insert(key, value);
            }
            3 => tall.maintain(),
            _ => assert_eq!(tall.get(&key).as_ref(), model.get(&key), "{key:?}"),
        }
    }
}
