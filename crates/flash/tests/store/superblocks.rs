//! One of the two copies of the superblock is lost.

use entresol_device::IoBuffer;

use super::*;

const COPY_BYTES: usize = 64 << 10;

fn damage_at(device: &Arc<dyn Device>, mode: OpenMode) -> Option<String> {
    let (store, session) = open(device, StoreOptions { mode, ..small() });
    drop(session);
    let said = store.superblock_damage().map(str::to_owned);
    if mode != OpenMode::ReadOnly {
        store.close(NOW).unwrap();
    }
    said
}

/// Nobody was told, so nobody looked after the medium before the other copy went, too.
#[test]
fn a_lost_copy_of_the_superblock_is_told_of_until_an_opening_to_write_brings_it_back() {
    let device = device(8 << 20);
    assert_eq!(damage_at(&device, OpenMode::OpenOrCreate), None);
    for copy in 0..2 {
        for fill in [0, 0xA5] {
            let offset = copy * COPY_BYTES;
            let mut lost = IoBuffer::aligned(COPY_BYTES);
            lost.fill(fill);
            device.write_at(offset as u64, &lost).unwrap();
            for _ in 0..2 {
                let said = damage_at(&device, OpenMode::ReadOnly).unwrap();
                let place = format!("bytes {offset} to {}", offset + COPY_BYTES - 1);
                assert!(said.contains(&place), "{said}");
                assert!(
                    said.ends_with("whoever opens the store to write writes it anew"),
                    "{said}"
                );
            }
            let said = damage_at(&device, OpenMode::OpenOrCreate).unwrap();
            assert!(said.ends_with("it was written anew"), "{said}");
            assert_eq!(damage_at(&device, OpenMode::ReadOnly), None);
            assert_eq!(damage_at(&device, OpenMode::OpenOrCreate), None);
        }
    }
}
