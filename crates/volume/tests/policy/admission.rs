//! Blocks are admitted at their n-th miss; a scan is not.

use entresol_sim::Random;
use entresol_volume::policy::admission::{Admission, HITS_MAX, Verdict};

#[test]
fn a_block_is_admitted_at_its_nth_miss_and_then_forgotten() {
    for hits in [2, 3, HITS_MAX] {
        let mut admission = Admission::new(1 << 10);
        let mut random = Random::new(u64::from(hits));
        let blocks: Vec<u64> = (0..100).map(|_| random.next_u64()).collect();
        for round in 1..=3 * u32::from(hits) {
            for &block in &blocks {
                let admitted = admission.on_miss(block, hits) == Verdict::Admit;
                assert_eq!(admitted, round % u32::from(hits) == 0, "round {round} of {hits}");
            }
        }
    }
}

#[test]
fn one_hit_admits_at_once() {
    let mut admission = Admission::new(0);
    assert_eq!(admission.on_miss(1, 0), Verdict::Admit);
    assert_eq!(admission.on_miss(1, 1), Verdict::Admit);
    assert_eq!(admission.on_miss(1, 2), Verdict::Reject);
}

#[test]
fn a_scan_is_rejected_while_blocks_asked_for_again_come_through() {
    let mut admission = Admission::new(1 << 14);
    let mut random = Random::new(3);
    let hot: Vec<u64> = (0..500).map(|_| random.next_u64()).collect();
    let (mut scanned, mut admitted) = (0, 0);
    for step in 0..20_000 {
        scanned += u32::from(admission.on_miss(random.next_u64(), 2) == Verdict::Admit);
        let block = hot[step % hot.len()];
        admitted += u32::from(admission.on_miss(block, 2) == Verdict::Admit);
    }
    assert!(scanned <= 2, "{scanned} blocks of a scan were admitted");
    assert!(admitted > 9_800, "{admitted} of about 10,000 second misses were admitted");
}

#[test]
fn what_missed_longest_ago_is_forgotten_first() {
    let mut admission = Admission::new(8);
    // All of one set: only the upper bits differ.
    let block = |number: u64| number << 40;
    (0..8).for_each(|number| assert_eq!(admission.on_miss(block(number), 3), Verdict::Reject));
    assert_eq!(admission.on_miss(block(0), 3), Verdict::Reject);
    assert_eq!(admission.on_miss(block(8), 3), Verdict::Reject);
    assert_eq!(admission.on_miss(block(0), 3), Verdict::Admit);
    // Block 1 was displaced, and begins anew; block 2 was not.
    assert_eq!(admission.on_miss(block(2), 2), Verdict::Admit);
    assert_eq!(admission.on_miss(block(1), 2), Verdict::Reject);
}
