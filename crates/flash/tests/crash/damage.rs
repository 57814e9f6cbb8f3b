//! Silent damage: found, named, and confined to the record that it hit.

use entresol_flash::Durability;
use entresol_sim::{CrashChoice, Random};

use crate::model::{KEYS, Name, Put, SPACES, key_bytes};
use crate::setup::{Ending, Setup};
use crate::world::World;

const FLIPS: usize = 150;

/// A store with one value under every key, on a device at rest.
fn filled(close: bool) -> (World, Vec<(Name, Put)>) {
    let setup = Setup::of("memory", Durability::Memory);
    let mut world = World::new(&setup, 11);
    world.open().unwrap();
    let mut puts = Vec::new();
    for (number, name) in (0..).zip(SPACES.iter().flat_map(|s| (0..KEYS).map(move |k| (*s, k)))) {
        let put = Put { id: number + 1, length: 3000 + number * 100, ends_ms: None };
        world.put_one(name, put).unwrap();
        puts.push((name, put));
    }
    world.parts().0.verify().unwrap();
    world.sync().unwrap();
    let now = world.now();
    if close {
        world.parts().0.close(now).unwrap();
    }
    world.open = None;
    (world, puts)
}

/// How many of `puts` cannot be read; all others must be what was put.
fn damaged(world: &mut World, puts: &[(Name, Put)], context: &str) -> usize {
    let mut damaged = 0;
    for (name, put) in puts {
        match world.get(*name) {
            Ok(Some(found)) => {
                assert!(found.is_of(*name, *put), "{name:?} is {found:?}; {context}")
            }
            Ok(None) => panic!("{name:?} is missing; {context}"),
            Err(why) => {
                assert!(why.contains("Corrupt"), "{why}; {context}");
                damaged += 1;
            }
        }
    }
    damaged
}

#[test]
fn after_a_clean_stop_a_flipped_bit_costs_one_record_at_most_wherever_it_is() {
    let (world, puts) = filled(true);
    let mut random = Random::new(1);
    let capacity = world.device.image().capacity_bytes();
    let mut hit = 0;
    for flip in 0..FLIPS {
        let device = world.device.reopened(CrashChoice::KeepAll);
        // The roots, then anything, records most of all.
        let offset = match flip % 4 {
            0 => random.below(1024) + (flip as u64 / 4 % 2) * (64 << 10),
            1 => random.below(capacity),
            _ => (128 << 10) + random.below(2 * (64 << 10)),
        };
        let mask = 1 << random.below(8);
        device.flip_bits(offset, mask);
        let mut after = world.after(device, Ending::Kill);
        let context = format!("bits {mask} at {offset}");
        after.open().unwrap_or_else(|why| panic!("{why}; {context}"));
        let found = damaged(&mut after, &puts, &context);
        assert!(found <= 1, "{found} records damaged; {context}");
        hit += found;
        let verified = after.parts().0.verify().unwrap();
        assert!(verified.damaged.len() <= 1 + found, "{:?}; {context}", verified.damaged);
    }
    assert!(hit > FLIPS / 8, "{hit} flips hit a record");
}

#[test]
fn after_a_crash_a_flipped_bit_in_a_record_or_a_footer_costs_one_record_at_most() {
    let (world, puts) = filled(false);
    let mut random = Random::new(2);
    for flip in 0..FLIPS {
        let device = world.device.reopened(CrashChoice::KeepAll);
        let segment = (128 << 10) + random.below(2) * (64 << 10);
        let within = match flip % 2 {
            // Behind the header of the segment.
            0 => 64 + random.below((60 << 10) - 64),
            // Footer and trailer.
            _ => (64 << 10) - 1 - random.below(700),
        };
        let mask = 1 << random.below(8);
        device.flip_bits(segment + within, mask);
        let mut after = world.after(device, Ending::Kill);
        let context = format!("bits {mask} at {within} of the segment at {segment}");
        after.open().unwrap_or_else(|why| panic!("{why}; {context}"));
        let found = damaged(&mut after, &puts, &context);
        assert!(found <= 1, "{found} records damaged; {context}");
    }
}

// What the medium did to the manifest of a large value was taken for a put that a crash had cut
// short: an older value of the key showed, or none.
#[test]
fn after_a_crash_a_flipped_bit_in_a_manifest_shows_no_older_value() {
    let setup = Setup::of("memory", Durability::Memory);
    let mut world = World::new(&setup, 12);
    world.open().unwrap();
    let name = (SPACES[0], 0);
    let put = |id, length| Put { id, length, ends_ms: None };
    world.put_one(name, put(1, 3000)).unwrap();
    // The segment of the large value is one of its own.
    world.parts().0.verify().unwrap();
    world.put_one(name, put(2, 50_000)).unwrap();
    world.parts().0.verify().unwrap();
    world.sync().unwrap();
    world.open = None;
    let (image, key) = (world.device.image().to_vec(), key_bytes(name));
    let places = image.windows(key.len()).enumerate().filter(|(_, bytes)| *bytes == key);
    let mut found = 0;
    for (at, _) in places {
        for offset in [at, at + key.len(), at - 20] {
            let device = world.device.reopened(CrashChoice::KeepAll);
            device.flip_bits(offset as u64, 4);
            let mut after = world.after(device, Ending::Kill);
            after.open().unwrap();
            found += damaged(&mut after, &[(name, put(2, 50_000))], &format!("byte {offset}"));
        }
    }
    assert_eq!(found, 3, "a flip in each part of the manifest is found");
}
