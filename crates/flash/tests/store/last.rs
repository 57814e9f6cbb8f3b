//! Records at the end of the device.

use entresol_flash::Opened;

use super::*;

// Found by mixing features: the length of a piece is known rounded up. Where one lay at the end of
// the last segment, more was read than the device has, and a get of its value ended in an error of
// the device. Two values of these lengths fill a segment, and the last piece of the second one is
// rounded up by more than is behind it. A checkpoint that named a piece at the end of any segment
// counted as damaged, so that a clean stop was none.
#[test]
fn values_whose_pieces_lie_at_the_end_of_a_segment_are_read_and_kept_in_checkpoints() {
    const KEYS: u64 = 20;
    let piece_bytes = (64 << 10) / 4 - 256;
    let lengths = [2 * piece_bytes + 7_800, piece_bytes + 8_190];
    let device = device((128 << 10) + 32 * (64 << 10));
    let options = StoreOptions { shards: 1, buffers_per_shard: 6, ..small() };
    let (store, mut session) = open(&device, options.clone());
    let value_of = |number: u64| value_of(number, lengths[number as usize % 2]);
    for number in 0..400 {
        put(&mut session, &[(number % KEYS) as u8], &value_of(number), PutOptions::default());
        store.maintain(NOW, Budget { segments: 2 }).unwrap();
        let Some(oldest) = (number + 1).checked_sub(KEYS) else { continue };
        let found = get(&mut session, &[(oldest % KEYS) as u8]);
        assert_eq!(found, Some(value_of(oldest)), "value {oldest}");
    }
    store.close(NOW).unwrap();
    drop((session, store));
    let (store, mut session) = open(&device, options);
    assert_eq!(store.statistics().opened, Opened::Checkpoint);
    for number in 400 - KEYS..400 {
        let found = get(&mut session, &[(number % KEYS) as u8]);
        assert_eq!(found, Some(value_of(number)), "value {number} after a clean stop");
    }
}
