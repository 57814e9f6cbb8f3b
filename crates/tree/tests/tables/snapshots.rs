//! Tables in a snapshot of their store.

use entresol_flash::Snapshot;
use entresol_sim::{Image, SimDevice, SimOptions};
use entresol_tree::{Action, Order, TableOptions};
use entresol_workload::Random;

use crate::nodes::{Kind, Model, Tall};
use crate::seeds;

const CAPACITY: u64 = 10 << 20;
const KEYS: u64 = 3_000;
const STEPS: usize = 12_000;

/// A snapshot and how much of it is copied.
struct Copying {
    snapshot: Snapshot,
    image: Image,
    copied: usize,
    model: Model,
}

impl Copying {
    fn begin(tall: &Tall, model: &Model) -> Copying {
        let snapshot = tall.tiered.store().snapshot().expect("a snapshot");
        let mut image = Image::blank(CAPACITY);
        let superblock = snapshot.superblock();
        image.write(0, superblock);
        image.write(superblock.len() as u64, superblock);
        Copying { snapshot, image, copied: 0, model: model.clone() }
    }

    /// Copies a segment. Whether all are copied.
    fn step(&mut self) -> bool {
        let Some(segment) = self.snapshot.segments().get(self.copied) else { return true };
        let mut bytes = vec![0; segment.bytes as usize];
        self.snapshot.read(segment, 0, &mut bytes).expect("a segment that is held");
        self.snapshot.let_go(segment);
        self.image.write(segment.at, &bytes);
        self.copied += 1;
        false
    }
}

#[test]
fn tables_in_a_snapshot_have_the_rows_of_its_moment() {
    for seed in seeds(3) {
        let mut random = Random::new(seed);
        let kind =
            Kind { absent_filter_bits: 4, table: TableOptions::default(), cache_bytes: 1 << 20 };
        let device = SimDevice::new(SimOptions { place: 1, ..SimOptions::new(seed, CAPACITY) });
        let mut tall = Tall::open(&device, kind);
        let (mut model, mut copying, mut done) = (Model::new(), None::<Copying>, 0);
        for _ in 0..STEPS {
            change(&mut tall, &mut model, &mut random);
            let is_due = random.below(3) == 0;
            if is_due && copying.as_mut().is_some_and(Copying::step) {
                let Copying { image, model, .. } = copying.take().expect("a copy");
                let options = SimOptions { place: 2, ..SimOptions::new(seed, CAPACITY) };
                let mut copy = Tall::open(&SimDevice::from_image(image, options), kind);
                assert!(copy.rows(Order::Ascending) == model, "ENTRESOL_SEED={seed}");
                done += 1;
            } else if copying.is_none() && random.below(200) == 0 {
                copying = Some(Copying::begin(&tall, &model));
            }
        }
        assert!(done > 3, "ENTRESOL_SEED={seed}: {done} snapshots");
    }
}

fn change(tall: &mut Tall, model: &mut Model, random: &mut Random) {
    let key = format!("row {:06}", random.below(KEYS)).into_bytes();
    match random.below(8) {
        0 => {
            tall.write(&key, Action::Remove);
            model.remove(&key);
        }
        1 => tall.maintain(),
        _ => {
            let value = vec![b'a' + random.below(26) as u8; 20 + random.below(30) as usize];
            tall.write(&key, Action::Put(&value));
            model.insert(key, value);
        }
    }
}
