//! Streams are what they were when seeds were kept.

use super::*;

/// The first numbers of seed 0, as Vigna's code gives them.
#[test]
fn split_mix_has_the_published_numbers() {
    let mut random = SplitMix::new(0);
    let first = [0xE220_A839_7B1D_CDAF, 0x6E78_9E6A_A1B9_65F4, 0x06C4_5D18_8009_454F];
    assert_eq!([(); 3].map(|()| random.next_u64()), first);
}

/// xoshiro256++ from the state that SplitMix64 makes of seed 0.
#[test]
fn a_seed_begins_the_stream_that_it_always_began() {
    let mut random = Random::new(0);
    let first = [0x5317_5D61_490B_23DF, 0x61DA_6F3D_C380_D507, 0x5C0F_DF91_EC9A_7BFC];
    assert_eq!([(); 3].map(|()| random.next()), first);
}

#[test]
fn numbers_below_a_bound_are_below_it_and_all_come() {
    let mut random = SplitMix::new(7);
    for bound in 1..40_u64 {
        let mut seen = [[false; 40]; 2];
        for _ in 0..2_000 {
            seen[0][random.below(bound) as usize] = true;
            seen[1][random.remainder(bound) as usize] = true;
        }
        for seen in seen {
            assert_eq!(seen.iter().filter(|seen| **seen).count() as u64, bound);
        }
    }
    assert_eq!(random.below(0), 0);
}

#[test]
fn a_shuffle_keeps_all_items() {
    let mut items: Vec<u32> = (0..100).collect();
    SplitMix::new(3).shuffle(&mut items);
    assert!(!items.is_sorted());
    items.sort_unstable();
    assert!(items.into_iter().eq(0..100));
}
